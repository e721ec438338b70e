"""Files and kits on real file systems: whole or not at all, whatever goes wrong."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hpcgen.core.errors import OutputError
from hpcgen.core.support import writing
from hpcgen.core.support.writing import KitFile, write_file, write_kit

OLD = {
    "hpcgen.lock": KitFile("old lock"),
    "Dockerfile": KitFile("old recipe"),
    "job.slurm": KitFile("old job", executable=True),
    "files/old/list.txt": KitFile("old list"),
}
NEW = {
    "hpcgen.lock": KitFile("new lock"),
    "Dockerfile": KitFile("new recipe"),
    "build.sh": KitFile("new build", executable=True),
    "files/new/list.txt": KitFile("new list"),
}
RETIRED = frozenset({"job.slurm", "job.pbs", "files/old/list.txt"})
AFTER_NEW = {name: file.text for name, file in NEW.items()}
AFTER_OLD = {name: file.text for name, file in OLD.items()}


def found(folder: Path) -> dict[str, str]:
    """All there is in and under ``folder``, hidden things too; empty folders end in a slash."""
    things = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            things[name] = f"-> {path.readlink()}"
        elif path.is_file():
            things[name] = path.read_text()
        elif not any(path.iterdir()):
            things[f"{name}/"] = ""
    return things


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def message(failing: object) -> str:
    with pytest.raises(OutputError) as caught:
        failing()  # type: ignore[operator]
    return str(caught.value)


@contextlib.contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Root may write everywhere, so let go of that for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder whose parents everybody may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with umask(0o022):
        write_file(path, "one\n")
        assert (path.read_text(), mode(path)) == ("one\n", 0o644)
        write_file(path, "two ü\n", executable=True)
        assert (path.read_text(encoding="utf-8"), mode(path)) == ("two ü\n", 0o755)
    with umask(0o077):
        write_file(path, "three", executable=True)
        assert mode(path) == 0o700
    assert found(tmp_path) == {"a.txt": "three"}


def test_who_reads_the_old_file_meanwhile_reads_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_file(path, "old")
    with path.open() as reader:
        write_file(path, "new and longer")
        assert reader.read() == "old"


@pytest.mark.parametrize("marker_first", [True, False])
def test_a_kit_in_a_new_place(tmp_path: Path, marker_first: bool) -> None:
    kit = tmp_path / "kit"
    files = OLD if marker_first else dict(reversed(OLD.items()))
    with umask(0o027):
        write_kit(kit, files)
    assert found(tmp_path) == {f"kit/{name}": text for name, text in AFTER_OLD.items()}
    assert mode(kit) == 0o750
    assert mode(kit / "job.slurm") == 0o750
    assert mode(kit / "Dockerfile") == 0o640


def test_a_kit_in_an_empty_folder_keeps_the_folder(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    kit.mkdir(mode=0o700)
    inode = kit.stat().st_ino
    write_kit(kit, NEW)
    assert found(tmp_path) == {f"kit/{name}": text for name, text in AFTER_NEW.items()}
    assert (kit.stat().st_ino, mode(kit)) == (inode, 0o700)


def test_a_newer_kit_over_an_older_one_leaves_the_files_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit = tmp_path / "kit"
    write_kit(kit, OLD)
    (kit / "notes.txt").write_text("mine")
    (kit / "image").mkdir()
    (kit / "image" / "layer").write_text("big")
    (kit / "link").symlink_to("nowhere")
    monkeypatch.chdir(kit)
    write_kit(Path(), NEW, retired=RETIRED)
    # seen from the shell that stands in it
    assert found(Path()) == {**AFTER_NEW, "notes.txt": "mine", "image/layer": "big", "link": "-> nowhere"}


def test_without_retired_names_an_older_file_stays(tmp_path: Path) -> None:
    write_kit(tmp_path / "kit", OLD)
    write_kit(tmp_path / "kit", NEW)
    assert found(tmp_path / "kit") == {**AFTER_NEW, "job.slurm": "old job", "files/old/list.txt": "old list"}


def test_places_where_no_kit_can_be(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    assert message(lambda: write_kit(file, NEW)) == (
        f"cannot write {file}: this is a file, not a folder\n  remedy: name a new or an empty folder"
    )
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").write_text("years of work")
    assert message(lambda: write_kit(full, NEW)) == (
        f"cannot write {full}: this folder is not empty and not a kit (it has no hpcgen.lock)\n"
        "  remedy: name a new or an empty folder"
    )
    link = tmp_path / "link"
    link.symlink_to(full)
    assert message(lambda: write_kit(link, NEW)) == (
        f"cannot write {link}: this is a symbolic link\n  remedy: name the folder that it points to"
    )
    lonely = tmp_path / "no" / "such" / "kit"
    assert message(lambda: write_kit(lonely, NEW)) == (
        f"cannot write {lonely}: the folder it belongs in does not exist\n  remedy: create that folder first (mkdir -p)"
    )
    below = file / "kit"
    assert message(lambda: write_kit(below, NEW)) == (
        f"cannot write {below}: a part of its path is not a folder\n  remedy: check the path"
    )
    long = tmp_path / ("x" * 300)
    assert message(lambda: write_kit(long, NEW)).startswith(f"cannot write {long}: the name is too long\n")
    assert found(tmp_path) == {"file": "x", "full/thesis.tex": "years of work", "link": f"-> {full}"}


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    assert message(lambda: write_file(tmp_path, "x")) == (
        f"cannot write {tmp_path}: this is a folder\n  remedy: remove it, or write elsewhere"
    )
    target = tmp_path / "target"
    target.write_text("theirs")
    link = tmp_path / "link"
    link.symlink_to(target)
    assert message(lambda: write_file(link, "x")) == (
        f"cannot write {link}: this is a symbolic link\n  remedy: remove it, or write elsewhere"
    )
    assert message(lambda: write_file(Path("/dev/full"), "x")) == (
        "cannot write /dev/full: this is not a regular file\n  remedy: remove it, or write elsewhere"
    )
    lonely = tmp_path / "no" / "a.txt"
    assert message(lambda: write_file(lonely, "x")) == (
        f"cannot write {lonely}: the folder it belongs in does not exist\n  remedy: create that folder first (mkdir -p)"
    )
    odd = tmp_path / "odd"
    assert message(lambda: write_file(odd, "\udc80")).startswith(
        f"cannot write {odd}: the text cannot be written as UTF-8\n"
    )
    assert sorted(os.listdir(tmp_path)) == ["link", "target"]
    assert target.read_text() == "theirs"


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_name_in_the_kit_that_somebody_took(tmp_path: Path, kind: str) -> None:
    kit = tmp_path / "kit"
    write_kit(kit, OLD)
    if kind == "folder":
        (kit / "build.sh").mkdir()
        (kit / "build.sh" / "work").write_text("mine")
        expected = {**AFTER_OLD, "build.sh/work": "mine"}
    else:
        (tmp_path / "shared").write_text("mine")
        (kit / "build.sh").symlink_to(tmp_path / "shared")
        expected = {**AFTER_OLD, "build.sh": f"-> {tmp_path / 'shared'}"}
    said = {"folder": "this is a folder", "link": "this is a symbolic link"}[kind]
    assert message(lambda: write_kit(kit, NEW)) == (
        f"cannot write {kit / 'build.sh'}: {said}\n  remedy: remove it, or write elsewhere"
    )
    assert found(kit) == expected


def test_a_link_does_not_lead_the_kit_s_files_elsewhere(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    write_kit(kit, {name: file for name, file in OLD.items() if "/" not in name})
    (tmp_path / "theirs").mkdir()
    (kit / "files").symlink_to(tmp_path / "theirs")
    assert message(lambda: write_kit(kit, NEW)).startswith(
        f"cannot write {kit / 'files'}: this is a symbolic link, not a folder\n"
    )
    assert list((tmp_path / "theirs").iterdir()) == []


def test_permission_denied(open_folder: Path) -> None:
    kit = open_folder / "kit"
    write_kit(kit, OLD)
    write_file(open_folder / "a.txt", "old")
    kit.chmod(0o555)
    open_folder.chmod(0o555)
    denied = "permission denied\n  remedy: write to one of your own folders"
    with as_ordinary_user():
        assert message(lambda: write_kit(kit, NEW)) == f"cannot write {kit}: {denied}"
        assert message(lambda: write_kit(open_folder / "b", NEW)) == f"cannot write {open_folder / 'b'}: {denied}"
        assert message(lambda: write_file(open_folder / "a.txt", "new")) == (
            f"cannot write {open_folder / 'a.txt'}: {denied}"
        )
    open_folder.chmod(0o755)
    kit.chmod(0o755)
    assert found(open_folder) == {"a.txt": "old", **{f"kit/{name}": text for name, text in AFTER_OLD.items()}}


def test_who_never_ends_is_waited_for_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "PATIENCE_S", 0.1)
    kit = tmp_path / "kit"
    write_kit(kit, OLD)
    descriptor = os.open(kit, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert message(lambda: write_kit(kit, NEW)) == (
            f"cannot write {kit}: another hpcgen is writing there\n  remedy: wait until it has finished"
        )
    finally:
        os.close(descriptor)
    assert found(kit) == AFTER_OLD
    write_kit(kit, NEW, retired=RETIRED)
    assert found(kit) == AFTER_NEW


@pytest.mark.parametrize("name", ["", ".", "..", "a/../b", "/etc/passwd", "a//b", "a\nb", ".hpcgen-swap"])
def test_names_that_would_leave_the_kit_are_a_mistake_of_the_caller(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not a file of a kit"):
        write_kit(tmp_path / "kit", {**NEW, name: KitFile("x")})
    with pytest.raises(ValueError, match="a kit needs its marker"):
        write_kit(tmp_path / "kit", {"Dockerfile": KitFile("x")})
    assert found(tmp_path) == {}


# The rest happens in a process of its own, because it is limited, broken or killed.
PROLOGUE = """
import errno, os, resource, signal, sys
from pathlib import Path
from hpcgen.core.errors import OutputError
from hpcgen.core.support import writing
from hpcgen.core.support.writing import KitFile, write_file, write_kit
target = Path(sys.argv[1])
# A shell's background job starts with interrupts ignored, and would hand that on to this process.
signal.signal(signal.SIGINT, signal.default_int_handler)
NEW = {"hpcgen.lock": KitFile("new lock"), "Dockerfile": KitFile("new recipe"),
       "build.sh": KitFile("new build", executable=True), "files/new/list.txt": KitFile("new list")}
