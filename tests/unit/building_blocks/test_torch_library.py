"""torchvision and torchaudio beside PyTorch: which release, for which GPUs, what is refused and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import hpcgen
from hpcgen.blocks.steps import Archive, WheelFile, Wheels
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError
from hpcgen.core.model.plan import Plan
from hpcgen.recipe.assemble import assemble, notices

STACK = """name: mine
title: my project
blocks: {python_packages: {options: {files: [requirements.txt]}}}
run: {mpi: false, command: [python3, train.py]}
"""


def planned(folder: Path, text: str, site: str, *settings: str) -> Plan:
    (folder / "requirements.txt").write_text(text, "utf-8")
    (folder / "hpcgen.yaml").write_text(STACK, "utf-8")
    return hpcgen.plan(site, str(folder / "hpcgen.yaml"), settings=settings, catalog=Catalog(), account="a")


def versions(plan: Plan) -> dict[str, str]:
    return {each.name: each.version for each in plan.blocks if each.name.startswith(("pytorch", "torch"))}


@pytest.mark.parametrize(
    ("site", "torch", "vision", "install"),
    [
        ("lumi-g", "2.9.1", "0.24.1", "source"),
        ("supermuc", "2.13.0", "0.28.0", "wheel"),
        ("perlmutter", "2.15.0", "0.29.2", "pip"),
        ("workstation", "2.13.0", "0.28.0", "wheel"),
    ],
)
def test_a_project_gets_the_release_of_the_sites_pytorch(
    tmp_path: Path, site: str, torch: str, vision: str, install: str
) -> None:
    plan = planned(tmp_path, "torch>=2.6\ntorchvision\nrequests==2.32.3\n", site)
    assert versions(plan) == {"pytorch": torch, "torchvision": vision}
    chosen = plan.block("torchvision")
    assert chosen is not None and chosen.options["install"] == install
    assert plan.project is not None and [each.name for each in plan.project.packages] == ["requests"]
    assembly = assemble(plan, Catalog())
    inputs = [item for block, item in assembly.inputs if block.name == "torchvision"]
    wheels = [item for item in inputs if isinstance(item, Wheels)]
    assert all(each.hashed for each in wheels)
    names = {line.split("==")[0] for each in wheels for line in each.requirements}
    if install == "pip":
        assert names == {"torchvision", "pillow"}
    elif install == "wheel":
        assert any(isinstance(each, WheelFile) and f"torchvision-{vision}%2Bcpu" in each.url for each in inputs)
        assert names == {"pillow"}
    else:
        assert any(isinstance(each, Archive) and each.url.endswith(f"v{vision}.tar.gz") for each in inputs)
        assert plan.block("gnu") is not None
        assert any("run only on the CPU" in note for note in notices(assembly))
        commands = [line for _, step in assembly.builder.steps for line in step.commands]
        assert any(f"BUILD_VERSION={vision}" in line and "FORCE_CUDA=0" in line for line in commands)
    assert "ops.nms" in assembly.selftest


@pytest.mark.parametrize("text", ["torchvision\n", "torchvision\ntorch\n"])
def test_torchvision_first_gets_the_pytorch_of_the_same_install(tmp_path: Path, text: str) -> None:
    """Newer releases of PyTorch have for the node's driver only the wheel for which torchvision has none."""
    (tmp_path / "hpcgen.yaml").write_text(
        STACK.replace("{python_packages:", "{pytorch: {}, torchvision: {}, python_packages:"), "utf-8"
    )
    (tmp_path / "requirements.txt").write_text(text, "utf-8")
    plan = hpcgen.plan("juwels-booster", str(tmp_path / "hpcgen.yaml"), catalog=Catalog(), account="a")
    assert versions(plan) == {"pytorch": "2.10.0", "torchvision": "0.25.0"}
    assert {each.options["install"] for each in plan.blocks if each.name.startswith(("pytorch", "torch"))} == {"pip"}


