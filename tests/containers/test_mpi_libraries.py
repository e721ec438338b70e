"""Libraries compiled over two MPIs, each by buildah from the rendered recipe, and what two ranks then do with them.

The archives are Debian's copies of the sources, which a collection has rows for; some lack what can be generated.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from container_tools import BaseImage, Buildah
from test_rendered_kits import check_selftest, site_profile
from test_sources import sources

from tests.helpers.file_server import FileServer, make_certificate, serving

pytestmark = pytest.mark.slow
SOURCES = {
    "hdf5": ("trixie", "hdf5", "1.14.5"),
    "netcdf": ("trixie", "netcdf", "4.9.3"),
    "pnetcdf": ("bookworm", "pnetcdf", "1.12.3"),
    "fftw": ("bookworm", "fftw3", "3.3.10"),
    "boost": ("trixie", "boost1.88", "1.88.0"),
    "petsc": ("trixie", "petsc", "3.22.5"),
    "mpich": ("bookworm", "mpich", "4.0.2"),
    "libfabric": ("trixie", "libfabric", "2.1.0"),
    "openmpi": ("bookworm", "openmpi", "4.1.4"),
}
"""Debian's release, source package and version."""
FURTHER = {"netcdf": {"fortran": ("trixie", "netcdf-fortran")}}
"""Archives of a block beside the first: Debian's release and source package."""
ENGINE = "tools/build/src/engine"
GENERATED = {
    "pnetcdf": [
        ('"perl"]', '"perl", "autoconf", "automake", "libtool"]'),
        (
            "    def settings(",
            '    def prepare_source(self, ctx):\n        return ["autoreconf -i"]\n\n    def settings(',
        ),
    ],
    "libfabric": [
        ("return Packages()", 'return Packages(build={"apt": ["autoconf", "automake", "libtool"]})'),
        (
            "    def settings(",
            '    def prepare_source(self, ctx):\n        return ["autoreconf -i"]\n\n    def settings(',
        ),
    ],
    "boost": [
        ('"zlib1g-dev"', '"zlib1g-dev", "bison"'),
        ("        return [f", f'        return ["bison -d -o {ENGINE}/jamgram.cpp {ENGINE}/jamgram.y", f'),
    ],
}
"""What Debian takes out of its copies, since it can be generated: how the blocks generate it here."""
LIBRARY = {"mpich": "/opt/mpich/lib/libmpi.so.12", "openmpi": "/opt/openmpi/lib/libmpi.so.40"}
BLOCKS = Path(__file__).parents[2] / "building_blocks"


@pytest.fixture
def collection(machine_facts: dict[str, Any], base_image: BaseImage, tmp_path: Path) -> Iterator[Collection]:
    """A profile of this machine, whose mirror has the archives, and rows for those."""
    ours = tmp_path / "ours"
    for folder in ("site_profiles", "recipes", "building_blocks"):
        (ours / folder).mkdir(parents=True)
    with serving(make_certificate(ours)) as server:
        site = site_profile(machine_facts, base_image)
        site["network"]["mirrors"]["files"] = server.url("").rstrip("/")
        site["network"]["ca_certificates"] = [*site["network"]["ca_certificates"], str(ours / "certificate.pem")]
        (ours / "site_profiles/here.yaml").write_text(json.dumps(site))
        yield Collection(ours, server, machine_facts["debian"]["mirror"])


class Collection(NamedTuple):
    """Where it lies, what serves the archives, and where Debian's are from."""

    folder: Path
    server: FileServer
    mirror: str

    def _archive(self, name: str, suite: str, package: str) -> dict[str, str]:
        (content,) = sources(self.mirror, [package], self.folder / f"sources-{package}", suite)
        self.server.files[f"{name}-{package}.tar"] = content
        return {
            "url": f"https://example.org/{name}-{package}.tar",
            "sha256": hashlib.sha256(content).hexdigest(),
        }

    def add(self, name: str) -> None:
        """A row of a block, and its archives."""
        suite, package, version = SOURCES[name]
        wanted = {"source": (suite, package), **FURTHER.get(name, {})}
        row = {"archives": {kind: self._archive(name, *of) for kind, of in wanted.items()}}
        source = {"from": f"Debian, {suite}", "checked": "2026-11-30", "as_of": "2026-11-30", "verified": "yes"}
        table = {"block": name, "source": source, "releases": {version: row}}
        (self.folder / f"building_blocks/{name}.yaml").write_text(json.dumps(table))
        if name in GENERATED:
            text = (BLOCKS / f"{name}.py").read_text("utf-8")
            for before, after in GENERATED[name]:
                assert before in text
                text = text.replace(before, after)
            (self.folder / f"building_blocks/{name}.py").write_text(text, "utf-8")


CHOSEN = [("pnetcdf",), ("fftw",), ("hdf5", "netcdf"), ("boost",), ("petsc",)]


