"""Libraries compiled over two MPIs, each by buildah from the rendered recipe, and what two ranks then do with them.

The archives are Debian's copies of the sources, which a collection has rows for; that of PnetCDF lacks its configure.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, Buildah
from test_rendered_kits import check_selftest, site_profile
from test_sources import sources

from tests.helpers.file_server import make_certificate, serving

pytestmark = pytest.mark.slow
VERSIONS = {"hdf5": "1.10.8", "netcdf": "4.9.0", "pnetcdf": "1.12.3", "fftw": "3.3.10"}
SOURCES = {name: "fftw3" if name == "fftw" else name for name in VERSIONS}
LIBRARY = {"mpich": "/opt/mpich/lib/libmpi.so.12", "openmpi": "/opt/openmpi/lib/libmpi.so.40"}
BLOCKS = Path(__file__).parents[2] / "building_blocks"


@pytest.fixture
def collection(machine_facts: dict[str, Any], base_image: BaseImage, tmp_path: Path) -> Iterator[Path]:
    """A profile of this machine, whose mirror has the archives, and rows for those."""
    ours = tmp_path / "ours"
    for folder in ("site_profiles", "recipes", "building_blocks"):
        (ours / folder).mkdir(parents=True)
    with serving(make_certificate(ours)) as server:
        held = sources(machine_facts["debian"]["mirror"], list(SOURCES.values()), tmp_path / "sources")
        for (name, version), content in zip(VERSIONS.items(), held, strict=True):
            server.files[f"{name}-{version}.tar"] = content
            archive = {
                "url": f"https://example.org/{name}-{version}.tar",
                "sha256": hashlib.sha256(content).hexdigest(),
            }
            row = {"archives": {"source": archive}}
            source = {"from": "Debian 12", "checked": "2026-11-28", "as_of": "2026-11-28", "verified": "yes"}
            table = {"block": name, "source": source, "releases": {version: row}}
            (ours / f"building_blocks/{name}.yaml").write_text(json.dumps(table))
        text = (
            (BLOCKS / "pnetcdf.py").read_text("utf-8").replace('"perl"]', '"perl", "autoconf", "automake", "libtool"]')
        )
        configure = '\n    def prepare_source(self, ctx):\n        return ["autoreconf -i"]\n'
        (ours / "building_blocks/pnetcdf.py").write_text(text + configure, "utf-8")
        site = site_profile(machine_facts, base_image)
        site["network"]["mirrors"]["files"] = server.url("").rstrip("/")
        site["network"]["ca_certificates"] = [*site["network"]["ca_certificates"], str(ours / "certificate.pem")]
        (ours / "site_profiles/here.yaml").write_text(json.dumps(site))
        yield ours


@pytest.mark.parametrize("names", [("pnetcdf",), ("fftw",), ("hdf5", "netcdf")], ids="-".join)
@pytest.mark.parametrize("mpi", LIBRARY)
def test_two_ranks_use_it_over_the_images_mpi(
    collection: Path, buildah: Buildah, tmp_path: Path, mpi: str, names: tuple[str, ...]
) -> None:
    blocks = {name: {"version": VERSIONS[name]} for name in names}
    stack = {
        "name": "libraries",
        "title": "Libraries over one MPI",
        "blocks": {**blocks, mpi: {"options": {"obtain": "wheels"}}, "rank_test": {}},
        "run": {"command": ["/opt/rank_test/bin/rank_test"], "gpus_per_node": 0},
    }
    (collection / "recipes/libraries.yaml").write_text(json.dumps(stack))
    own = {"HPCGEN_COLLECTIONS": str(collection), "HPCGEN_RECORDS": str(tmp_path / "records")}
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
