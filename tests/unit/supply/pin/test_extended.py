"""The lock of what was added to an image: read out of it, in what apt and pip said there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.plan import ExtendedImage, Plan
from hpcgen.images.reference import ImageReference
from hpcgen.kit.kit import make_kit
from hpcgen.kit.lockfile.lock import parse_lock
from hpcgen.kit.sbom import cyclonedx
from hpcgen.planning.extending import extended_plan
from hpcgen.planning.planner import make_plan
from hpcgen.planning.question import added_words
from hpcgen.recipe.assemble import assemble
from hpcgen.supply.pin.extended import lock_of_added

CATALOG = Catalog()
URI = f"'https://example.org/pool/bc_1.07-1%3a2_amd64.deb' bc_1.07-1_amd64.deb 1000 SHA256:{'a' * 64}\n"
REPORT = {
    "install": [
        {
            "metadata": {"name": name, "version": version},
            "download_info": {"url": "https://example.org/x", "archive_info": {"hashes": {"sha256": digit * 64}}},
        }
        for name, version, digit in (("zarr", "2.18.3", "b"), ("asciitree", "0.3.3", "c"))
    ]
}


@pytest.fixture(scope="module")
def plan() -> Plan:
    stack = CATALOG.stack("mpi-python")
    first = make_plan(CATALOG, CATALOG.site("workstation"), stack, allow_unsupported=True)
    image = ExtendedImage(image="x:1", content="ab" * 32, blocks=first.blocks)
    words = added_words(["pip:zarr==2.18.3", "apt:bc"])
    return extended_plan(first, image, words, CATALOG, allow_unsupported=True)


def image_with(folder: Path, **files: str) -> ImageReference:
    place = folder / "opt" / "hpcgen" / "added"
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / (name if name == "packages" else f"{name}.json")).write_text(text)
    return ImageReference("directory", str(folder))


def test_packages_and_wheels_are_those_that_came(plan: Plan, tmp_path: Path) -> None:
    content = assemble(plan, CATALOG).labels["io.hpcgen.content"]
    image = image_with(tmp_path, packages=URI, python_packages=json.dumps(REPORT))
    lock = lock_of_added(plan, CATALOG, image, content)
    assert parse_lock(lock.text, "again") == lock and lock.content == content
    assert lock.pins.packages["final"].added.keys() == {"bc"}
    assert [line.split()[0] for line in lock.pins.wheels["python_packages"]] == ["asciitree==0.3.3", "zarr==2.18.3"]
    held = {each["name"]: each for each in json.loads(cyclonedx(lock, []))["components"]}
    assert {"bc", "zarr", "asciitree"} <= held.keys() and "mpi4py" not in held
    recipe = make_kit(lock.plan, CATALOG, lock).recipe
    assert "install -y --no-install-recommends bc=1.07-1" in recipe and "--require-hashes" in recipe
    assert "\nFROM x:1\n" in recipe


@pytest.mark.parametrize("text", ["[]", "{", '{"install": [5]}', '{"install": [{"metadata": {}}]}'])
def test_what_is_not_understood_is_refused(plan: Plan, tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="is not understood"):
        lock_of_added(plan, CATALOG, image_with(tmp_path, python_packages=text), "ab" * 32)


def test_an_image_that_says_nothing_gives_a_lock_of_nothing(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    lock = lock_of_added(plan, CATALOG, ImageReference("directory", str(tmp_path)), "ab" * 32)
    assert not lock.pins.packages and not lock.pins.wheels