@pytest.mark.parametrize("names", CHOSEN, ids="-".join)
@pytest.mark.parametrize("mpi", LIBRARY)
def test_two_ranks_use_it_over_the_images_mpi(
    collection: Collection, buildah: Buildah, tmp_path: Path, mpi: str, names: tuple[str, ...]
) -> None:
    for name in names:
        collection.add(name)
    blocks: dict[str, Any] = {name: {"version": SOURCES[name][2]} for name in names}
    if "petsc" in names:
        blocks["openblas"] = {"options": {"obtain": "package"}}
    said = built(collection, buildah, tmp_path, {**blocks, mpi: {"options": {"obtain": "wheels"}}}, *names)
    for name in names:
        two_ranks(said(f"{name}_ranks"), mpi)


OCEAN = """\
program ocean
  use mpi
  use hdf5
  use netcdf
  implicit none
  integer :: failed, major, minor, release
  call MPI_Init(failed)
  call h5get_libversion_f(major, minor, release, failed)
  print '(3a,i0,a,i0)', 'netCDF ', trim(nf90_inq_libvers()), ' over HDF5 ', major, '.', minor
  call MPI_Finalize(failed)
end program ocean
"""
MAKEFILE = """\
FFLAGS = -O2 -I$(NETCDF)/include -I$(HDF5_ROOT)/include
LIBS = -L$(NETCDF)/lib -lnetcdff -lnetcdf -L$(HDF5_ROOT)/lib -lhdf5_fortran -lhdf5
ocean: ocean.f90
\tmpif90 $(FFLAGS) -o $@ $< $(LIBS)
"""
"""A project as makefiles of models have it: each library by the variable of its folder."""
SOURCE_OF = {"mpich": ("libfabric", "mpich"), "openmpi": ("openmpi",)}
FORTRAN = ("pnetcdf", "hdf5", "netcdf", "petsc")


@pytest.mark.parametrize("mpi", SOURCE_OF)
def test_two_ranks_use_them_from_fortran(collection: Collection, buildah: Buildah, tmp_path: Path, mpi: str) -> None:
    """Over an MPI that is compiled with Fortran, which no wheel has."""
    for name in (*SOURCE_OF[mpi], *FORTRAN):
        collection.add(name)
    blocks: dict[str, Any] = {
        "debian": {"version": "12"},
        "gnu": {"options": {"fortran": True}},
        "openblas": {"options": {"obtain": "package"}},
        **{name: {"version": SOURCES[name][2]} for name in SOURCE_OF[mpi]},
        **{name: {"version": SOURCES[name][2], "options": {"fortran": True}} for name in (mpi, *FORTRAN)},
    }
    project = collection.folder / "recipes/project"
    project.mkdir()
    (project / "ocean.f90").write_text(OCEAN)
    (project / "Makefile").write_text(MAKEFILE)
    own = {"copy": [{"from": "project", "to": "/app"}], "build": {"commands": ["make"], "mpi": True}}
    said = built(collection, buildah, tmp_path, blocks, *FORTRAN, **own)
    for name in FORTRAN:
        two_ranks(said(f"{name}_fortran"), mpi)
    assert said("/app/ocean").count(f"netCDF {SOURCES['netcdf'][2]}") == 2


def two_ranks(output: str, mpi: str) -> None:
    """The output of two ranks of a program that has loaded the image's MPI alone."""
    maps = {line.split()[-1] for line in output.splitlines() if re.match(r"rank [01] maps ", line)}
    assert "2 ranks: " in output and {re.sub(r"(\.so\.\d+)[.\d]*$", r"\1", each) for each in maps} == {LIBRARY[mpi]}


def built(
    collection: Collection, buildah: Buildah, tmp_path: Path, blocks: dict[str, Any], *names: str, **more: Any
) -> Callable[[str], str]:
    """An image with the blocks, whose self-test passes, and what two ranks of one of its programs print."""
    stack = {
        "name": "libraries",
        "title": "Libraries over one MPI",
        "blocks": {**blocks, "rank_test": {}},
        **more,
        "run": {"command": ["/opt/rank_test/bin/rank_test"], "gpus_per_node": 0},
    }
    (collection.folder / "recipes/libraries.yaml").write_text(json.dumps(stack))
    own = {"HPCGEN_COLLECTIONS": str(collection.folder), "HPCGEN_RECORDS": str(tmp_path / "records")}
    image = "localhost/libraries:1"
    words = ["build", "--site", "here", "--stack", "libraries", "--engine", "buildah", "-o", image]
    chroot = {**own, "BUILDAH_ISOLATION": "chroot"}
    buildah.run([sys.executable, "-m", "hpcgen", *words], cwd=tmp_path, env=chroot, timeout=7200)
    check_selftest(buildah.exec(image, ["/opt/hpcgen/selftest.sh"]).stdout, *names)

    def said(program: str) -> str:
        ranks = f"OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpiexec -n 2 {program} /tmp"
        return buildah.exec(image, ["sh", "-c", ranks]).stdout

    return said
