"""``hpcgen build`` with a stand-in for ch-image, over a storage that says which base image was pulled.

The real ch-image is in tests/containers/test_base_images.py.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from hpcgen.backends.engines import charliecloud
from hpcgen.builders import BuildOptions, Watcher, build_image
from hpcgen.core.errors import BuildFailedError
from hpcgen.kit.folder import read_kit

KIT = Path(__file__).parents[2] / "golden" / "supermuc" / "mpi-hello"
NAME = "docker.io/library/ubuntu:noble-20260911"
HELD = "docker.io%library%ubuntu+noble-20260911"
CH_IMAGE = """\
#!/bin/sh
[ "$1 $2" != "gestalt storage-path" ] || echo "{folder}/store"
"""
CH_CONVERT = """\
#!/bin/sh
for last; do :; done
echo image > "$last"
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The storage of the ch-image on PATH, with another image than the kit's under the name of its base."""
    programs, store = tmp_path / "bin", tmp_path / "store"
    programs.mkdir()
    for name, text in {"ch-image": CH_IMAGE, "ch-convert": CH_CONVERT, "mksquashfs": "#!/bin/sh\n"}.items():
        (programs / name).write_text(text.format(folder=tmp_path))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("HPCGEN_RECORDS", str(tmp_path / "records"))
    monkeypatch.delenv("HPCGEN_BUILD_OPTIONS", raising=False)
    for folder in (store / "dlcache", store / "img" / HELD / "ch"):
        folder.mkdir(parents=True)
    (store / "img" / HELD / "ch" / "config.pulled.json").write_text("{}")
    manifest = f'{{"config": {{"digest": "sha256:{hashlib.sha256(b"{}").hexdigest()}"}}}}'
    (store / "dlcache" / f"{HELD}%skinny.manifest.json").write_text(manifest)
    return store


def test_the_kit_names_what_ch_image_does_not_check() -> None:
    kit = read_kit(KIT)
    assert kit.facts is not None
    assert [base.name for base in kit.facts.bases] == [NAME]
    assert f"digest: {kit.facts.bases[0].digest}" in (KIT / "hpcgen.lock").read_text()


def test_another_base_image_than_that_of_the_kit_makes_no_image(store: Path) -> None:
    target = store.parent / "x.sqfs"
    with pytest.raises(BuildFailedError) as raised:
        build_image(KIT, BuildOptions(output=str(target)))
    said = str(raised.value)
    assert f"error: ch-image pulled another {NAME} than the recipe names: it has sha256:" in said
    assert f"cause: {NAME} is not the image of that name that the recipe was made for" in said
    assert f"ch-image pull {NAME}" in str(raised.value.problems[0].remedy)
    assert not target.exists()


def test_a_base_image_that_was_not_pulled_is_said_to_be_unknown(store: Path) -> None:
    shutil.rmtree(store / "dlcache")
    notes: list[str] = []

    class Noting(Watcher):
        def note(self, text: str) -> None:
            notes.append(text)

    record = build_image(KIT, BuildOptions(output=str(store.parent / "x.sqfs")), Noting())
    assert record.result == "built" and (store.parent / "x.sqfs").exists()
    assert [note.partition(" is sha256:")[0] for note in notes] == [f"note: whether {NAME}"]


def test_a_base_image_that_is_not_listed_in_time_ends_the_build(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of the delay is not taken for words of the build command."""
    find = store.parent / "bin" / "find"
    find.write_text("#!/bin/sh\nexec sleep 2\n")
    find.chmod(0o755)
    monkeypatch.setattr(charliecloud, "_LISTING_S", 0.3)
    with pytest.raises(BuildFailedError, match="in ch-image's store could not be read: bash did not end within 0 s"):
        build_image(KIT, BuildOptions(output=str(store.parent / "x.sqfs")))
    assert not (store.parent / "x.sqfs").exists()