def at_rename(number, act):
    seen = 0
    def hook(event, arguments):
        nonlocal seen
        if event == "os.rename":
            seen += 1
            if seen == number:
                act()
    sys.addaudithook(hook)
def attempt(write):
    try:
        write()
    except OutputError as error:
        print(error)
        sys.exit(error.exit_code)
"""


def in_a_process(target: Path, script: str) -> subprocess.CompletedProcess[str]:
    """The script in a fork of this process, which saves the start of Python; how it ended and what it said."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.stdout, sys.stderr, sys.argv = os.fdopen(1, "w"), os.fdopen(2, "w"), ["-c", str(target)]
                exec(PROLOGUE + script, {"__name__": "__main__"})
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([script], status, out.read(), err.read())


LARGE = 'NEW["selftest.sh"] = KitFile("x" * 20_000)\nresource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))\n'


def test_a_file_that_outgrows_the_limit(tmp_path: Path) -> None:
    write_file(tmp_path / "a.txt", "old")
    write_kit(tmp_path / "kit", OLD)
    before = found(tmp_path)
    said = "the file would be larger than allowed\n  remedy: raise the limit (ulimit -f)\n"
    for target, write in (
        ("a.txt", 'write_file(target, "x" * 20_000)'),
        ("kit", "write_kit(target, NEW)"),
        ("fresh", "write_kit(target, NEW)"),
    ):
        done = in_a_process(tmp_path / target, LARGE + f"attempt(lambda: {write})")
        assert (done.stdout, done.returncode) == (f"cannot write {tmp_path / target}: {said}", 7), done.stderr
        assert found(tmp_path) == before


