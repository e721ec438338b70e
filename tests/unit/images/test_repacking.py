"""A squashfs that takes over blocks of an older one: what it says of every file, what is new in it, damaged ones.

That Linux and unsquashfs read such a file is tested with the real tools: tests/containers/test_repacking.py.
"""

from __future__ import annotations

import os
import random
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hpcgen.images.repacking.layout import Unsuitable
from hpcgen.images.repacking.program import FAILURES, Asked, asked_of
from hpcgen.images.repacking.reading import Finished
from hpcgen.images.repacking.repack import repack
from hpcgen.images.repacking.tree import Tree
from hpcgen.images.repacking.writing import Blocks, write_tables

BLOCK = 4096
RANDOM = random.Random(1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of no, one and several blocks, links, a folder of many names."""
    made = tmp_path / "folder"
    (made / "many" / "empty").mkdir(parents=True)
    for number in range(300):
        (made / "many" / f"{number:04}-{'x' * 120}").write_text(str(number))
    (made / "large").write_bytes(RANDOM.randbytes(10 * BLOCK + 7))
    (made / "exact").write_bytes(RANDOM.randbytes(2 * BLOCK))
    (made / "text").write_text("the same line\n" * 3000)
    (made / "nothing").touch(mode=0o600)
    os.link(made / "large", made / "linked")
    (made / "link").symlink_to("/etc/passwd")
    os.mkfifo(made / "fifo")
    return made


def packed(folder: Path, target: Path) -> Path:
    """The folder as a squashfs, nothing taken over."""
    tree = Tree(os.fsencode(folder))
    files = [(path, entry) for path, _, entry in tree.files()]
    with ThreadPoolExecutor(2) as pool, target.open("wb") as stream:
        stream.write(bytes(96))
        blocks = Blocks(stream, BLOCK, pool, 0)
        for path, entry in files:
            blocks.add(entry, path)
        blocks.close()
        write_tables(stream, tree, BLOCK, 0, blocks.fragments)
    return target


def check(image: Path, folder: Path, offset: int = 0, without: frozenset[str] = frozenset()) -> None:
    """Every folder has the names that it has on this machine, and every file its content."""
    descriptor = os.open(image, os.O_RDONLY)
    try:
        found = Finished(descriptor, offset)
        waiting = [(folder, found.root())]
        while waiting:
            path, reference = waiting.pop()
            names = found.folder(reference)
            assert {os.fsdecode(name) for name in names} == {each.name for each in path.iterdir()} - without
            for name, below in names.items():
                each = path / os.fsdecode(name)
                about = each.lstat()
                if stat.S_ISDIR(about.st_mode):
                    waiting.append((each, below))
                elif stat.S_ISREG(about.st_mode):
                    data = found.data(below, about.st_size)
                    assert data is not None and found.same(data, os.fsencode(each)), each
    finally:
        os.close(descriptor)


def test_what_did_not_change_is_not_compressed_again(folder: Path, tmp_path: Path) -> None:
    old = packed(folder, tmp_path / "old.sqfs")
    check(old, folder)
    (folder / "text").write_text("another line\n" * 3000)
    (folder / "more").write_bytes(RANDOM.randbytes(3 * BLOCK + 1))
    (folder / "many" / f"0007-{'x' * 120}").unlink()
    made = repack(folder, tmp_path / "new.sqfs", old)
    check(tmp_path / "new.sqfs", folder)
    assert 3 * BLOCK < made.new < 5 * BLOCK < made.kept
    assert (tmp_path / "new.sqfs").read_bytes()[96 : made.kept] == old.read_bytes()[96 : made.kept]


def test_a_file_of_the_same_size_and_time_is_compared(folder: Path, tmp_path: Path) -> None:
    old = packed(folder, tmp_path / "old.sqfs")
    place, before = folder / "text", (folder / "text").stat()
    place.write_text(place.read_text().replace("same", "SAME", 1))
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    made = repack(folder, tmp_path / "new.sqfs", old)
    check(tmp_path / "new.sqfs", folder)
    assert made.new > 0


def test_the_older_one_may_begin_within_a_file(folder: Path, tmp_path: Path) -> None:
    old = packed(folder, tmp_path / "old.sqfs")
    sif = tmp_path / "old.sif"
    sif.write_bytes(b"\1" * 36864 + old.read_bytes())
    assert repack(folder, tmp_path / "new.sqfs", sif, 36864, all_root=True).new == 0
    check(tmp_path / "new.sqfs", folder)


def test_paths_are_left_out(folder: Path, tmp_path: Path) -> None:
    old = packed(folder, tmp_path / "old.sqfs")
    repack(folder, tmp_path / "new.sqfs", old, without=[str(folder / "fifo")])
    check(tmp_path / "new.sqfs", folder, without=frozenset({"fifo"}))


def test_empty_files_and_folders_are_added(folder: Path, tmp_path: Path) -> None:
    old = packed(folder, tmp_path / "old.sqfs")
    (tmp_path / "more").write_text(
        "mnt d 755 root root\nmnt/0 d 755 root root\nhosts f 644 root root true\ntext d 755 root root\n"
    )
    asked = asked_of([str(folder), "new", "-noappend", "-pf", str(tmp_path / "more")])
    repack(folder, tmp_path / "new.sqfs", old, added=asked.added)
    (folder / "mnt" / "0").mkdir(parents=True)
    (folder / "hosts").touch()
    check(tmp_path / "new.sqfs", folder)
    with pytest.raises(Unsuitable, match="the folder of there/x is missing"):
        repack(folder, tmp_path / "new.sqfs", old, added={"there/x": 0o40755})


def test_with_little_in_common_the_file_is_better_written_whole(folder: Path, tmp_path: Path) -> None:
    old = packed(folder, tmp_path / "old.sqfs")
    (folder / "linked").unlink()
    (folder / "large").write_bytes(b"")
    with pytest.raises(Unsuitable, match="too little of the finished image"):
        repack(folder, tmp_path / "new.sqfs", old)


def test_other_blocks_are_refused(folder: Path, tmp_path: Path) -> None:
    old = packed(folder, tmp_path / "old.sqfs")
    with pytest.raises(Unsuitable, match="have 4096 bytes, not 65536"):
        repack(folder, tmp_path / "new.sqfs", old, block_size=65536)
    (tmp_path / "text").write_text("no image\n" * 100)
    with pytest.raises(Unsuitable, match="no squashfs"):
        repack(folder, tmp_path / "new.sqfs", tmp_path / "text")


@pytest.mark.parametrize("seed", range(12))
def test_of_a_damaged_image_nothing_wrong_is_taken_over(seed: int, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number}").write_bytes((b"%d " % number) * (40 * number))
    good = bytearray(packed(folder, tmp_path / "old.sqfs").read_bytes())
    chance = random.Random(seed)
    for _ in range(30):
        bad = bytearray(good)
        for _ in range(chance.choice((1, 1, 8))):
            # The first block and the tables, more often than the content.
            at = chance.choice((chance.randrange(96), chance.randrange(len(bad) - 4096, len(bad)), 0)) or 12
            bad[at] = chance.randrange(256)
        (tmp_path / "bad.sqfs").write_bytes(bad[: chance.choice((len(bad), len(bad), 2000))])
        try:
            repack(folder, tmp_path / "new.sqfs", tmp_path / "bad.sqfs")
        except FAILURES:
            continue
        check(tmp_path / "new.sqfs", folder)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("DIR new -noappend -all-root", {"all_root": True}),
        ("DIR new -noappend -mem 2G -processors 3 -comp gzip -quiet -percentage", {"threads": 3}),
        (
            "DIR new -b 65536 -noappend -all-root -pf /dev/null -e DIR/.git -e DIR/ch/git.pickle",
            {"all_root": True, "block_size": 65536, "without": ("DIR/.git", "DIR/ch/git.pickle")},
        ),
    ],
)
def test_what_engines_ask_for_is_understood(words: str, asked: dict[str, object], tmp_path: Path) -> None:
    told = asked_of(words.replace("DIR", str(tmp_path)).split())
    assert told.folder == tmp_path and told.target == Path("new")
    seen = {name: getattr(told, name) for name in Asked.__struct_fields__[2:]}
    wanted = {name: value for name, value in seen.items() if value not in (None, (), False, {})}
    without = tuple(each.replace(str(tmp_path), "DIR") for each in wanted.pop("without", ()))
    assert {**wanted, **({"without": without} if without else {})} == asked


@pytest.mark.parametrize(
    "words", ["DIR new", "DIR new -noappend -comp zstd", "DIR more new -noappend", "DIR new -noappend -sort x", "new"]
)
def test_what_is_not_known_is_left_to_mksquashfs(words: str, tmp_path: Path) -> None:
    with pytest.raises(Unsuitable):
        asked_of(words.replace("DIR", str(tmp_path)).split())
