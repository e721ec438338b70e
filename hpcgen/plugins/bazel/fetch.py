"""What Bazel fetches for a build, learned by running it where the build would run.

The builder stage is made in the unpacked base image up to Bazel's own step, without the steps of blocks that the one
with Bazel does not require. There ``bazel build --nobuild`` reads the workspace, runs its repository rules and fetches
all that the targets need, with the very options of the build. What came is then shown to a second run as a bundle
would show it, without a network: so what a lock pins has been enough once.

The rules are code of the release that is built. They see the base image alone (base_shell), and what they leave is
taken for addresses and hashes: of a bundle's files each comes by https and has the hash that the lock names.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from hpcgen.blocks.inputs.bazel import BazelCall, BazelFiles, pinned_files
from hpcgen.blocks.steps import command
from hpcgen.core.errors import FetchError, InputError, Problem
from hpcgen.core.model.bazel import BazelFile, BazelPin
from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.model.image_paths import MOUNT, SCRATCH, WHEEL_INDEX, file_path
from hpcgen.core.model.plan import Plan
from hpcgen.core.secret_rules import without_secrets
from hpcgen.core.support.certificates import read_certificates
from hpcgen.core.support.units import files as number_of_files
from hpcgen.machine.detect.tree import MachineTree
from hpcgen.plugins.bazel.pins import Fetched, Requested, listed, requested
from hpcgen.plugins.bazel.registry_recorder import RegistryRecorder
from hpcgen.recipe.stages import Assembly, Stage
from hpcgen.supply.net.package_index import find_files
from hpcgen.supply.net.wheel_index import wheel_index
from hpcgen.supply.pin.base_shell import BaseShell, base_shell, laid_out, script_of
from hpcgen.supply.pin.bazel_steps import BazelStep

Say = Callable[[str], None]
PLACE = f"{SCRATCH}/bazel-fetched"
_CACHE, _LOG = f"{PLACE}/cache", f"{PLACE}/log"
_CONTENT = f"{_CACHE}/content_addressable/sha256"
_LINE_S = 15.0
_TAIL, _WIDE = 30, 300
_NO_SPACE = ("No space left on device", "Disk quota exceeded")
_NO_ANSWER = re.compile(
    r"UnknownHost|resolv|[Cc]onnect(ion)? (refused|timed out|reset)|timed out|certificat|PKIX|[Uu]nreachable|"
    r"Failed to fetch|GET returned|Error downloading|returned error: "
)


def fetch_bazel(plan: Plan, assembly: Assembly, step: BazelStep, layout: Path, say: Say) -> BazelPin:
    """Run Bazel for one step in the builder's base image, which ``layout`` holds, and pin what it fetches.

    FetchError: a step or Bazel fails; what it fetched is not enough to do it again without a network. InputError,
    MissingToolError, PolicyError: as :func:`base_shell`.
    """
    stage = assembly.builder
    environment = {**stage.arguments, **stage.environment}
    for name in ("no_proxy", "NO_PROXY"):
        # The registries are asked on the loopback.
        environment[name] = ",".join(filter(None, [environment.get(name, ""), "127.0.0.1"]))
    authorities = [Path(path) for path in plan.site.network.ca_certificates]
    with base_shell(layout, stage.image.name, environment, several_ids=True) as shell:
        _prepare(shell, stage, step, say)
        with RegistryRecorder(step.call.registries, authorities) as recorder:
            say(f"{step.label}: Bazel fetches the inputs of {' '.join(step.call.targets)}")
            _bazel(shell, step, _fetching(step.call, recorder), say, recorder.failures, recorder.named)
        found = _fetched(shell, recorder)
        pin = BazelPin(bazel=step.call.version, call=step.hash, files=listed(found))
        _check_packages(pin.files, plan)
        count = number_of_files(len(pin.files))
        say(f"{step.label}: {count} fetched; Bazel again, only with these and without a network")
        _again(shell, step, pinned_files(step.call.name, pin), found, say)
    return pin


def _prepare(shell: BaseShell, stage: Stage, step: BazelStep, say: Say) -> None:
    """The builder stage up to Bazel."""
    # Programs of other users than root need these, and unpacking took the rights away.
    shell.check("chmod 1777 /tmp /var/tmp", "preparing the base")
    for file in stage.host_files:
        shell.put(file.target, read_certificates(file.source))
    for label, each in step.before:
        say(f"{label}: {each.about}")
        _run(shell, laid_out(shell, each), f"{label}, {each.about},", say)


def _fetching(call: BazelCall, recorder: RegistryRecorder) -> list[str]:
    """Options by which Bazel keeps and tells what it fetches."""
    registries = recorder.words if int(call.version.split(".")[0]) >= 6 else []
    log = f"--experimental_workspace_rules_log_file={_LOG}"
    return [f"--repository_cache={_CACHE}", log, "--repo_env=RULES_PYTHON_PIP_ISOLATED=0", *registries]


def _bazel(
    shell: BaseShell,
    step: BazelStep,
    words: Sequence[str],
    say: Say,
    hints: Iterable[str],
    named: Callable[[str], str] = str,
    again: bool = False,
) -> None:
    call, root = step.call, f"{PLACE}/{'again' if again else 'root'}"
    program = [*call.program, f"--output_user_root={root}", "build", "--nobuild", *call.options, *words, *call.targets]
    commands = [command("mkdir", "-p", _CACHE, root), command("cd", call.folder), command(*program)]
    _run(shell, commands, f"Bazel for {step.label}", say, hints, named, alone=again)


def _run(
    shell: BaseShell,
    commands: Sequence[str],
    what: str,
    say: Say,
    hints: Iterable[str] = (),
    named: Callable[[str], str] = str,
    alone: bool = False,
) -> None:
    told = time.monotonic()

    def on_line(line: str) -> None:
        nonlocal told
        if line.strip() and time.monotonic() - told >= _LINE_S:
            told = time.monotonic()
            say(f"  {_shown(line)}")

    status, lines = shell.run(script_of(commands), on_line, alone=alone)
    if status:
        raise FetchError(_failure(shell.image, what, [named(line) for line in [*lines, *hints]], status, alone))


def _failure(image: str, what: str, lines: Sequence[str], status: int, alone: bool) -> Problem:
    """What a command said, its errors first, without secrets."""
    kept = [_shown(line) for line in lines if line.strip()]
    errors = [line for line in kept if line.startswith(("ERROR:", "FATAL:", "E:"))]
    said = "\n".join(f"    {line}" for line in [*errors[: _TAIL // 3], *kept[-_TAIL:]])
    if any(word in line for line in kept for word in _NO_SPACE):
        remedy = "set TMPDIR to a folder with more space: it holds the builder stage and all of Bazel's downloads twice"
    elif alone:
        remedy = (
            "a rule of the workspace fetches something that Bazel cannot keep: a file without sha256, a git "
            "repository, or a download by a program that it starts; give it a sha256 by a patch of the source, or "
            "build with a network"
        )
    elif any(_NO_ANSWER.search(line) for line in kept):
        remedy = "check the network: the site's mirrors, certificates and proxy (hpcgen show site), then try again"
    else:
        remedy = "a build would fail in the same way: correct the block or its options as the output above suggests"
    how = " without a network, from its downloads" if alone else ""
    return Problem(f"{what} failed{how} in {image} (exit status {status}):\n{said}", remedy=remedy)


def _shown(line: str) -> str:
    text = "".join(c if c.isprintable() else " " for c in without_secrets(line)).rstrip()
    return text if len(text) <= _WIDE else text[:_WIDE] + "…"


def _fetched(shell: BaseShell, recorder: RegistryRecorder) -> Fetched:
    """What the first run has left: what is in the cache, what was asked for, and what pip has brought."""
    cached = _hashes(shell, f"test ! -d {_CONTENT} || find {_CONTENT} -type f -name file -exec sha256sum {{}} +")
    wheels = _hashes(
        shell,
        f"find {PLACE}/root -mindepth 4 -maxdepth 5 -path '*/external/*' -type f -name '*.whl' -exec sha256sum {{}} +",
    )
    requests = [each._replace(urls=tuple(map(recorder.named, each.urls))) for each in _read_log(shell)]
    registry = {path: (recorder.url(path), data) for path, data in recorder.read.items()}
    return Fetched(cached, requests, wheels, registry)


def _hashes(shell: BaseShell, script: str) -> dict[str, str]:
    """sha256 → a file that has it, as sha256sum says it."""
    rows = [line.partition("  ") for line in shell.check(script, "hashing Bazel's downloads")]
    return {sha256: path for sha256, _, path in rows if len(sha256) == 64}


def _read_log(shell: BaseShell) -> list[Requested]:
    """The log, which may be larger than any file of an image that is read otherwise."""
    tree = MachineTree(str(shell.root))
    real = tree.real(_LOG)
    if real is None:
        return []
    descriptor = os.open(tree.place(real), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError(
                "Bazel's log of its downloads is not a file",
                remedy="use another release, or lock without --fetch-bazel",
            )
        return requested(stream)


def _check_packages(found: Sequence[BazelFile], plan: Plan) -> None:
    """FetchError for Python packages that no index has: pip has compiled them."""
    lines = sorted(f"{file.package} --hash=sha256:{file.sha256}" for file in found if file.pip)
    mirror = plan.site.network.mirrors.pip
    if lines:
        find_files(lines, [mirror] if mirror is not None else None)


def _again(shell: BaseShell, step: BazelStep, files: BazelFiles, found: Fetched, say: Say) -> None:
    """The same from what a bundle would have, laid out as in a build from it, and from nothing else."""
    held, items, commands = files.held_names(), [], []
    for file in files.files:
        target = f"{MOUNT}/{file_path(file.sha256, held[file.sha256])}"
        if file.registry:
            shell.put(target, found.registry[file.registry][1])
            continue
        source = found.wheels[file.sha256] if file.pip else found.cached[file.sha256]
        commands += [command("mkdir", "-p", target.rpartition("/")[0]), command("cp", "-f", source, target)]
        if file.pip:
            path = file_path(file.sha256, held[file.sha256])
            items.append(BundleItem(kind="wheel", name=file.name, origin="pip", sha256=file.sha256, size=0, path=path))
    shell.put(f"{MOUNT}/{WHEEL_INDEX}", wheel_index(items).encode())
    removed = command("rm", "-rf", f"{PLACE}/root", _CACHE)
    version = step.call.version
    _run(shell, [*commands, removed, *files.distdir_commands(version)], "laying out Bazel's downloads", say)
    _bazel(shell, step, files.bazel_words(version), say, found.notes(), again=True)
