"""Files of strangers that are well-formed, with hostile texts and numbers where the form has room for them.

Damage is refused by the parsers and tries little beyond them; these are read. What comes of them is held against what
they say: verdicts against OSV's own evaluation, profiles and stacks against the facts that were read. A fixed sample is
in the unit tier, 3,000 are in the slow one; the number of a case is its seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.model.component import Component
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack
from hpcgen.core.support import purl
from hpcgen.machine.detect.detection import combine
from hpcgen.machine.detect.profile import profile_of
from hpcgen.machine.site_sources.said import SourceSettings
from hpcgen.machine.site_sources.sources import read_source
from hpcgen.plugins.fleet.advisories import judged, read_advisories
from hpcgen.project.draft import stack_text
from hpcgen.project.making import draft_of
from tests.attack.bounded import Outcome, attempt, in_processes
from tests.attack.payloads import PAYLOADS
from tests.attack.test_damaged_files import CATALOG, damaged

SAMPLE, MANY = 20, 600
MOSTLY = 0.7
"""Of the cases, at least, that must have been accepted."""


def text_in(chance: random.Random, was: str) -> str:
    """A usual text, or one that would do harm, of what files in UTF-8 can hold."""
    if chance.randrange(3):
        return was
    return chance.choice(PAYLOADS).encode("utf-8", "ignore").decode() + chance.choice(["", was])


def printable_in(chance: random.Random, was: str) -> str:
    """The same of what YAML files may hold, too."""
    return "".join(c for c in text_in(chance, was) if c.isprintable())


# advisories

VERSIONS = [*map(str, range(1, 9)), "2.1", "2.1.0", "3.0rc1", "4.post1", "5+local"]


def advisory(chance: random.Random, folder: Path) -> None:
    """Random ranges, whose verdicts must be those of the evaluation that OSV's schema has, or unknown."""
    affected = [_affected(chance) for _ in range(chance.randint(1, 3))]
    data = {"id": text_in(chance, "X-1"), "summary": text_in(chance, "a hole"), "affected": affected}
    path = folder / "advisory.json"
    path.write_text(json.dumps({**data, "aliases": [text_in(chance, "CVE-1")], "details": text_in(chance, "x")}))
    (read,) = read_advisories(path)
    for version in VERSIONS:
        held = [Component("r", "python", "numpy", version, purl=purl.python_package("numpy", version))]
        said = [found.verdict for _, found in judged(read, held)]
        wanted = [_by_the_schema(each, version) for each in affected if each["package"]["name"] == "numpy"]
        assert len(said) == len(wanted)
        for found, right in zip(said, wanted, strict=True):
            assert found == right, (version, data)


def _affected(chance: random.Random) -> dict[str, Any]:
    def version() -> str:
        return chance.choice(
            [*VERSIONS[:-1], *VERSIONS[:-1], chance.choice(PAYLOADS).encode("utf-8", "ignore").decode()]
        )

    def event() -> dict[str, str]:
        what = chance.choice(["introduced", "introduced", "fixed", "fixed", "last_affected", "limit"])
        special = {"introduced": "0", "limit": "*"}.get(what)
        return {what: special if special is not None and chance.randrange(3) == 0 else version()}

    ranges = [
        {
            "type": chance.choice(["ECOSYSTEM"] * 5 + ["SEMVER", "GIT", text_in(chance, "OTHER")]),
            "events": [event() for _ in range(chance.randint(1, 5))],
        }
        for _ in range(chance.randint(0, 3))
    ]
    name = chance.choice(["numpy", "numpy", "numpy", "other", text_in(chance, "numpy")])
    listed = [version() for _ in range(chance.choice([0, 0, 1, 4]))]
    return {"package": {"ecosystem": "PyPI", "name": name}, "ranges": ranges, "versions": listed}


def _by_the_schema(affected: dict[str, Any], version: str) -> str:
    """ "Evaluation" of https://ossf.github.io/osv-schema, word for word, where every version has an order."""
    from packaging.version import Version

    def order(text: str) -> Any:
        try:
            return Version(Version(text).public)
        except ValueError:
            return None

    own = order(version)
    if any(text == version or order(text) == own for text in affected["versions"]):
        return "affected"
    verdicts = []
    for each in affected["ranges"]:
        if each["type"] == "GIT":
            continue
        events = [(what, text) for event in each["events"] for what, text in event.items()]
        at = {
            text: -1 if (what, text) == ("introduced", "0") else 99 if what == "limit" and "*" in text else order(text)
            for what, text in events
        }
        strange = each["type"] not in ("ECOSYSTEM", "SEMVER") or not any(what == "introduced" for what, _ in events)
        if strange or None in at.values():
            verdicts.append("unknown")
            continue
        verdicts.append("affected" if _inside(events, own, order) else "not affected")
    if "affected" in verdicts:
        return "affected"
    nothing = not verdicts and not affected["versions"]
    return "unknown" if "unknown" in verdicts or nothing else "not affected"


