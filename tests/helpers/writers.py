"""Everything of hpcgen that writes, as commands in the present folder; :mod:`tests.helpers.stopped` runs them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tests.conftest import GOLDEN, ROOT
from tests.helpers.bundles import QUICK, a_lock, wants

SPECIMEN = ROOT / "tests" / "specimens" / "0.1.0"
SITE = ("--site", "workstation")
View = dict[str, str]


class Writer(NamedTuple):
    """Something that writes.

    ``run``: does it in the present folder; its number tells two that work at once apart. ``prepare``: makes what is
    there before. ``view``: what came of it, by default every file. ``once``: it refuses what it made before.
    """

    run: Callable[[int], int]
    prepare: Callable[[], None] = lambda: None
    view: Callable[[], View] = lambda: everything(Path())
    once: bool = False


def everything(folder: Path) -> View:
    """All files below a folder with their content, and the empty folders."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = path.read_bytes().decode("latin-1")
        elif not any(path.iterdir()):
            found[f"{name}/"] = ""
    return found


def hpcgen(*words: str) -> int:
    """The command, in this process."""
    from hpcgen.cli import main

    sys.argv = ["hpcgen", "-q", *words]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1


# render

STACKS = ("mpi-hello", "mpi-python")


def render(number: int) -> int:
    return hpcgen("render", *SITE, "--stack", STACKS[number], "-o", "kit")


def older_kit() -> None:
    Path("copied").mkdir()
    Path("copied/data.txt").write_text("data")
    text = Path(ROOT / "recipes" / "mpi-hello.yaml").read_text()
    Path("older.yaml").write_text(
        text.replace("name: mpi-hello", "name: older") + "copy: [{from: copied, to: /opt/data}]\n"
    )
    assert hpcgen("render", "--site", "supermuc", "--stack", "older.yaml", "-o", "kit") == 0


# lock, bundle: what the network answers is made up


def lock(number: int) -> int:
    from tests.unit.supply.pin.test_locking import Network

    with pytest.MonkeyPatch.context() as here:
        Network(here)
        return hpcgen("lock", *SITE, "--stack", "mpi-hello", "--set", "base.provider=debian", "-o", "the.lock")


def wanted_files() -> None:
    wanted = wants(Path("origin").absolute(), [f"f{each}.tar.gz" for each in range(3)])
    Path("wanted.json").write_bytes(msgspec.json.encode(wanted))


