"""What a profile says of modules, done by a real Lmod: set-up, folders, and modules that show the host's MPI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import SiteEngine
from hpcgen.launch.script import job_script
from tests.unit.launch.test_launch import make_plan

LMOD = "/usr/share/lmod/lmod/init/bash"
SHOWS = """\
setenv("APPTAINERENV_LD_LIBRARY_PATH", "/opt/cray/pe/lib64:/opt/cray/libfabric/lib64")
setenv("APPTAINER_BIND", "/opt/cray")
"""
WORDS = '#!/bin/bash\nprintf "%s\\n" "$@" "$APPTAINER_BIND" "$http_proxy" "$(ulimit -n)"\n'
pytestmark = pytest.mark.containers


def site_plan(modules: Path) -> Plan:
    """Of a site that keeps a base module, below whose folder the others are, as Polaris does."""
    profile = Catalog().site("lumi-g")
    assert profile.mpi is not None
    setup = [f"source {LMOD}", "module reset", "ulimit -n 64"]
    system = replace(profile.system, setup=setup, module_paths=[str(modules)])
    mpi = replace(profile.mpi, root="/opt/cray", bind_modules=["base", "show-mpi"], gpu={})
    engine = SiteEngine(version="1.4.5", modules=["apptainer"], run_options=["--fakeroot"])
    containers = replace(profile.containers, preferred="apptainer", engines={"apptainer": engine})
    profile = replace(profile, system=system, mpi=mpi, containers=containers)
    return make_plan(profile, mpi=True, mpi_block="mpich", account="p", ranks_per_node=1)


def test_a_job_finds_what_lmod_shows_it(tmp_path: Path) -> None:
    modules, below, programs = (tmp_path / name for name in ("modules", "below", "bin"))
    for folder in (modules, below, programs):
        folder.mkdir()
    (modules / "base.lua").write_text(f'prepend_path("MODULEPATH", "{below}")\n')
    (below / "show-mpi.lua").write_text(SHOWS)
    (below / "apptainer.lua").write_text(f'prepend_path("PATH", "{programs}")\n')
    (programs / "apptainer").write_text(WORDS)
    (programs / "apptainer").chmod(0o755)
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/bash\nwhile [ "$1" != apptainer ]; do shift; done\nexec "$@"\n')
    srun.chmod(0o755)
    (tmp_path / "image.sif").touch()
    text = job_script(site_plan(modules), {"LD_LIBRARY_PATH": "/opt/mpich/lib"}, preflight="")[1]
    (tmp_path / "job.slurm").write_text(text)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HPCGEN_IMAGE": "image.sif", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "job.slurm", "hello"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    words = done.stdout.splitlines()
    assert words[:2] == ["exec", "--fakeroot"]
    assert "LD_LIBRARY_PATH=/opt/cray/pe/lib64:/opt/cray/libfabric/lib64:/opt/mpich/lib:/.singularity.d/libs" in words
    assert words[-4:] == ["hello", "/opt/cray", "", "64"]