def _inside(events: list[tuple[str, str]], own: Any, order: Callable[[str], Any]) -> bool:
    limits = [text for what, text in events if what == "limit"]
    if limits and not any("*" in text or own < order(text) for text in limits):
        return False
    first = any(event == ("introduced", "0") for event in events)
    rest = [event for event in events if event[0] != "limit" and event != ("introduced", "0")]
    inside = first
    for what, text in sorted(rest, key=lambda event: order(event[1])):
        if what == "introduced" and own >= order(text):
            inside = True
        elif (what == "fixed" and own >= order(text)) or (what == "last_affected" and own > order(text)):
            inside = False
    return inside


# files of administrators


def slurm(chance: random.Random, folder: Path) -> None:
    def value(was: str) -> str:
        text = "".join(c for c in text_in(chance, was) if c not in '"#\\' and c.isprintable())
        return f'"{text}"' if " " in text else text

    def nodes() -> str:
        return chance.choice(["c[1-40]", "c[001-200,300]", "g[1-4]", "c[1-2]n[1-9]", "login1,login2", "c7"])

    lines = [
        f"ClusterName={value('aurelia')}",
        f"MpiDefault={value('pmix')}",
        f"SelectType={value('select/cons_tres')}",
    ]
    lines += [f"{chance.choice('ABCDE')}Setting{n}={value('1')}" for n in range(chance.randrange(9))]
    kinds = [nodes() for _ in range(chance.randint(1, 5))]
    for names in kinds:
        gres = f" Gres={value('gpu:a100:4')}" if chance.randrange(2) else ""
        lines.append(f"NodeName={names} CPUs={value('64')} RealMemory={value('250000')}{gres} Features={value('x')}")
    lines += [f"NodeSet=s Nodes={kinds[0]}"] if chance.randrange(2) else []
    for number in range(chance.randrange(4)):
        where = chance.choice([*kinds, "ALL"])
        lines.append(f"PartitionName={value(f'p{number}') or 'p'} Nodes={where} MaxTime={value('1-0')} Default=YES")
    chance.shuffle(lines)
    (folder / "slurm.conf").write_text("\n".join(lines), "utf-8")
    _as_profile("slurm", folder / "slurm.conf")


def reframe(chance: random.Random, folder: Path) -> None:
    as_python = chance.randrange(2)
    told = text_in if as_python else printable_in

    def partition(number: int) -> dict[str, Any]:
        return {
            "name": told(chance, f"p{number}"),
            "descr": told(chance, "nodes"),
            "scheduler": told(chance, "slurm"),
            "launcher": told(chance, "srun"),
            "access": [told(chance, "--partition=x"), told(chance, "-A group")],
            "environs": [told(chance, "gnu")],
            "max_jobs": chance.choice([1, 10**9, -1]),
            "processor": {"arch": told(chance, "zen3"), "num_cpus": chance.choice([128, 10**9, 0, True, 1.5])},
            "devices": [{"type": "gpu", "arch": told(chance, "sm_80"), "num_devices": chance.choice([4, -4, 10**12])}],
            "container_platforms": [{"type": told(chance, "Apptainer"), "modules": [told(chance, "apptainer/1.3")]}],
        }

    system = {
        "name": told(chance, "aurelia"),
        "descr": told(chance, "a cluster"),
        "hostnames": [told(chance, ".*")],
        "modules_system": told(chance, "lmod"),
        "partitions": [partition(number) for number in range(chance.randint(1, 4))],
    }
    environment = {
        "name": told(chance, "gnu"),
        "modules": [told(chance, "openmpi/4.1.6")],
        "cc": told(chance, "cc"),
    }
    data = {"systems": [system], "environments": [environment]}
    name = "settings.py" if as_python else "settings.json"
    text = f"site_configuration = {data!r}\n" if as_python else json.dumps(data)
    (folder / name).write_text(text, "utf-8")
    _as_profile("reframe", folder / name)


def spack(chance: random.Random, folder: Path) -> None:
    def external(name: str) -> dict[str, Any]:
        return {
            "spec": chance.choice(
                [printable_in(chance, name), *[f"{name}@{chance.randint(1, 9)}.1 os=debian12 target=zen3"] * 9]
            ),
            "prefix": printable_in(chance, f"/opt/{name}"),
            "modules": [printable_in(chance, f"{name}/1")],
        }

    names = ["openmpi", "mpich", "cray-mpich", "libfabric", "slurm", "cuda", "apptainer"]
    packages: dict[str, Any] = {
        name: {"externals": [external(name) for _ in range(chance.randint(1, 3))], "buildable": False}
        for name in chance.sample(names, chance.randint(1, 5))
    }
    packages["all"] = {
        "providers": {"mpi": [printable_in(chance, "openmpi")]},
        "target": [printable_in(chance, "zen3")],
    }
    (folder / "packages.yaml").write_text(json.dumps({"packages": packages}), "utf-8")
    _as_profile("spack", folder)