def bundle(target: str, split: int | None = None) -> int:
    from hpcgen.core.errors import HpcgenError
    from hpcgen.core.model.bundle import WantedFile
    from hpcgen.supply.bundle.create import Creation, create_bundle
    from tests.helpers.locks import CATALOG

    wanted = msgspec.json.decode(Path("wanted.json").read_bytes(), type=list[WantedFile])
    how = Creation(jobs=1, policy=QUICK, catalog=CATALOG, split=split)
    try:
        create_bundle(a_lock(), wanted, Path(target).absolute(), how)
    except HpcgenError as error:
        print(f"hpcgen: error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


# build, extend: programs that make files stand for the engines

ENGINES = {
    "apptainer": """\
[ "$1" = build ] || exec echo "apptainer version 1.4.5"
[ "$2" != --help ] || exit 0
for word; do case $word in *.sif) echo image > "$word" ;; esac; done
""",
    "ch-image": "echo 0.31\n",
    "ch-convert": """\
for word; do :; done
case $word in */*) mkdir "$word" && mkdir "$word/ch" && echo image > "$word/file" ;; *) echo 0.31 ;; esac
""",
}


def engines() -> None:
    Path("bin").mkdir()
    for name, text in ENGINES.items():
        (Path("bin") / name).write_text(f"#!/bin/sh\n{text}")
        (Path("bin") / name).chmod(0o755)


def kit_to_build() -> None:
    engines()
    shutil.copytree(GOLDEN / "hlrs-testbed" / "mpi-hello", "kit")


def build(number: int) -> int:
    os.environ["PATH"] = f"{Path('bin').absolute()}:/usr/bin:/bin"
    return hpcgen("build", "kit", "--engine", "apptainer", "-o", f"image-{number}.sif")


def image_to_extend() -> None:
    engines()
    shutil.copytree(GOLDEN / "workstation" / "mpi-hello", "root/opt/hpcgen/kit")
    Path("root/ch").mkdir()


def extend(number: int) -> int:
    os.environ["PATH"] = f"{Path('bin').absolute()}:/usr/bin:/bin"
    words = ("--engine", "ch-image", "--allow-unsupported", "--notest")
    return hpcgen("extend", "root", "--add", "apt:bc", *words, "-o", f"more-{number}")


def images() -> View:
    """The images, the half ones too, and whether every record can be read; the records have times and random names."""
    found = {name: text for name, text in everything(Path()).items() if not name.startswith(("kit/", "state/"))}
    from hpcgen.builders.records.store import entries, find

    records = [find(each.head.id) for each in entries()]
    assert len(records) == len([path for path in Path("state/hpcgen/records").glob("*.json") if path.name[0] != "."])
    found["a record"] = str(any(each.result == "built" and each.image is not None for each in records))
    return found


# install


def image() -> None:
    shutil.copytree(GOLDEN / "supermuc" / "mpi-hello", "root/opt/hpcgen/kit")
    Path("root/ch").mkdir()
    engines()
    (Path("bin") / "ch-run").write_text("#!/bin/sh\necho 0.31\n")
    (Path("bin") / "ch-run").chmod(0o755)


def install(number: int) -> int:
    os.environ["PATH"] = f"{Path('bin').absolute()}:/usr/bin:/bin"
    name = ("mine", "other")[number]
    words = ("--command", f"{name}-sh=/bin/sh", "--command", f"{name}-new=/bin/new", "--name", name)
    return hpcgen("install", "root", "--prefix", "apps", *words)


def older_install() -> None:
    image()
    os.environ["PATH"] = f"{Path('bin').absolute()}:/usr/bin:/bin"
    for name in ("mine", "other"):
        words = ("--command", f"{name}-sh=/bin/old", "--command", f"{name}-old=/bin/old", "--name", name)
        assert hpcgen("install", "root", "--prefix", "apps", *words) == 0


def uninstall(number: int) -> int:
    return hpcgen("uninstall", ("mine", "other")[number], "--prefix", "apps")


# new files

SLURM = "ClusterName=zz\nNodeName=n[1-4] CPUs=8 RealMemory=16000 Sockets=1 CoresPerSocket=8 ThreadsPerCore=1\n"


def slurm_files() -> None:
    Path("slurm.conf").write_text(SLURM + "PartitionName=p Nodes=ALL Default=YES MaxTime=60\n")


def site_new(number: int) -> int:
    return hpcgen("site", "new", "zz", "--from", "slurm", "slurm.conf", "-o", "site_profiles/zz.yaml")


def a_project() -> None:
    Path("project").mkdir()
    Path("project/requirements.txt").write_text("numpy==1.26.4\n")
    Path("project/main.py").write_text("import numpy\nprint(numpy.__version__)\n")


def init(number: int) -> int:
    return hpcgen("init", "project")


# fleets


def parts() -> None:
    from hpcgen.plugins.fleet.records import LockedImage, update_lock
    from tests.unit.plugins.fleet.test_fleet import locked

    Path("fleet.yaml").write_text("fleet: 1\n")
    image: LockedImage = locked()
    for name in ("zero", "one"):
        update_lock(Path(f"{name}.part"), {name: image})
    update_lock(Path("fleet.lock"), {"three": image})
    for path in Path().glob(".*.busy"):
        path.unlink()


def fleet_lock(number: int) -> int:
    return hpcgen("fleet", "merge", ("zero", "one")[number] + ".part")


# artifacts


def artifacts() -> None:
    from hpcgen.builders.artifacts.store import ArtifactStore
    from tests.unit.builders.artifacts.test_store import artifact

    for number in range(2):
        ArtifactStore(Path("store")).put(*artifact(Path(), b"compiled %d" % number, key=f"a{number}" * 32))


def push(number: int) -> int:
    return hpcgen("cache", "push", "target", "--cache", "store")


def pushed() -> View:
    """The other store; what it says that it has is whole, at every moment."""
    from hpcgen.builders.artifacts.store import ArtifactStore, damaged

    assert damaged(ArtifactStore(Path("target"))) == []
    return everything(Path("target"))


# measuring


TRIALS = 2


def study(number: int) -> int:
    from hpcgen.cli.error_report import error_data
    from hpcgen.plugins.tuning.tune import liveness
    from hpcgen.plugins.tuning.tune import search as looking
    from hpcgen.plugins.tuning.tune import study as own
    from tests.unit.plugins.tuning.tune.test_search import search
    from tests.unit.plugins.tuning.tune.test_search import study as opened

    # Nobody wants to wait half a minute for each lock that was never given back, nor minutes for a trial whose process
    # was killed before it said which it is. Optuna's least is 3 s.
    own.GRACE_S, liveness.STALE_S, looking.LOOK_S = 3, 6.0, 0.2
    try:
        search(opened(Path("a.study"), task=number), TRIALS, rounds=1, wait=True)
    except Exception as error:
        said = error_data(error)
        print(f"hpcgen: error: {said['message']}", file=sys.stderr)
        return int(said["exit_code"])
    return 0


def trials() -> View:
    """Which trials were measured, with what they gave; lines of the journal have times and processes."""
    from tests.unit.plugins.tuning.tune.test_search import study as opened

    counted = [each for each in opened(Path("a.study")).trials() if each.state in ("measured", "ended early")]
    # Two that begin at the same moment may both measure the default.
    assert any(each.settings == {} for each in counted)
    # Locks on their way out go after a minute.
    left = {name: "" for name in everything(Path()) if name != "a.study" and not name.endswith(".rename")}
    # Each of several that begin at once may measure one more than all were asked for.
    return {"trials": str(min(len(counted), TRIALS)), **left}


def tables() -> None:
    from tests.unit.plugins.tuning.measurements.test_imported import COLUMNS, LINES

    for number, line in enumerate(LINES[:2]):
        Path(f"{number}.csv").write_text(",".join(COLUMNS) + f"\n{line}\n")


def measurements(number: int) -> int:
    return hpcgen("measurements", "import", "modak", f"{number}.csv", "--software", "aster", "--to", "m/rows.jsonl")


def rows() -> View:
    """The rows of several processes stand in any order."""
    found = everything(Path())
    found["m/rows.jsonl"] = "".join(sorted(found.get("m/rows.jsonl", "").splitlines(keepends=True)))
    return found


WRITERS: dict[str, Writer] = {
    "render, new": Writer(render),
    "render, over an older kit": Writer(render, older_kit),
    "lock": Writer(lock),
    "bundle create": Writer(lambda number: bundle("B"), wanted_files, once=True),
    "bundle create, in pieces": Writer(lambda number: bundle("B.tar", 1 << 20), wanted_files, once=True),
    "build with its record": Writer(build, kit_to_build, images),
    "install, new": Writer(install, image),
    "install, over an older one": Writer(install, older_install),
    "uninstall": Writer(uninstall, older_install, once=True),
    "extend": Writer(extend, image_to_extend, images),
    "site new": Writer(site_new, slurm_files, once=True),
    "init": Writer(init, a_project, once=True),
    "fleet lock": Writer(fleet_lock, parts),
    "artifacts": Writer(push, artifacts, pushed),
    "tune study": Writer(study, view=trials),
    "measurements": Writer(measurements, tables, rows),
}
