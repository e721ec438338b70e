"""Files of strangers, damaged as chance has it: an error that says what is wrong, in bounded time, never a bug.

A fixed sample is in the unit tier, thousands are in the slow one; a number that fails is the seed to look at.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.cli.checking import check_file
from hpcgen.errors import HpcgenError
from hpcgen.images.recorded import recorded_kit, stored_kit, with_its_files
from hpcgen.images.reference import parse_image
from hpcgen.lockfile.lock import parse_lock
from hpcgen.locking.wanted import check_lock
from tests.conftest import GOLDEN, ROOT, Command
from tests.helpers.mutations import mutated, replaced
from tests.helpers.trees import NAMES, seen_in, unpack

STORED = GOLDEN / "workstation" / "mpi-hello"
KIT = "opt/hpcgen/kit"
SAMPLE, MANY = 25, 2000
SECONDS = 20.0
CATALOG = Catalog()


@contextmanager
def answered(seed: int) -> Iterator[None]:
    """Nothing but hpcgen's own errors, and within a time that a loaded machine keeps too."""
    began = time.monotonic()
    try:
        yield
    except HpcgenError as error:
        assert str(error), seed
    except Exception as bug:
        raise AssertionError(f"seed {seed} ends as a bug") from bug
    assert time.monotonic() - began < SECONDS, seed


def profile(chance: random.Random, folder: Path) -> None:
    name = chance.choice(sorted(path.name for path in (ROOT / "site_profiles").glob("*.yaml")))
    path = folder / "site_profiles" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(mutated(chance, (ROOT / "site_profiles" / name).read_bytes()))
    check_file(CATALOG, path)


def recipe(chance: random.Random, folder: Path) -> None:
    name = chance.choice(sorted(path.name for path in (ROOT / "recipes").glob("*.yaml")))
    path = folder / "recipes" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(mutated(chance, (ROOT / "recipes" / name).read_bytes()))
    check_file(CATALOG, path)


def lock(chance: random.Random, folder: Path) -> None:
    whole = (ROOT / "tests" / "specimens" / "0.1.0" / "locks" / "hpcgen.lock").read_bytes()
    body = mutated(chance, whole.rpartition(b"seal: ")[0]).decode("utf-8", "replace").rstrip("\n") + "\n"
    sealed = f"{body}seal: sha256:{hashlib.sha256(body.encode()).hexdigest()}\n"
    check_lock(parse_lock(sealed, "hpcgen.lock"), CATALOG)


def archive(chance: random.Random, folder: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=chance.choice(["w", "w:gz", "w:bz2", "w:xz"])) as tar:
        tar.add(STORED, KIT)
    path = folder / "image.tar"
    path.write_bytes(mutated(chance, out.getvalue()))
    recorded_kit(parse_image(str(path)))


def layout(chance: random.Random, folder: Path) -> None:
    """An OCI archive: its documents damaged, or all of it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(STORED, KIT)
    blobs = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def stored(data: bytes) -> dict[str, object]:
        data = mutated(chance, data) if chance.randrange(4) == 0 else data
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"digest": f"sha256:{digest}", "size": len(data)}

    config = {"config": {"Env": ["A=1"], "Labels": {"io.hpcgen.content": "0" * 64}}}
    manifest = {"config": stored(json.dumps(replaced(chance, config)).encode()), "layers": [stored(out.getvalue())]}
    manifest = replaced(chance, manifest) if chance.randrange(2) else manifest
    index = {"manifests": [stored(json.dumps(manifest).encode())]}
    blobs["index.json"] = json.dumps(replaced(chance, index) if chance.randrange(3) == 0 else index).encode()
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name, data in blobs.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    path = folder / "image.oci"
    path.write_bytes(whole.getvalue())
    image = parse_image(str(path))
    with_its_files(stored_kit(image), image)


def tree(chance: random.Random, folder: Path) -> None:
    """A captured tree with some of its files damaged."""
    clean = folder.parent / "trees"
    if not clean.exists():
        unpack(clean)
    whole = shutil.copytree(clean / chance.choice(NAMES), folder / "tree", symlinks=True)
    files = sorted(path for path in whole.rglob("*") if path.is_file() and not path.is_symlink())
    for path in chance.sample(files, min(len(files), 5)):
        path.write_bytes(mutated(chance, path.read_bytes()))
    seen_in(whole)


KINDS: list[Callable[[random.Random, Path], None]] = [profile, recipe, lock, archive, layout, tree]


def attempt(make: Callable[[random.Random, Path], None], seeds: range, folder: Path) -> None:
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        with answered(seed):
            make(random.Random(seed), place)
        shutil.rmtree(place)


@pytest.mark.parametrize("make", KINDS)
def test_a_damaged_file_is_an_error_that_is_told(make: Callable[[random.Random, Path], None], tmp_path: Path) -> None:
    attempt(make, range(SAMPLE), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("make", KINDS)
def test_thousands_of_damaged_files(make: Callable[[random.Random, Path], None], tmp_path: Path) -> None:
    attempt(make, range(SAMPLE, SAMPLE + MANY), tmp_path)


def commands_on_plans(hpcgen: Command, seeds: range, folder: Path) -> None:
    shutil.copytree(STORED, folder / "root" / KIT)
    place = folder / "root" / KIT / "plan.json"
    whole = place.read_text()
    for seed in seeds:
        chance = random.Random(seed)
        place.write_text(json.dumps(replaced(chance, json.loads(whole))))
        words = chance.choice([["inspect", "root"], ["rebuild", "root", "-o", "kit"], ["job", "root"]])
        done = hpcgen(*words, *chance.choice([[], ["--json"]]))
        assert done.returncode in (0, 3, 4, 5, 6), (seed, words, done.stderr)
        shutil.rmtree(folder / "kit", ignore_errors=True)


def test_no_plan_of_an_image_ends_as_a_bug(hpcgen: Command, tmp_path: Path) -> None:
    commands_on_plans(hpcgen, range(SAMPLE), tmp_path)


@pytest.mark.slow
def test_no_plan_of_thousands_ends_as_a_bug(hpcgen: Command, tmp_path: Path) -> None:
    commands_on_plans(hpcgen, range(SAMPLE, SAMPLE + MANY), tmp_path)