def _as_profile(kind: str, path: Path) -> None:
    """The profile has the facts that were read, on lines that command no terminal."""
    seen = combine([read_source(kind, path, SourceSettings("aurelia"))])
    text = profile_of(seen, "aurelia", "2026-11-25", kind, f"--from {kind} FILE").text
    assert all(line.isprintable() for line in text.split("\n"))
    data = loads(text, "aurelia.yaml").data
    assert data.keys() <= set(Site.__struct_fields__), data.keys()
    for path, fact in seen.facts.items():
        found: Any = data
        for step in path.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        assert found is None or plain(found) == plain(fact.value), path


def plain(value: Any) -> Any:
    """A value as YAML without types has it."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return str(value)


# projects


def project(chance: random.Random, folder: Path) -> None:
    def quoted(was: str) -> str:
        # TOML has no NUL and no lone surrogates; JSON's strings are its basic ones otherwise.
        return json.dumps(text_in(chance, was).replace("\0", "").replace("\x7f", ""))

    def line(was: str) -> str:
        return "".join(c for c in text_in(chance, was) if c.isprintable())

    writers: dict[str, Callable[[], str]] = {
        "pyproject.toml": lambda: (
            f"[project]\nname = {quoted('demo')}\nversion = '1'\ndescription = {quoted('x')}\n"
            f"dependencies = ['numpy>=1.20', 'mpi4py']\n"
            f"[project.scripts]\n{json.dumps(line('run'))} = {quoted('a:b')}\n"
        ),
        "requirements.txt": lambda: f"numpy==1.26.4\nscipy>=1.1  # {line('why')}\nmpi4py ; python_version > '3.9'\n",
        "environment.yml": lambda: json.dumps(
            {"name": text_in(chance, "demo"), "channels": ["conda-forge"], "dependencies": ["python=3.11", "numpy"]}
        ),
        "apt.txt": lambda: f"git\n# {line('x')}\nlibhwloc-dev\n",
        "CMakeLists.txt": lambda: (
            f'project(demo C CXX)\nfind_package(MPI REQUIRED)\nset(X "{line("x").translate({34: None, 92: None})}")\n'
            f"find_package({chance.choice(['HDF5', 'OpenMP', 'CUDAToolkit'])})\nadd_executable(demo main.c)\n"
        ),
        "job.sh": lambda: (
            f"#!/bin/bash\n#SBATCH --nodes={chance.randint(1, 9)}\n#SBATCH --job-name={line('demo')}\n"
            f"export OMP_NUM_THREADS=4\nexport MODE='{line('fast').translate({39: None})}'\n"
            f"srun ./demo --in '{line('data').translate({39: None})}'\n"
        ),
        "main.py": lambda: (
            f"import numpy\nTEXT = {text_in(chance, 'x')!r}\nif __name__ == '__main__':\n    print(TEXT)\n"
        ),
    }
    for name in chance.sample(list(writers), chance.randint(1, len(writers))):
        (folder / name).write_text(writers[name](), "utf-8")
    draft = draft_of(folder, CATALOG)
    written = stack_text(draft)
    assert all(each.isprintable() for each in written.split("\n"))
    if not draft.problems:
        assert convert(loads(written, "hpcgen.yaml"), Stack) == msgspec.convert(draft.data, Stack, strict=False)


KINDS = [advisory, slurm, reframe, spack, project]


@pytest.mark.parametrize("make", KINDS)
def test_what_is_accepted_says_what_the_file_says(make: Callable[[random.Random, Path], None], tmp_path: Path) -> None:
    outcome = Outcome()
    attempt(range(SAMPLE), damaged(make, tmp_path), outcome)
    assert not outcome.failures, outcome.failures[0]


@pytest.mark.slow
@pytest.mark.parametrize("make", KINDS)
def test_of_thousands_most_are_accepted(make: Callable[[random.Random, Path], None], tmp_path: Path) -> None:
    outcome = in_processes(range(SAMPLE, SAMPLE + MANY), damaged(make, tmp_path))
    print(f"{make.__name__}: {outcome}")
    assert not outcome.failures, "\n".join(outcome.failures[:5])
    assert outcome.counts["accepted"] > MOSTLY * MANY
