"""Libraries compiled over two MPIs, each by buildah from the rendered recipe, and what two ranks then do with them.

The archives are Debian's copies of the sources, which a collection has rows for; some lack what can be generated.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
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
}
"""Debian's release, source package and version."""
ENGINE = "tools/build/src/engine"
GENERATED = {
    "pnetcdf": [
        ('"perl"]', '"perl", "autoconf", "automake", "libtool"]'),
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

    def add(self, name: str) -> None:
        """A row of a block, and its archive."""
        suite, package, version = SOURCES[name]
        (content,) = sources(self.mirror, [package], self.folder / f"sources-{name}", suite)
        self.server.files[f"{name}-{version}.tar"] = content
        digest = hashlib.sha256(content).hexdigest()
        row = {"archives": {"source": {"url": f"https://example.org/{name}-{version}.tar", "sha256": digest}}}
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
    stack = {
        "name": "libraries",
        "title": "Libraries over one MPI",
        "blocks": {**blocks, mpi: {"options": {"obtain": "wheels"}}, "rank_test": {}},
        "run": {"command": ["/opt/rank_test/bin/rank_test"], "gpus_per_node": 0},
    }
    (collection.folder / "recipes/libraries.yaml").write_text(json.dumps(stack))
    own = {"HPCGEN_COLLECTIONS": str(collection.folder), "HPCGEN_RECORDS": str(tmp_path / "records")}
    image = f"localhost/libraries-{mpi}:1"
    words = ["build", "--site", "here", "--stack", "libraries", "--engine", "buildah", "-o", image]
    chroot = {**own, "BUILDAH_ISOLATION": "chroot"}
    buildah.run([sys.executable, "-m", "hpcgen", *words], cwd=tmp_path, env=chroot, timeout=3600)
    check_selftest(buildah.exec(image, ["/opt/hpcgen/selftest.sh"]).stdout, *names)
    for name in names:
        ranks = f"OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpiexec -n 2 {name}_ranks /tmp"
        said = buildah.exec(image, ["sh", "-c", ranks]).stdout
        maps = {line.split()[-1] for line in said.splitlines() if re.match(r"rank [01] maps ", line)}
        assert "2 ranks: " in said and {re.sub(r"(\.so\.\d+)[.\d]*$", r"\1", each) for each in maps} == {LIBRARY[mpi]}