@pytest.mark.parametrize(
    ("site", "audio"), [("perlmutter", "2.11.0"), ("supermuc", "2.11.0"), ("workstation", "2.11.0")]
)
def test_torchaudio_goes_with_later_releases_too(tmp_path: Path, site: str, audio: str) -> None:
    plan = planned(tmp_path, "torchaudio\ntorch\n", site)
    assert versions(plan)["torchaudio"] == audio
    assert any("torchcodec" in note for note in notices(assemble(plan, Catalog())))


def test_there_is_no_torchaudio_for_gpus_of_amd(tmp_path: Path) -> None:
    with pytest.raises(ConflictError) as refused:
        planned(tmp_path, "torch\ntorchaudio\n", "lumi-g")
    text = str(refused.value)
    assert "torchaudio of requirements.txt:2" in text
    assert "torchaudio.accelerator=rocm: no known torchaudio" in text


def test_a_pin_of_another_pytorch_is_a_conflict_of_both_lines(tmp_path: Path) -> None:
    with pytest.raises(ConflictError) as refused:
        planned(tmp_path, "torch==2.13.0\ntorchvision==0.24.1\n", "workstation")
    text = str(refused.value)
    assert "torch==2.13.0 of requirements.txt:1" in text
    assert "torchvision==0.24.1 of requirements.txt:2" in text
    assert "needs pytorch ==2.9.1" in text
    assert any(f"--set {name}" in text for name in ("torchvision.version=0.28.0", "pytorch.version=2.9.1"))


def test_a_pin_leads_to_its_pytorch_where_nobody_says_which(tmp_path: Path) -> None:
    plan = planned(tmp_path, "torch\ntorchvision==0.24.1\n", "leonardo")
    assert versions(plan) == {"pytorch": "2.9.1", "torchvision": "0.24.1"}


@pytest.mark.parametrize(
    ("site", "settings", "said"),
    [
        ("leonardo", ("pytorch.accelerator=cpu", "pytorch.install=wheel"), "torchvision.accelerator=cpu"),
        ("workstation", ("pytorch.install=source",), "pytorch.install=wheel"),
        ("workstation", ("pytorch.install=package",), "without --set pytorch.install=package"),
    ],
)
def test_another_build_of_pytorch_is_refused_with_the_way_out(
    tmp_path: Path, site: str, settings: tuple[str, ...], said: str
) -> None:
    with pytest.raises(HpcgenError) as refused:
        assemble(planned(tmp_path, "torchvision\n", site, *settings), Catalog())
    assert said in str(refused.value)


def test_every_release_belongs_to_a_pytorch_that_is_known() -> None:
    catalog = Catalog()
    known = list(catalog.releases("pytorch"))
    for name in ("torchvision", "torchaudio"):
        for version, row in catalog.releases(name).items():
            assert list(SpecifierSet(row.accepts["pytorch"]).filter(known)), f"{name} {version}"


@pytest.mark.parametrize(
    ("text", "install"),
    [
        ("torch==2.8.0+cpu\ntorchvision==0.23.0+cu128\n", "pip"),
        ("torch==2.11.0\ntorchaudio==2.11.0\ntorchvision==0.26.0\n", "pip"),
        ("torch==2.9.1\ntorchvision==0.24.1\n", "wheel"),
        ("torchvision==0.20.1\n", "pip"),
    ],
)
def test_pins_of_both_are_served_by_builds_that_go_together(tmp_path: Path, text: str, install: str) -> None:
    torch = [each for each in planned(tmp_path, text, "workstation").blocks if "torch" in each.name]
    assert len(torch) > 1 and {each.options["install"] for each in torch} == {install}
    assert {each.options["accelerator"] for each in torch} == {"cpu"}


def test_what_is_set_decides_for_both_or_is_refused(tmp_path: Path) -> None:
    text = "torch==2.9.1\ntorchvision==0.24.1\n"
    torch = planned(tmp_path, text, "workstation", "pytorch.install=pip").block("torchvision")
    assert torch is not None and torch.options["install"] == "pip"
    with pytest.raises(ConflictError, match="it would not load"):
        planned(tmp_path, "torch==2.8.0\ntorchvision==0.23.0\n", "workstation", "pytorch.install=wheel")
