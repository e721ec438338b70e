"""Runners for the real container tools, used through the fixtures of conftest.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
TESTBED = HERE / "testbed"
INSTALL = "run .ci/install-tools"
CERTIFICATES = Path("/usr/local/share/ca-certificates")
BASE_IN_SID = "/base"

Run = subprocess.CompletedProcess[str]
Argument = str | os.PathLike[str]
Bind = tuple[Argument, str]


def run(
    command: Sequence[Argument],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Argument | None = None,
    check: bool = True,
    timeout: float = 1800,
) -> Run:
    """Run a command; stdout and stderr come together, in order, in ``stdout``.

    With ``check`` a non-zero exit fails the test and shows the end of the output.
    """
    argv = [os.fspath(c) for c in command]
    try:
        done = subprocess.run(
            argv,
            env=None if env is None else dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as missing:
        if missing.filename != argv[0]:  # the folder to run it in, not the tool
            raise
        pytest.fail(f"{argv[0]} is missing: {INSTALL}")
    except subprocess.TimeoutExpired as late:
        text = late.stdout or b""
        tail = text[-3000:].decode(errors="replace") if isinstance(text, bytes) else text[-3000:]
        pytest.fail(f"{' '.join(argv)}: still running after {timeout:.0f} s\n{tail}")
    return checked(done) if check else done


def checked(done: Run) -> Run:
    """The run, which must have gone well."""
    if done.returncode:
        pytest.fail(f"{' '.join(done.args)}: exit {done.returncode}\n{done.stdout[-6000:]}")
    return done


def script(name: str, *arguments: Argument, env: Mapping[str, str] | None = None) -> str:
    """Run one of the test bed's scripts and return its stdout alone."""
    done = subprocess.run(
        [os.fspath(TESTBED / name), *(os.fspath(a) for a in arguments)],
        env=None if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"testbed/{name}: exit {done.returncode}\n{done.stderr[-6000:]}")
    return done.stdout


def variables(text: str) -> dict[str, str]:
    """Read the NAME=VALUE lines that a script printed."""
    return dict(line.split("=", 1) for line in text.splitlines() if line)


@dataclass(frozen=True)
class BaseImage:
    """The Debian 12 base, by the name each tool has for it."""

    ch_image: str  # for ch-image: no host part
    oci: str  # for buildah and podman
    archive: Path  # OCI archive, for Apptainer's Bootstrap: oci-archive
    root_tar: Path  # plain tar of the root, for `ch-image import`


UNSEALED = "sealing memfd copy: Device or resource busy"
"""What buildah says where it fails by chance; ``hpcgen build`` starts it again then, too."""


@dataclass(frozen=True)
class Tool:
    """Commands of this machine, in the test bed's environment."""

    env: Mapping[str, str]

    def run(
        self,
        command: Sequence[Argument],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Argument | None = None,
        check: bool = True,
        timeout: float = 1800,
    ) -> Run:
        """Run any command (a kit's build.sh, say), with ``env`` added; buildah once more where it fails by chance."""

        def once() -> Run:
            return run(command, env={**self.env, **(env or {})}, cwd=cwd, check=False, timeout=timeout)

        done = once()
        if command[0] == "buildah" and UNSEALED in done.stdout:
            done = once()
        return checked(done) if check else done


@dataclass(frozen=True)
class ChImage(Tool):
    """ch-image and ch-run 0.31, of the machine itself."""

    def build(
        self,
        tag: str,
        dockerfile: Path,
        context: Path | None = None,
        *options: str,
        check: bool = True,
        timeout: float = 1800,
    ) -> Run:
        """Build an image; no build cache, which only costs time for one build."""
        return self.run(
            [
                "ch-image",
                "--no-cache",
                "build",
                "--force",
                *options,
                "-t",
                tag,
                "-f",
                dockerfile,
                context or dockerfile.parent,
            ],
            check=check,
            timeout=timeout,
        )

    def exec(
        self,
        image: Argument,
        command: Sequence[Argument],
        *,
        binds: Sequence[Bind] = (),
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = 300,
    ) -> Run:
        """Run a command in an image, by name in storage or by folder, with its ENV."""
        argv: list[Argument] = ["ch-run", "--set-env"]  # without it the image's ENV is not used
        argv += [f"--bind={os.fspath(host)}:{inside}" for host, inside in binds]
        return self.run([*argv, image, "--", *command], env=env, check=check, timeout=timeout)


