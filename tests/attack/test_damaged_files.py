"""Files of strangers, damaged as chance has it: an error that says what is wrong, in bounded time, never a bug.

A fixed sample is in the unit tier, thousands of each kind are in the slow one; the number of a case is its seed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import io
import json
import random
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgen.builders.records import store
from hpcgen.catalog.catalog import Catalog
from hpcgen.cli.checking import check_file
from hpcgen.cli.records_command import described
from hpcgen.core.config.user_config import load_user_config
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import HpcgenError
from hpcgen.images.recorded import recorded_kit, stored_kit, with_its_files
from hpcgen.images.reference import parse_image
from hpcgen.kit.lockfile.lock import parse_lock
from hpcgen.machine.detect.detection import combine
from hpcgen.machine.detect.profile import profile_of
from hpcgen.machine.site_sources.said import SourceSettings
from hpcgen.machine.site_sources.sources import read_source
from hpcgen.plugins.fleet.changes import member_states
from hpcgen.plugins.fleet.file import load_fleet
from hpcgen.plugins.fleet.records import read_lock as read_fleet_lock
from hpcgen.supply.bundle.verify import verify
from hpcgen.supply.pin.wanted import check_lock
from tests.attack.bounded import Outcome, attempt, in_processes
from tests.attack.subjects import FLEET
from tests.conftest import GOLDEN, ROOT, Command
from tests.helpers import locks
from tests.helpers.bundles import NAMES
from tests.helpers.bundles import make as made
from tests.helpers.mutations import mutated, replaced
from tests.helpers.trees import NAMES as TREES
from tests.helpers.trees import seen_in, unpack

STORED = GOLDEN / "workstation" / "mpi-hello"
KIT = "opt/hpcgen/kit"
SPECIMENS = ROOT / "tests" / "specimens" / "0.1.0"
SAMPLE, MANY = 25, 2_500
CATALOG = Catalog()


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


@functools.cache
def lock_text() -> bytes:
    return locks.lock("mpi-hello").text.encode()


def lock(chance: random.Random, folder: Path) -> None:
    whole = lock_text()
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
    whole = shutil.copytree(whole_trees() / chance.choice(TREES), folder / "tree", symlinks=True)
    files = sorted(path for path in whole.rglob("*") if path.is_file() and not path.is_symlink())
    for path in chance.sample(files, min(len(files), 5)):
        path.write_bytes(mutated(chance, path.read_bytes()))
    seen_in(whole)


@functools.cache
def whole_trees() -> Path:
    return unpack(kept_folder())


def kept_folder() -> Path:
    """For the life of the process."""
    folder = Path(tempfile.mkdtemp(prefix="hpcgen-attack-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def whole_bundle() -> Path:
    folder = kept_folder()
    made(folder, "B", NAMES[:2])
    made(folder, "B.tar", NAMES[:2])
    return folder


def bundle(chance: random.Random, folder: Path) -> None:
    """A folder with one of its files damaged."""
    copy = shutil.copytree(whole_bundle() / "B", folder / "B")
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    path = chance.choice([copy / "bundle.json", copy / "hpcgen.lock", copy / "SHA256SUMS", chance.choice(files)])
    path.write_bytes(mutated(chance, path.read_bytes()))
    verify(copy, jobs=1).raise_problems()


def packed_bundle(chance: random.Random, folder: Path) -> None:
    path = folder / "B.tar"
    path.write_bytes(mutated(chance, (whole_bundle() / "B.tar").read_bytes()))
    verify(path, jobs=1).raise_problems()


def manifest(chance: random.Random, folder: Path) -> None:
    """A bundle whose manifest has other values."""
    copy = shutil.copytree(whole_bundle() / "B", folder / "B")
    path = copy / "bundle.json"
    path.write_text(json.dumps(replaced(chance, json.loads(path.read_text()))))
    verify(copy, jobs=1).raise_problems()


def record(chance: random.Random, folder: Path) -> None:
    """A build record, of this release or the first."""
    stored = chance.choice(sorted((SPECIMENS / "records").glob("*.json")))
    path = folder / stored.name
    if chance.randrange(2):
        path.write_text(json.dumps(replaced(chance, json.loads(stored.read_text()))))
    else:
        path.write_bytes(mutated(chance, stored.read_bytes()))
    with pytest.MonkeyPatch.context() as here, contextlib.redirect_stderr(io.StringIO()):
        here.setenv("HPCGEN_RECORDS", str(folder))
        for found in store.load_all():
            described(found, io.StringIO())
        store.find(stored.stem)


def fleet(chance: random.Random, folder: Path) -> None:
    """A fleet and its lock."""
    path, lock = folder / "fleet.yaml", folder / "fleet.lock"
    path.write_text(json.dumps(FLEET))
    shutil.copy(SPECIMENS / "fleet" / "fleet.lock", lock)
    if chance.randrange(3) == 0:
        path.write_text(json.dumps(replaced(chance, json.loads(path.read_text()))))
    else:
        damaged = chance.choice([path, lock])
        damaged.write_bytes(mutated(chance, damaged.read_bytes()))
    loaded = load_fleet(path)
    member_states(loaded, read_fleet_lock(lock))


def site_file(chance: random.Random, folder: Path) -> None:
    """What administrators have: files of Slurm, Spack, Stackinator and ReFrame, what PBS prints."""
    whole = folder / "aurelia"
    shutil.copytree(ROOT / "tests" / "sites" / "aurelia", whole)
    shutil.copytree(ROOT / "tests" / "sites" / "pbs", whole / "pbs")
    kind, place = chance.choice(
        [("slurm", "slurm"), ("spack", "spack"), ("stackinator", "cluster"), ("reframe", "reframe"), ("pbs", "pbs")]
    )
    path = chance.choice(sorted((whole / place).iterdir()))
    path.write_bytes(mutated(chance, path.read_bytes()))
    seen = combine([read_source(kind, whole / place, SourceSettings("aurelia"))])
    loads(profile_of(seen, "aurelia", "2026-11-25", place, f"--from {kind} {place}").text, "aurelia.yaml")


def settings(chance: random.Random, folder: Path) -> None:
    """The user's own settings."""
    path = folder / "config.yaml"
    path.write_bytes(mutated(chance, (SPECIMENS / "config.yaml").read_bytes()))
    with pytest.MonkeyPatch.context() as here:
        here.setenv("HPCGEN_CONFIG", str(path))
        load_user_config()


