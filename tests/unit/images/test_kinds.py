"""Kinds of images: each says what engines and conversions ask it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.backends.engines import ENGINES, builders, runners
from hpcgen.core.errors import BuildFailedError
from hpcgen.images.convert import chain, convert, every_conversion
from hpcgen.images.kinds import KINDS, every_kind, kind_for
from hpcgen.images.reference import ImageReference

FORMS = {"foreign", "sandbox"}
"""Of folders."""
NOWHERE = {"registry"}
"""What no machine has as an image of its own, and nothing here converts."""


def test_what_engines_start_and_conversions_make_are_kinds_that_exist() -> None:
    known = set(KINDS.names())
    for name in KINDS.names():
        assert kind_for(name).name == name
    started = {form for engine in runners().values() for form in engine.starts}
    assert started - FORMS - NOWHERE <= known
    assert {end for row in every_conversion() for end in (row.start, row.end)} - FORMS == known


def test_every_kind_becomes_one_that_some_engine_starts() -> None:
    for kind in every_kind():
        startable = {form for engine in runners().values() for form in engine.starts}
        assert any(chain(kind.name, end, lambda program: True) is not None for end in startable), kind.name


def test_an_engine_pushes_what_it_builds() -> None:
    kinds = {"podman": "podman", "buildah": "podman", "docker": "docker", "apptainer": "sif", "singularity": "sif"}
    kinds |= {"podman-hpc": "podman", "ch-image": "squashfs"}
    assert set(kinds) == set(builders())
    for name, engine in builders().items():
        commands = engine().push(kinds[name], "image", "registry.example.org/x:1", Path("/scratch"))
        assert commands and commands[0][0] in (name, "ch-convert")
        assert engine().push("oci-archive", "image", "registry.example.org/x:1", Path("/scratch")) == []
    assert ENGINES.find("podman-hpc")().push("podman", "x", "r/x", Path("/s"))[0][0] == "podman-hpc"


@pytest.mark.parametrize("force", [False, True])
def test_a_failing_import_into_ch_image_takes_away_only_what_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    (tmp_path / "root" / "ch").mkdir(parents=True)
    (tmp_path / "root" / "ch" / "environment").touch()
    (tmp_path / "root" / "mnt" / "9").mkdir(parents=True)
    program = tmp_path / "bin" / "ch-image"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/calls\n[ "$1" != import ]\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("CH_IMAGE_STORAGE", str(tmp_path / "storage"))
    source = ImageReference("directory", str(tmp_path / "root"))
    with pytest.raises(BuildFailedError, match="ch-image ended with status 1"):
        convert(source, ImageReference("ch-image", "hello"), force=force)
    assert (tmp_path / "calls").read_text().split() == ["import", *([] if force else ["delete"])]
