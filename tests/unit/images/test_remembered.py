"""What was read of an image is kept until the image is another one, and nobody else's word is taken for it."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.api import default_catalog
from hpcgen.core.support.hashing import sha256_of
from hpcgen.images import remembered
from hpcgen.images.folder import read_folder
from hpcgen.images.kinds.squashfs import SquashfsKind
from hpcgen.images.kinds.store import PodmanStore
from hpcgen.images.reading.sources import FolderSource
from hpcgen.images.reference import ImageReference
from hpcgen.running.image_job import plan_for_image


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where answers are kept."""
    monkeypatch.setattr(remembered, "cache_folder", lambda part="": tmp_path / "cache" / part)
    return tmp_path / "cache" / remembered.PART


@pytest.fixture
def image(tmp_path: Path) -> ImageReference:
    file = tmp_path / "own.sqfs"
    file.write_bytes(b"hsqs" + bytes(600))
    return ImageReference("squashfs", str(file))


class Asked:
    """Counts how often an image is read."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, image: ImageReference, what: str = "facts") -> list[int]:
        return remembered.remembered(image, what, list[int], self._read)

    def _read(self) -> list[int]:
        self.times += 1
        return [self.times]


def test_an_image_is_read_once_for_each_question_until_it_is_another(kept: Path, image: ImageReference) -> None:
    asked, file = Asked(), Path(image.name)
    assert [asked(image), asked(image), asked(image, "other"), asked(image)] == [[1], [1], [2], [1]]
    told = file.stat()
    file.write_bytes(b"hsqs" + b"1" * 600)
    os.utime(file, ns=(told.st_atime_ns, told.st_mtime_ns))
    assert asked(image) == [3], "the same size and time of change, other bytes"
    file.rename(file.with_suffix(".old"))
    file.write_bytes(b"hsqs" + bytes(600))
    assert asked(image) == [4], "another file of the name"
    assert kept.stat().st_mode & 0o777 == 0o700 and all(map(remembered_name, kept.iterdir()))


def remembered_name(file: Path) -> bool:
    from hpcgen.builders.kept import _CACHED

    return _CACHED[remembered.PART][1].fullmatch(file.name) is not None


def test_folders_are_read_each_time_and_images_of_a_store_by_their_digest(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked()
    assert [asked(ImageReference("directory", str(tmp_path))) for _ in range(2)] == [[1], [2]]
    digests = {"a": "sha256:1", "b": ""}
    monkeypatch.setattr(PodmanStore, "digest", lambda self, name: digests[name])
    assert [asked(ImageReference("podman", "a")) for _ in range(2)] == [[3], [3]]
    assert [asked(ImageReference("podman", "b")) for _ in range(2)] == [[4], [5]]
    digests["a"] = "sha256:2"
    assert asked(ImageReference("podman", "a")) == [6]


def test_what_changes_while_it_is_read_is_not_kept(kept: Path, image: ImageReference) -> None:
    def read() -> list[int]:
        Path(image.name).write_bytes(b"hsqs")
        return [1]

    assert remembered.remembered(image, "facts", list[int], read) == [1]
    assert not kept.exists()


def test_what_is_no_text_is_not_kept(kept: Path, image: ImageReference) -> None:
    answers = [remembered.remembered(image, "facts", list[str], lambda: ["\udcff"]) for _ in range(2)]
    assert answers == [["\udcff"]] * 2 and not kept.exists()


@pytest.mark.parametrize("damage", [b"", b"\0", b"[1]", b"f" * 64, b"\xff" * 90])
def test_a_damaged_answer_is_read_again_and_mended(kept: Path, image: ImageReference, damage: bytes) -> None:
    asked = Asked()
    asked(image)
    (file,) = kept.iterdir()
    for wrong in (damage, file.read_bytes()[:-1], file.read_bytes() + damage + b"1"):
        file.write_bytes(wrong)
        before = asked.times
        assert asked(image) == [before + 1] == asked(image)
    # Whole, and no answer to the question.
    data = msgspec.msgpack.encode("text")
    file.write_bytes(sha256_of(data).encode() + data)
    before = asked.times
    assert asked(image) == [before + 1]


def forged(file: Path) -> None:
    data = msgspec.msgpack.encode([99])
    file.write_bytes(sha256_of(data).encode() + data)


def test_what_others_may_have_written_is_not_believed(
    kept: Path, image: ImageReference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked()
    asked(image)
    (file,) = kept.iterdir()
    forged(file)
    assert asked(image) == [99], "the user's own"
    for mode in (0o770, 0o707, 0o750, 0o701):
        kept.chmod(mode)
        assert asked(image) == [asked.times] and asked.times > 1, "a folder that others see"
        assert asked(image) == [asked.times]
    kept.chmod(0o700)
    own = file.rename(tmp_path / "elsewhere")
    file.symlink_to(own)
    assert asked(image) == [asked.times], "a link"
    kept.rename(tmp_path / "other")
    kept.symlink_to(tmp_path / "other")
    assert asked(image) == [asked.times], "a folder by a link"
    assert not (tmp_path / "other" / file.name).is_symlink() or (tmp_path / "other" / file.name).readlink() == own


def test_files_and_folders_of_another_user_are_not_believed(
    kept: Path, image: ImageReference, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked()
    asked(image)
    (file,) = kept.iterdir()
    forged(file)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert asked(image) == [2]
    told = msgspec.msgpack.decode(file.read_bytes()[64:])
    assert told == [99], "nor is anything written there"


def test_where_nothing_can_be_kept_the_image_is_read(
    image: ImageReference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(remembered, "cache_folder", lambda part="": tmp_path / "file" / part)
    asked = Asked()
    assert [asked(image), asked(image)] == [[1], [2]]

    def homeless(part: str = "") -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(remembered, "cache_folder", homeless)
    assert asked(image) == [3]


def test_the_newest_answers_are_kept(kept: Path, image: ImageReference, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_MOST_KEPT", 3)
    asked = Asked()
    for number in range(5):
        asked(image, str(number))
    assert len(list(kept.iterdir())) == 3 and asked(image, "4") == [5]


@pytest.mark.parametrize("start", [False, True])
def test_the_second_start_of_an_image_reads_its_variables_alone(
    start: bool, kept: Path, image: ImageReference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = msgspec.structs.replace(image, start=start)
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/os-release").write_text("ID=debian\nVERSION_ID=12\n")
    counts: Counter[str] = Counter()

    def counted(what: str, answer: Any) -> Any:
        def method(self: SquashfsKind, *words: Any) -> Any:
            counts[what] += 1
            return answer(*words)

        return method

    monkeypatch.setattr(SquashfsKind, "files", counted("listing", lambda name: nullcontext(FolderSource(str(root)))))
    monkeypatch.setattr(SquashfsKind, "folders", counted("folders", lambda name, paths: {"/etc"}))
    monkeypatch.setattr(SquashfsKind, "digest", counted("digest", lambda name: "sha256:" + "1" * 64))
    monkeypatch.setattr(
        SquashfsKind, "read", counted("read", lambda name, paths, most=0: read_folder(str(root), paths))
    )
    site = default_catalog().site("supermuc")
    first, second = (plan_for_image(image, default_catalog(), site=site, elsewhere=True) for _ in range(2))
    assert first.plan == second.plan and first.facts == second.facts and first.facts is not None
    assert first.plan.found is not None and first.plan.found.digest.endswith("1" * 64)
    # Its kit, which it has not, once, and its variables twice.
    assert counts == {"listing": 1, "folders": 1, "digest": 1, "read": 3}