Kind = Callable[[random.Random, Path], None]
KINDS: list[Kind] = [
    *(
        profile,
        recipe,
        lock,
        archive,
        layout,
        tree,
        bundle,
        packed_bundle,
        manifest,
        record,
        fleet,
        site_file,
        settings,
    ),
]


def damaged(make: Kind, folder: Path) -> Callable[[int], None]:
    """Damage a file of that kind by a seed, and read it, in a folder of its own; once here, for what is made once."""

    def one(seed: int) -> None:
        place = folder / str(seed)
        place.mkdir()
        try:
            make(random.Random(seed), place)
        finally:
            shutil.rmtree(place)

    with contextlib.suppress(HpcgenError):
        one(0)
    return one


@pytest.mark.parametrize("make", KINDS)
def test_a_damaged_file_is_an_error_that_is_told(make: Kind, tmp_path: Path) -> None:
    outcome = Outcome()
    attempt(range(SAMPLE), damaged(make, tmp_path), outcome)
    assert not outcome.failures, outcome.failures[0]


@pytest.mark.slow
@pytest.mark.parametrize("make", KINDS)
def test_thousands_of_damaged_files(make: Kind, tmp_path: Path) -> None:
    outcome = in_processes(range(SAMPLE, SAMPLE + MANY), damaged(make, tmp_path))
    print(f"{make.__name__}: {outcome}")
    assert not outcome.failures, "\n".join(outcome.failures[:5])
    assert outcome.counts.total() == MANY


def commands_on_plans(hpcgen: Command, folder: Path) -> Callable[[int], None]:
    """Commands on an image whose plan has other values."""
    whole = (STORED / "plan.json").read_text()

    def one(seed: int) -> None:
        chance = random.Random(seed)
        place = folder / str(seed)
        shutil.copytree(STORED, place / "root" / KIT)
        (place / "root" / KIT / "plan.json").write_text(json.dumps(replaced(chance, json.loads(whole))))
        words = chance.choice([["inspect", "root"], ["rebuild", "root", "-o", "kit"], ["job", "root"]])
        done = hpcgen(*words, *chance.choice([[], ["--json"]]), cwd=place)
        shutil.rmtree(place)
        assert done.returncode in (0, 3, 4, 5, 6), (words, done.stderr)

    return one


def test_no_plan_of_an_image_ends_as_a_bug(hpcgen: Command, tmp_path: Path) -> None:
    outcome = Outcome()
    attempt(range(SAMPLE), commands_on_plans(hpcgen, tmp_path), outcome)
    assert not outcome.failures, outcome.failures[0]


@pytest.mark.slow
def test_no_plan_of_thousands_ends_as_a_bug(hpcgen: Command, tmp_path: Path) -> None:
    outcome = in_processes(range(SAMPLE, SAMPLE + MANY), commands_on_plans(hpcgen, tmp_path))
    print(f"plans of images: {outcome}")
    assert not outcome.failures, "\n".join(outcome.failures[:5])
