"""What is asked of an MPI is asked of its capabilities: a block of somebody's own behaves like the built-in one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.job import JobRequest
from hpcgen.kit.kit import make_kit
from hpcgen.launch.parts import mpi_folders
from hpcgen.planning.contract.verdict import case_of, checks_of
from hpcgen.running.host_side import laid_out
from hpcgen.running.image_findings import check_mpi
from tests.conftest import ROOT
from tests.helpers.contract_cases import INFINIBAND, NVIDIA, OMNI_PATH, SLINGSHOT, Workshop, changed

CASES = {
    "the host's takes its place": (INFINIBAND, "openmpi", "5.0.6"),
    "the image's own launcher": (NVIDIA, "openmpi", "5.0.7"),
    "the image's own launcher, MPICH": (NVIDIA, "mpich", "4.3.2"),
    "a host made from MPICH": (SLINGSHOT, "mpich", "3.4.3"),
}


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """With the built-in Open MPI and MPICH once more, under names of somebody's own."""
    made = Workshop(tmp_path / "collection")
    blocks = tmp_path / "collection" / "building_blocks"
    for name in ("openmpi", "mpich"):
        code = (ROOT / "building_blocks" / f"{name}.py").read_text()
        (blocks / f"my_{name}.py").write_text(code.replace(f'    name = "{name}"', f'    name = "my_{name}"'))
        table = (ROOT / "building_blocks" / f"{name}.yaml").read_text()
        (blocks / f"my_{name}.yaml").write_text(table.replace(f"block: {name}", f"block: my_{name}", 1))
    virtuals = blocks / "virtuals.yaml"
    virtuals.write_text(virtuals.read_text().replace("plain_mpi", "plain_mpi, my_openmpi, my_mpich"))
    return made


@pytest.mark.parametrize("name", CASES)
def test_another_block_of_the_same_mpi_behaves_like_the_built_in(name: str, workshop: Workshop) -> None:
    site, block, version = CASES[name]

    def told(provider: str) -> list[object]:
        settings = [f"mpi.provider={provider}", f"{provider}.version={version}", "base.provider=ubuntu"]
        plan = workshop.plan(changed(site, {}), "hello", settings=settings)
        catalog = Catalog([workshop.folder])
        files = make_kit(plan, catalog).files
        scripts = [files[name].text for name in ("run.sh", "job.slurm", "preflight.sh") if name in files]
        checks = [(each.name, each.outcome, each.reason) for each in checks_of(case_of(plan, catalog))]
        return [[each.name for each in plan.blocks], plan.mpi.abi, scripts, checks, mpi_folders(plan)]

    mine = json.dumps(told(f"my_{block}")).replace(f"my_{block}", block)
    assert json.loads(mine) == json.loads(json.dumps(told(block)))


def test_an_mpi_of_another_interface_does_not_go_to_the_host(workshop: Workshop) -> None:
    """Asked again of an image for another site, by what the plan says of its MPI."""
    plan = workshop.plan(changed(NVIDIA, {}), "hello", settings=["mpi.provider=my_openmpi", "base.provider=ubuntu"])
    workshop.profile.write_text(json.dumps(changed(SLINGSHOT, {})))
    site = Catalog([workshop.folder]).site(str(workshop.profile))
    with pytest.raises(PolicyError, match=r"my_openmpi .* cannot be replaced by the cray-mpich"):
        check_mpi(laid_out(plan, site, None, JobRequest()))


def test_an_image_for_the_standards_mpi_goes_to_hosts_that_have_it_alone(workshop: Workshop) -> None:
    mpi = {"flavour": "mpich", "version": "5.0.2", "abi": "mpi5"}
    here = changed(OMNI_PATH, {f"mpi.{name}": value for name, value in mpi.items()} | {"mpi.glibc": None})
    plan = workshop.plan(here, "hello")
    assert plan.mpi.abi == "mpi5"
    for name, value in (("flavour", "intel"), ("version", "2021.18.0")):
        here["mpi"][name] = value
    workshop.profile.write_text(json.dumps(here))
    check_mpi(laid_out(plan, Catalog([workshop.folder]).site(str(workshop.profile)), None, JobRequest()))
    here["mpi"]["abi"] = "mpich"
    workshop.profile.write_text(json.dumps(here))
    site = Catalog([workshop.folder]).site(str(workshop.profile))
    with pytest.raises(PolicyError, match=r"cannot be replaced by the intel"):
        check_mpi(laid_out(plan, site, None, JobRequest()))
