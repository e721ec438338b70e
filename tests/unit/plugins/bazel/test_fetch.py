"""Bazel run for a lock: what is run where, what is pinned, and what a person is told. Bazel is a stand-in here."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import FetchError, InputError
from hpcgen.core.model.bazel import BazelFile, BazelPin
from hpcgen.core.model.image_paths import MOUNT
from hpcgen.core.model.lock import Pins
from hpcgen.core.model.plan import Plan
from hpcgen.kit.lockfile.lock import parse_lock
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.bazel import fetch as fetching
from hpcgen.plugins.bazel.fetch import PLACE, fetch_bazel
from hpcgen.plugins.bazel.registry_recorder import RegistryRecorder
from hpcgen.recipe.assemble import assemble
from hpcgen.supply.pin.base_shell import BaseShell
from hpcgen.supply.pin.bazel_steps import bazel_steps
from hpcgen.supply.pin.locking import _known_to_bazel, lock_of
from tests.helpers.file_server import serving
from tests.unit.plugins.bazel.test_log import URLS, A, event, field

CATALOG = Catalog()
WHEEL = "six-1.16.0-py2.py3-none-any.whl"
C = "c" * 64


def source_plan(*more: str) -> Plan:
    settings = ["tensorflow.version=2.15.1", "tensorflow.install=source", *more]
    return make_plan(CATALOG, CATALOG.site("supermuc"), CATALOG.stack("tf-horovod"), settings=settings)


class Stage:
    """An unpacked base, whose Bazel fetches one archive and whose pip brings one wheel."""

    def __init__(self, root: Path) -> None:
        self.root, self.image = root, "ubuntu:22.04"
        self.scripts: list[tuple[str, bool]] = []
        self.files: dict[str, bytes] = {}
        self.environment: Mapping[str, str] = {}
        self.failing: dict[str, tuple[int, list[str]]] = {}
        log = root / PLACE.lstrip("/") / "log"
        log.parent.mkdir(parents=True)
        log.write_bytes(event("//external:a", 5, *(field(1, url) for url in URLS), field(3, A)))

    def run(
        self, script: str, on_line: Callable[[str], None] = lambda line: None, alone: bool = False
    ) -> tuple[int, list[str]]:
        self.scripts.append((script, alone))
        for word, answer in self.failing.items():
            if word in script:
                return answer
        if "find" in script and "sha256sum" in script:
            found = f"{C}  {PLACE}/root/1/external/six/{WHEEL}" if ".whl" in script else f"{A}  {PLACE}/cache/{A}/file"
            return 0, [found]
        return 0, []

    def put(self, path: str, data: bytes) -> None:
        self.files[path] = data

    check = BaseShell.check

    @property
    def bazels(self) -> list[tuple[str, bool]]:
        """The calls of Bazel, each with whether it was without a network."""
        return [(script, alone) for script, alone in self.scripts if "--nobuild" in script]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    found = Stage(tmp_path)

    @contextlib.contextmanager
    def stand_in(layout: Path, image: str, environment: Mapping[str, str], **asked: Any) -> Iterator[Stage]:
        found.environment = environment
        assert asked == {"several_ids": True}
        yield found

    monkeypatch.setattr(fetching, "base_shell", stand_in)
    monkeypatch.setattr(fetching, "find_files", lambda lines, indexes: [])
    return found


def fetch(say: Callable[[str], None] = lambda text: None) -> BazelPin:
    plan = source_plan()
    assembly = assemble(plan, CATALOG)
    (step,) = bazel_steps(plan, assembly)
    return fetch_bazel(plan, assembly, step, Path("layout"), say)


def test_bazel_is_run_with_the_words_of_the_build_after_the_steps_before_it(stage: Stage) -> None:
    pin = fetch()
    (first, networked), (second, alone) = stage.bazels
    lines = "\n".join(script for script, _ in stage.scripts)
    assert (networked, alone) == (False, True)
    assert lines.index("apt-get install") < lines.index("./configure") < lines.index("--nobuild")
    build = next(
        line
        for _, step in assemble(source_plan(), CATALOG).builder.steps
        for line in step.commands
        if " bazel " in line
    )
    before, _, after = build.partition(" build ")
    call = next(line for line in first.splitlines() if " bazel " in line)
    assert call.startswith(f"{before} --output_user_root={PLACE}/root build --nobuild {after.rpartition(' ')[0]}")
    assert f"--repository_cache={PLACE}/cache" in call and call.endswith(after.rpartition(" ")[2])
    # As from a bundle: what was fetched lies there, and Bazel looks nowhere else.
    assert "--distdir=" in second and "--experimental_repository_disable_download" in second
    assert f"{MOUNT}/files/{A}/a-1.tar.gz" in lines
    assert f"files/{C}/{WHEEL}#sha256={C}".encode() in stage.files[f"{MOUNT}/wheels.html"]
    assert [(file.name, file.urls) for file in pin.files] == [("a", URLS), ("six", ())]


def test_what_bazels_block_does_not_require_is_not_built(stage: Stage) -> None:
    fetch()
    lines = "\n".join(script for script, _ in stage.scripts)
    labels = {label for label, _ in assemble(source_plan(), CATALOG).builder.steps}
    assert any(label.startswith("horovod") for label in labels)
    assert "/opt/horovod" not in lines and "HOROVOD_" not in lines
    assert "/opt/bazel/bin/bazel" in lines


def test_a_failure_has_bazels_own_words_without_passwords_and_says_what_to_do(stage: Stage) -> None:
    said = [
        "Loading: 0 packages loaded",
        "ERROR: Error downloading [https://me:secret@example.org/a.zip]: UnknownHostException",
        "x" * 1000,
        *[f"line {number}" for number in range(100)],
    ]
    stage.failing["--nobuild"] = (1, said)
    with pytest.raises(FetchError) as failed:
        fetch()
    text = str(failed.value)
    assert "secret" not in text and "UnknownHostException" in text and len(text.splitlines()) < 50
    assert "tensorflow 2.15.1" in text and "proxy" in text
    stage.failing["--nobuild"] = (1, ["ERROR: /x/WORKSPACE:7: no such attribute"])
    with pytest.raises(FetchError, match="a build would fail in the same way"):
        fetch()


def test_a_full_disk_names_the_folder_to_change(stage: Stage) -> None:
    stage.failing["apt-get install"] = (100, ["E: Write error - write (28: No space left on device)"])
    with pytest.raises(FetchError, match="set TMPDIR"):
        fetch()


def test_what_is_not_enough_without_a_network_is_refused_with_what_has_no_hash(stage: Stage) -> None:
    log = stage.root / PLACE.lstrip("/") / "log"
    log.write_bytes(log.read_bytes() + event("//external:b", 5, field(1, "https://example.org/loose.zip")))
    stage.failing["--distdir="] = (1, ["ERROR: Failed to download loose.zip: download is disabled."])
    with pytest.raises(FetchError) as failed:
        fetch()
    text = str(failed.value)
    assert "without a network" in text and "fetched without a sha256: https://example.org/loose.zip" in text


def test_a_log_that_is_a_link_out_of_the_image_is_not_followed(stage: Stage, tmp_path: Path) -> None:
    log = stage.root / PLACE.lstrip("/") / "log"
    log.unlink()
    log.symlink_to("/etc/hostname")
    assert [file.name for file in fetch().files] == ["six"]


def test_a_lock_with_it_is_read_back_and_makes_another_recipe_for_a_bundle_alone() -> None:
    plan = source_plan()
    assembly = assemble(plan, CATALOG)
    (step,) = bazel_steps(plan, assembly)
    pin = BazelPin(bazel="6.1.0", call=step.hash, files=[BazelFile("a", A, URLS)])
    lock = lock_of(plan, CATALOG, Pins(bazel={step.call.name: pin}))
    assert parse_lock(lock.text, "x").pins.bazel == {step.call.name: pin}
    assert lock.content == lock_of(plan, CATALOG, Pins()).content
    assert "{name: a, sha256: " in lock.text


@pytest.mark.parametrize(
    "change",
    [
        {"urls": ["file:///etc/passwd"]},
        {"urls": ["https://example.org/a b"]},
        {"registry": "0/../../etc/passwd"},
        {"registry": "/etc/passwd"},
        {"file": "../x"},
        {"package": "--index-url=https://example.org"},
    ],
    ids=str,
)
def test_a_strangers_lock_names_nothing_but_files_by_https(change: dict[str, Any]) -> None:
    plan = source_plan()
    (step,) = bazel_steps(plan, assemble(plan, CATALOG))
    file = msgspec.structs.replace(BazelFile("a", A, URLS), **change)
    with pytest.raises(InputError, match=r"urls|registry|file|package"):
        lock_of(plan, CATALOG, Pins(bazel={step.call.name: BazelPin(bazel="6.1.0", call=A, files=[file])}))


def test_another_call_of_bazel_is_another_hash() -> None:
    hashes = set()
    for more in ((), ("tensorflow.xla=false",), ("tensorflow.version=2.14.1",)):
        plan = source_plan(*more)
        hashes.add(bazel_steps(plan, assemble(plan, CATALOG))[0].hash)
    assert len(hashes) == 3


def test_a_later_lock_keeps_what_holds_and_tells_what_is_unknown() -> None:
    plan = source_plan()
    steps = bazel_steps(plan, assemble(plan, CATALOG))
    pin = BazelPin(bazel="6.1.0", call=steps[0].hash, files=[])
    said: list[str] = []
    name = steps[0].call.name
    assert _known_to_bazel(CATALOG, Pins(bazel={name: pin}), steps, said.append) == {name: pin}
    assert said == []
    other = msgspec.structs.replace(pin, call=A)
    assert _known_to_bazel(CATALOG, Pins(bazel={name: other}), steps, said.append) == {}
    assert len(said) == 1 and "--fetch-bazel" in said[0]


# module registries


def test_a_registry_is_read_through_a_server_that_notes_what_lasts() -> None:
    with serving() as server:
        server.files = {"r/modules/m/1/MODULE.bazel": b"module()", "r/modules/m/metadata.json": b"{}"}
        with RegistryRecorder([server.url("r/")], []) as recorder:
            (word,) = recorder.words
            here = word.removeprefix("--registry=")
            assert urlopen(f"{here}/modules/m/1/MODULE.bazel").read() == b"module()"
            assert urlopen(f"{here}/modules/m/metadata.json").read() == b"{}"
            for path in ("modules/m/2/MODULE.bazel", "../etc/passwd", "modules/%2e%2e/x"):
                with pytest.raises(OSError, match="404"):
                    urlopen(f"{here}/{path}")
            assert recorder.named(f"{here}/modules/m/1/patches/a.patch") == server.url("r/modules/m/1/patches/a.patch")
        assert recorder.read == {"0/modules/m/1/MODULE.bazel": b"module()"}
        assert recorder.url("0/modules/m/1/MODULE.bazel") == server.url("r/modules/m/1/MODULE.bazel")
        assert recorder.failures == []


def test_a_registry_that_does_not_answer_is_named() -> None:
    with RegistryRecorder(["http://127.0.0.1:9/r"], []) as recorder:
        with pytest.raises(OSError, match="502"):
            urlopen(recorder.words[0].removeprefix("--registry=") + "/modules/m/1/MODULE.bazel")
        assert "127.0.0.1:9/r/modules/m/1/MODULE.bazel" in recorder.failures[0]


def test_files_of_registries_are_pinned_by_their_content() -> None:
    from hpcgen.plugins.bazel.pins import Fetched, listed

    found = Fetched(
        {}, [], {}, {"0/modules/m/1/MODULE.bazel": ("https://r.example.org/modules/m/1/MODULE.bazel", b"x")}
    )
    (file,) = listed(found)
    assert (file.name, file.registry) == ("m", "0/modules/m/1/MODULE.bazel")
    assert file.sha256 == hashlib.sha256(b"x").hexdigest()
