"""Kinds of images: each says what engines and conversions ask it."""

from __future__ import annotations

from pathlib import Path

from hpcgen.engines import ENGINES, builders, runners
from hpcgen.images.conversions import chain, every_conversion
from hpcgen.images.kinds import KINDS, every_kind, kind_for

FORMS = {"foreign", "sandbox"}
"""Of folders."""


def test_what_engines_start_and_conversions_make_are_kinds_that_exist() -> None:
    known = set(KINDS.names())
    for name in KINDS.names():
        assert kind_for(name).name == name
    started = {form for engine in runners().values() for form in engine.starts}
    assert started - FORMS <= known
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