LINGER = ("sh", "-c", '"$0" "$@"; status=$?; sleep 1; exit $status')
"""On a busy machine buildah 1.28 loses what a program wrote right before its end."""


@dataclass(frozen=True)
class Buildah(Tool):
    """buildah of the machine itself, with ``--isolation chroot``."""

    def build(
        self,
        tag: str,
        dockerfile: Path,
        context: Path | None = None,
        *options: str,
        check: bool = True,
        timeout: float = 1800,
    ) -> Run:
        """Build an image from a Dockerfile."""
        return self.run(
            [
                "buildah",
                "build",
                "--isolation",
                "chroot",
                *options,
                "-t",
                tag,
                "-f",
                dockerfile,
                context or dockerfile.parent,
            ],
            check=check,
            timeout=timeout,
        )

    def exec(
        self,
        image: str,
        command: Sequence[Argument],
        *,
        binds: Sequence[Bind] = (),
        check: bool = True,
        timeout: float = 300,
    ) -> Run:
        """Run a command in a throw-away container of the image, with its ENV."""
        container = self.run(["buildah", "from", "-q", image]).stdout.split()[-1]
        volumes = [f"--volume={os.fspath(host)}:{inside}" for host, inside in binds]
        try:
            return self.run(
                ["buildah", "run", "--isolation", "chroot", *volumes, container, "--", *LINGER, *command],
                check=check,
                timeout=timeout,
            )
        finally:
            self.run(["buildah", "rm", container], check=False)


@dataclass(frozen=True)
class HostMpi(Tool):
    """Intel MPI unpacked on the host; ``env`` has what its programs need."""

    root: Path

    def mpiexec(
        self,
        ranks: int,
        command: Sequence[Argument],
        *,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = 300,
    ) -> Run:
        """Start a command, such as ``ch-run ...``, once for each rank."""
        argv = [self.root / "bin/mpiexec.hydra", "-n", str(ranks), *command]
        return self.run(argv, env=env, check=check, timeout=timeout)


@dataclass(frozen=True)
class Sid:
    """A Debian sid root with Apptainer 1.4, Charliecloud 0.45 and buildah 1.43."""

    env: Mapping[str, str]

    def run(
        self,
        command: Sequence[Argument],
        *,
        binds: Sequence[Bind] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        before: str = "",
        alone: bool = False,
        check: bool = True,
        timeout: float = 1800,
    ) -> Run:
        """Run a command there as the ordinary user "builder" (uid 1001).

        ``binds`` are (host folder, folder in the root); ``cwd`` is in the root;
        of the environment only ``env`` is passed on, and that licences are accepted.  A folder that the command
        writes to should come from :meth:`folder`.  ``before`` is a shell script
        that root runs there first, in this call's own mount namespace.
        ``alone``: without any network.
        """
        argv: list[Argument] = [*(["unshare", "--net", "--"] if alone else []), TESTBED / "enter-sid"]
        for host, inside in binds:
            argv += ["-b", f"{os.fspath(host)}:{inside}"]
        for name, value in {"HPCGEN_ACCEPT_LICENCES": "all", **(env or {})}.items():
            argv += ["-e", f"{name}={value}"]
        if cwd is not None:
            argv += ["-C", cwd]
        if before:
            argv += ["-x", before]
        return run([*argv, "--", *command], env=self.env, check=check, timeout=timeout)

    def folder(self, path: Path) -> Path:
        """Make a host folder with all in it belong to "builder"."""
        path.mkdir(parents=True, exist_ok=True)
        for each in (path, *path.rglob("*")):
            os.chown(each, 1001, 1001, follow_symlinks=False)
        return path


