"""Every distinct recipe of every kit that can be rendered, read by ch-image 0.31 and 0.45 and by Apptainer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from container_tools import ChImage, Sid

from tests.helpers.matrix_files import files

pytestmark = pytest.mark.slow

SOURCE = re.compile(r"BootStrap: \w+\nFrom: \S+", re.IGNORECASE)
EACH_PARSED = """
for each in /recipes/*; do
    echo "== $each"
    ch-image build --parse-only -t parsed -f "$each" /recipes || echo "== refused $each"
done 2>&1
"""
EACH_BUILT = """
cd /tmp
for each in /recipes/*; do
    echo "== $each"
    apptainer build --fakeroot --sandbox --force image "$each"
done 2>&1
"""


def said(output: str) -> dict[str, str]:
    """What a reader said of each file."""
    parts = re.split(r"(?m)^== /recipes/(.*)$", output)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def complaints(found: dict[str, str], words: str) -> dict[str, str]:
    """What was said of files with one of the words; a label is passed over by the old ch-image, and may be."""
    return {name: text for name, text in found.items() if re.search(words, re.sub(r".*LABEL.*", "", text))}


@pytest.fixture(scope="module")
def dockerfiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the Dockerfiles that the scripts for ch-image have inside."""
    folder = tmp_path_factory.mktemp("dockerfiles")
    for name, text in files().charliecloud.items():
        (folder / name).write_text(text)
    return folder


def test_old_ch_image_parses_them(dockerfiles: Path, ch_image: ChImage, tmp_path: Path) -> None:
    script = EACH_PARSED.replace("/recipes", str(dockerfiles))
    done = ch_image.run(["sh", "-c", script], env={"CH_IMAGE_STORAGE": str(tmp_path / "storage")}, timeout=3600)
    found = said(done.stdout.replace(f"{dockerfiles}/", "/recipes/"))
    assert len(found) == len(files().charliecloud)
    assert complaints(found, "error|warning|not supported|refused") == {}


def test_new_ch_image_parses_them(dockerfiles: Path, sid: Sid) -> None:
    done = sid.run(["sh", "-c", EACH_PARSED], binds=[(sid.folder(dockerfiles), "/recipes")], timeout=3600)
    found = said(done.stdout)
    assert len(found) == len(files().charliecloud)
    assert complaints(found, "error|not supported|refused") == {}


def test_apptainer_parses_the_definitions(sid: Sid, tmp_path: Path) -> None:
    """Read whole, up to the base, which is not there; one with a section that Apptainer does not know ends before."""
    texts = {
        name: SOURCE.sub("BootStrap: oci-archive\nFrom: /none.tar", text) for name, text in files().definitions.items()
    }
    first = next(iter(texts.values()))
    texts["wrong.def"] = first.replace("%post", "%pots", 1)
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    binds = [(sid.folder(tmp_path), "/recipes")]
    found = said(sid.run(["sh", "-c", EACH_BUILT], binds=binds, check=False, timeout=7200).stdout)
    assert len(found) == len(texts)
    wrong = found.pop("wrong.def")
    assert "pots" in wrong and "/none.tar" not in wrong
    assert {name: text for name, text in found.items() if "/none.tar" not in text or "section" in text} == {}
