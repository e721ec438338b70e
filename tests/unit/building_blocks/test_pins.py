"""Releases that programs pin, on sites of each kind: which plan, with what, and what is said where none can be had."""

from __future__ import annotations

from pathlib import Path

import pytest

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError
from hpcgen.core.model.plan import Plan
from hpcgen.recipe.assemble import assemble

NAMES = {"torch": "pytorch"}
"""Blocks that are called otherwise than their package."""
CPU, NVIDIA, ARM, AMD = "workstation", "leonardo", "alps", "lumi-g"
PINS = {
    "torch==1.13.1": {CPU: "wheel", NVIDIA: "pip", ARM: "have no CUDA up to 2.10", AMD: "wheels with ROCm"},
    "torch==2.0.1": {CPU: "pip", NVIDIA: "pip", ARM: "have no CUDA up to 2.10", AMD: "wheels with ROCm"},
    "torch==2.3.0": {CPU: "pip", NVIDIA: "pip", ARM: "have no CUDA up to 2.10", AMD: "wheels with ROCm"},
    "torch==2.5.1": {CPU: "wheel", NVIDIA: "pip", ARM: "have no CUDA up to 2.10", AMD: "wheels with ROCm"},
    "torch==2.6.0": {CPU: "wheel", NVIDIA: "pip", AMD: "hub"},
    "torch==2.9.1": {CPU: "wheel", NVIDIA: "pip", AMD: "wheel"},
    "torch==2.14.0": {CPU: "pip", ARM: "pip", AMD: "wheels with ROCm"},
    "torchvision==0.18.0": {CPU: "pip", NVIDIA: "pip"},
    "torchaudio==2.2.2": {CPU: "pip", NVIDIA: "pip"},
    "jax==0.4.30": {CPU: "cpu", NVIDIA: "cuda12", ARM: "cuda12", AMD: "only with jax.accelerator=cpu or cuda12"},
    "jax==0.5.3": {CPU: "cpu", NVIDIA: "cuda12", ARM: "cuda12"},
    "jax==0.8.1": {CPU: "cpu", NVIDIA: "cuda12", ARM: "cuda13"},
    "tensorflow==2.13.0": {CPU: "pip", NVIDIA: "pip", "supermuc": "pip", AMD: "cannot use them"},
    "tensorflow==2.17.0": {CPU: "pip", NVIDIA: "pip", "supermuc": "pip"},
    "tensorflow==2.17.1": {"supermuc": "pip"},
    "vllm==0.11.0": {NVIDIA: "pip", ARM: "architecture|capability|vllm"},
    "mpi4py==3.1.6": {CPU: "source", NVIDIA: "source", ARM: "source", AMD: "source"},
    "mpi4py==4.0.3": {CPU: "source", NVIDIA: "source"},
    "mpi4py==4.1.0": {CPU: "wheel", NVIDIA: "wheel", AMD: "source"},
}
"""Site → the option with which the release is had, or words of the refusal."""
CASES = [(pin, site, wanted) for pin, sites in PINS.items() for site, wanted in sites.items()]
SHORT = ("pip", "wheel", "hub", "source", "cpu", "cuda12", "cuda13")


def planned(place: Path, pin: str, site: str) -> Plan:
    folder = place / f"{pin}-{site}"  # a catalog reads the files of a folder once
    folder.mkdir()
    (folder / "requirements.txt").write_text(f"{pin}\n", "utf-8")
    stack = folder / "hpcgen.yaml"
    stack.write_text(
        "name: it\ntitle: it\nblocks:\n  python_packages: {options: {files: [requirements.txt]}}\n"
        "run: {command: [python3], mpi: false}\n",
        "utf-8",
    )
    gpus = 0 if pin.startswith("mpi4py") else None
    return hpcgen.plan(default_catalog().site(site), hpcgen.load_stack(stack), gpus_per_node=gpus)


@pytest.mark.parametrize(("pin", "site", "wanted"), CASES)
def test_a_pin_plans_or_its_refusal_says_why(tmp_path: Path, pin: str, site: str, wanted: str) -> None:
    package, _, version = pin.partition("==")
    if wanted not in SHORT:
        with pytest.raises(HpcgenError, match=wanted):
            planned(tmp_path, pin, site)
        return
    plan = planned(tmp_path, pin, site)
    block = plan.block(NAMES.get(package, package))
    assert block is not None and block.version == version
    assert wanted in (block.options["install" if "install" in block.options else "accelerator"],)
    if wanted != "hub" and package != "vllm":
        loose = assemble(plan, Catalog()).loose
        assert not [name for name in loose if name.startswith(NAMES.get(package, package))]


def test_a_refusal_of_one_release_says_what_rules_it_out(tmp_path: Path) -> None:
    with pytest.raises(ConflictError) as refused:
        planned(tmp_path, "torch==2.3.0", AMD)
    said = "pytorch 2.3.0: it is available only with pytorch.accelerator=cuda or cpu, and here that is rocm"
    assert said in str(refused.value)