@dataclass(frozen=True)
class SidHpcgen:
    """hpcgen itself in the sid root, from this checkout, with sid's own Python."""

    sid: Sid
    packages: Path

    def run(
        self,
        words: Sequence[Argument],
        *,
        binds: Sequence[Bind] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        before: str = "",
        check: bool = True,
        timeout: float = 1800,
    ) -> Run:
        """Run ``hpcgen WORDS`` there; the rest is as in :meth:`Sid.run`."""
        return self.starts(
            ["python3", "-m", "hpcgen", *words],
            binds=binds,
            env=env,
            cwd=cwd,
            before=before,
            check=check,
            timeout=timeout,
        )

    def starts(
        self, command: Sequence[Argument], *, binds: Sequence[Bind], env: Mapping[str, str] | None = None, **also: Any
    ) -> Run:
        """Run what starts hpcgen there; the rest is as in :meth:`Sid.run`."""
        own = [(HERE.parent.parent, "/hpcgen/checkout"), (self.packages, "/hpcgen/packages")]
        paths = {"PYTHONPATH": "/hpcgen/checkout:/hpcgen/packages", "PYTHONDONTWRITEBYTECODE": "1"}
        return self.sid.run(command, binds=[*own, *binds], env={**paths, **(env or {})}, **also)


@dataclass(frozen=True)
class Slurm(Tool):
    """A running one-node Slurm."""

    folder: Path
    partitions: tuple[str, ...]
    prefix = ()
    """Words before a command that is to run where this Slurm's commands work."""

    def test_only(self, job: Path, *, check: bool = True) -> Run:
        """Have sbatch read a job script and say when it would start, or why not."""
        return self.run(["sbatch", "--test-only", job], cwd=job.parent, check=check, timeout=60)

    def submit(self, job: Path, *, check: bool = True, timeout: float = 300) -> Run:
        """Submit a job script from its own folder and wait until it has ended."""
        return self.run(["sbatch", "-W", job], cwd=job.parent, check=check, timeout=timeout)


@dataclass
class Clusters:
    """The Slurms of a session, one for each list of partitions."""

    env: Mapping[str, str]
    running: dict[tuple[str, ...], Slurm] = field(default_factory=dict)

    def get(
        self, *partitions: str, cpus: int | None = None, memory: int | None = None, plugin: Path | None = None
    ) -> Slurm:
        """The Slurm with these partitions, started where there is none.

        ``cpus`` is what its node claims to have, ``memory`` the MiB of each CPU of a job that asks for none, where jobs
        are held to their memory, ``plugin`` a SPANK plugin that sbatch gets options from.
        """
        key = (*partitions, str(cpus), str(memory), str(plugin))
        if key not in self.running:
            # a short path, because it becomes part of a socket's name
            folder = Path(tempfile.mkdtemp(prefix="slurm-", dir=self.env["HPCGEN_TESTBED"]))
            options = [x for name in partitions for x in ("--partition", name)]
            options += ["--cpus", str(cpus)] if cpus else []
            options += ["--memory", str(memory)] if memory else []
            options += ["--plugin", str(plugin)] if plugin else []
            started = variables(script("slurm-start", folder, *options, env=self.env))
            self.running[key] = Slurm({**self.env, **started}, folder, partitions)
        return self.running[key]

    def stop(self) -> None:
        """Stop all of them."""
        for cluster in self.running.values():
            script("slurm-stop", cluster.folder, env=self.env)
            shutil.rmtree(cluster.folder, ignore_errors=True)


REPORTS: list[str] = []
"""Times and sizes of the builds, printed at the end of a session; nothing depends on them."""


def need(*tools: str, path: str) -> None:
    """Fail, with what to do, where one of the tools is missing."""
    missing = [tool for tool in tools if shutil.which(tool, path=path) is None]
    if missing:
        pytest.fail(f"{', '.join(missing)} missing: {INSTALL}")