@pytest.mark.root
def test_a_full_disk(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.fail("this tier needs root: pytest -m root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=True)
    try:
        kit, file, empty = disk / "kit", disk / "a.txt", disk / "empty"
        write_kit(kit, OLD)
        write_file(file, "old")
        empty.mkdir()
        before = found(disk)
        large = {**NEW, "selftest.sh": KitFile("x" * 400_000)}
        full = "the disk is full\n  remedy: free some space, or write elsewhere"
        for target in (kit, empty, disk / "fresh"):
            assert message(lambda target=target: write_kit(target, large)) == f"cannot write {target}: {full}"
            assert found(disk) == before
        assert message(lambda: write_file(file, "x" * 400_000)) == f"cannot write {file}: {full}"
        assert found(disk) == before
        # and without a single free block: not even folders or short files
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        before = found(disk)
        assert message(lambda: write_kit(kit, NEW, retired=RETIRED)) == f"cannot write {kit}: {full}"
        assert found(disk) == before
        (disk / "filler").unlink()
        write_kit(kit, NEW, retired=RETIRED)
        assert found(kit) == AFTER_NEW
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        read_only = "the file system is read-only\n  remedy: write elsewhere"
        for target in (kit, empty, disk / "fresh"):
            assert message(lambda target=target: write_kit(target, OLD)) == f"cannot write {target}: {read_only}"
        assert message(lambda: write_file(file, "new")) == f"cannot write {file}: {read_only}"
        assert found(kit) == AFTER_NEW
    finally:
        subprocess.run(["umount", disk], check=True)


# Replacing OLD by NEW renames the list, four old files out and four new ones in.
RENAMES = range(1, 10)


@pytest.mark.parametrize("number", RENAMES)
def test_a_rename_that_fails_leaves_the_old_kit(tmp_path: Path, number: int) -> None:
    kit = tmp_path / "kit"
    write_kit(kit, OLD)
    (kit / "notes.txt").write_text("mine")
    before = found(kit)
    done = in_a_process(
        kit,
        f"""
def fail(): raise OSError(errno.EDQUOT, "quota")
at_rename({number}, fail)
attempt(lambda: write_kit(target, NEW, retired=frozenset(["job.slurm", "files/old/list.txt"])))
""",
    )
    assert (done.stdout, done.returncode) == (
        f"cannot write {kit}: your disk quota is used up\n  remedy: free some space, or write elsewhere\n",
        7,
    ), done.stderr
    assert found(tmp_path) == {f"kit/{name}": text for name, text in before.items()}


@pytest.mark.parametrize("number", RENAMES)
def test_an_interrupt_leaves_the_old_kit(tmp_path: Path, number: int) -> None:
    kit = tmp_path / "kit"
    write_kit(kit, OLD)
    done = in_a_process(
        kit,
        f"""
at_rename({number}, lambda: os.kill(os.getpid(), signal.SIGINT))
write_kit(target, NEW, retired=frozenset(["job.slurm", "files/old/list.txt"]))
""",
    )
    assert "KeyboardInterrupt" in done.stderr
    assert found(kit) == AFTER_OLD


@pytest.mark.parametrize("number", RENAMES)
def test_after_a_kill_no_half_kit_passes_for_a_kit(tmp_path: Path, number: int) -> None:
    kit = tmp_path / "kit"
    write_kit(kit, OLD)
    (kit / "notes.txt").write_text("mine")
    kill = f"at_rename({number}, lambda: os.kill(os.getpid(), signal.SIGKILL))\n"
    write = 'write_kit(target, NEW, retired=frozenset(["job.slurm", "files/old/list.txt"]))'

    def assert_no_mixture() -> None:
        hidden = (".hpcgen-swap/", "files/new/")
        visible = {name: text for name, text in found(kit).items() if not name.startswith(hidden) or name in AFTER_NEW}
        assert "hpcgen.lock" not in visible or visible == {**AFTER_OLD, "notes.txt": "mine"}

    assert in_a_process(kit, kill + write).returncode == -9
    assert_no_mixture()
    # Killed again while it puts things right, and again: still nothing is lost.
    for again in (1, 2):
        in_a_process(kit, kill.replace(f"({number},", f"({again},") + write)
        assert_no_mixture()
    # The next attempt fails for want of space: back is the old kit, not a mixture.
    assert in_a_process(kit, LARGE + "attempt(lambda: write_kit(target, NEW))").returncode == 7
    assert found(kit) == {**AFTER_OLD, "notes.txt": "mine"}
    write_kit(kit, NEW, retired=RETIRED)
    assert found(tmp_path) == {f"kit/{name}": text for name, text in {**AFTER_NEW, "notes.txt": "mine"}.items()}


def test_a_kill_after_the_last_rename_keeps_the_new_kit(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    write_kit(kit, OLD)
    script = """
def hook(event, arguments):
    if event == "shutil.rmtree":
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
write_kit(target, NEW, retired=frozenset(["job.slurm", "files/old/list.txt"]))
"""
    assert in_a_process(kit, script).returncode == -9
    assert in_a_process(kit, LARGE + "attempt(lambda: write_kit(target, NEW))").returncode == 7
    assert found(kit) == AFTER_NEW


def test_the_reason_of_the_operating_system_is_kept_where_it_has_no_plainer_words(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    write_kit(kit, OLD)
    said = os.strerror(errno.EIO)
    done = in_a_process(
        kit,
        f"""
def fail(): raise OSError(errno.EIO, {said!r})
at_rename(1, fail)
attempt(lambda: write_kit(target, NEW))
""",
    )
    assert done.stdout == f"cannot write {kit}: {said}\n  remedy: write elsewhere\n"


def test_what_a_killed_write_left_goes_with_the_next_one(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    killed = in_a_process(file, 'at_rename(1, lambda: os.kill(os.getpid(), signal.SIGKILL))\nwrite_file(target, "new")')
    assert killed.returncode == -signal.SIGKILL
    [half] = tmp_path.iterdir()
    assert half.name.endswith(".new") and half.read_text() == "new"
    for other in (".hpcgen-0000", half.name.replace(half.name[8:16], "00000000"), f"{half.name}x"):
        (tmp_path / other).write_text("not of this machine, or not ours")
    with half.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write_file(file, "first")
        assert half.exists(), "somebody works with it"
    write_file(file, "second")
    assert not half.exists() and file.read_text() == "second"
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("swapped", ["folder", "target"])
def test_a_link_that_is_put_there_while_a_file_is_written_is_not_followed(tmp_path: Path, swapped: str) -> None:
    """The swap happens right before the file gets its name, after all that can be checked was checked."""
    folder, theirs = tmp_path / "folder", tmp_path / "theirs"
    folder.mkdir()
    theirs.mkdir()
    (theirs / "a.txt").write_text("theirs")
    swap = {
        "folder": 'os.chdir("..") or parent.replace(moved) or parent.symlink_to(theirs)',
        "target": 'target.symlink_to(theirs / "a.txt")',
    }[swapped]
    paths = 'parent = target.parent\nmoved, theirs = parent.with_name("moved"), parent.with_name("theirs")\n'
    once = f"swapped = []\ndef swap():\n    swapped or (swapped.append(1), {swap.replace(chr(39), chr(34))})\n"
    hook = "sys.addaudithook(lambda event, arguments: event == 'os.rename' and swap())\n"
    done = in_a_process(folder / "a.txt", f'{paths}{once}{hook}write_file(target, "mine")')
    assert done.returncode == 0, done.stderr
    assert (theirs / "a.txt").read_text() == "theirs" and [path.name for path in theirs.iterdir()] == ["a.txt"]
    written = tmp_path / ("moved" if swapped == "folder" else "folder") / "a.txt"
    assert written.read_text() == "mine" and not written.is_symlink()


def test_a_folder_that_becomes_a_link_while_a_kit_is_written_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever shares the folder could otherwise have a file of its writer's replaced, far from the kit."""
    kit, theirs, fill = tmp_path / "kit", tmp_path / "theirs", writing._fill
    write_kit(kit, {**OLD, "files/list.txt": KitFile("old")})
    theirs.mkdir()
    (theirs / "list.txt").write_text("theirs")

    def swapped(folder: Path, files: Mapping[str, KitFile]) -> None:
        fill(folder, files)
        (kit / "files").rename(tmp_path / "moved")
        (kit / "files").symlink_to(theirs)

    monkeypatch.setattr(writing, "_fill", swapped)
    with pytest.raises(OutputError):
        write_kit(kit, {**NEW, "files/list.txt": KitFile("new")})
    assert found(theirs) == {"list.txt": "theirs"}
    monkeypatch.undo()
    (kit / "files").unlink()
    (tmp_path / "moved").rename(kit / "files")
    write_kit(kit, {**NEW, "files/list.txt": KitFile("new")})
    assert found(kit)["files/list.txt"] == "new"


OF = [f"of-{number}" for number in range(3)]


def test_first_kits_in_one_new_folder_take_turns(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    for _ in range(20):
        ready, go = os.pipe()
        children = []
        for number in range(3):
            if (child := os.fork()) == 0:
                os.close(go)
                os.read(ready, 1)
                status = 1
                with contextlib.suppress(BaseException):
                    write_kit(kit, {f"of-{number}": KitFile("x"), "hpcgen.lock": KitFile(str(number))}, frozenset(OF))
                    status = 0
                os._exit(status)
            children.append(child)
        os.close(go)
        os.close(ready)
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
        last = (kit / "hpcgen.lock").read_text()
        assert found(tmp_path) == {f"kit/of-{last}": "x", "kit/hpcgen.lock": last}
        shutil.rmtree(kit)


def test_what_a_killed_first_kit_left_beside_goes_with_the_next_one(tmp_path: Path) -> None:
    kill = "at_rename(1, lambda: os.kill(os.getpid(), signal.SIGKILL))\nwrite_kit(target, NEW)"
    assert in_a_process(tmp_path / "kit", kill).returncode == -signal.SIGKILL
    [left] = tmp_path.iterdir()
    assert left.name.startswith(".hpcgen-") and found(left) == AFTER_NEW
    descriptor = os.open(left, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    write_kit(tmp_path / "other", NEW)
    assert left.exists(), "somebody works with it"
    os.close(descriptor)
    write_kit(tmp_path / "kit", NEW)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kit", "other"]


def test_who_waits_writes_after_the_other(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    write_kit(kit, OLD)
    descriptor = os.open(kit, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    if (child := os.fork()) == 0:
        status = 1
        with contextlib.suppress(BaseException):
            write_kit(kit, NEW, retired=RETIRED)
            status = 0
        os._exit(status)
    assert os.waitpid(child, os.WNOHANG) == (0, 0)
    assert found(kit) == AFTER_OLD
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
    assert os.waitpid(child, 0)[1] == 0 and found(kit) == AFTER_NEW
