"""Whole kits, compared byte for byte with reviewed files. ``pytest --update-golden`` rewrites them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.job import JobRequest
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from tests.conftest import GOLDEN

SITES = {"supermuc": ["charliecloud"], "hlrs-testbed": ["singularity"], "workstation": ["docker"]}
STACKS = ["tf-horovod", "mpi-hello", "onnxruntime"]
GPUS = {("hlrs-testbed", "onnxruntime"): 0}
"""What has to be said outright: the driver there is too old for any build of ONNX Runtime with CUDA."""
SETTINGS = {("supermuc", "tf-horovod"): ["tensorflow.install=source"]}
"""The long way, by Bazel; the wheel is in the kits of the other sites."""
CASES = [(site, stack, format) for site, formats in SITES.items() for stack in STACKS for format in formats]


@pytest.mark.parametrize(("site", "stack", "format"), CASES)
def test_kit_is_the_reviewed_one(site: str, stack: str, format: str, request: pytest.FixtureRequest) -> None:
    catalog = Catalog()
    plan = make_plan(
        catalog,
        catalog.site(site),
        catalog.stack(stack),
        job=JobRequest(gpus_per_node=GPUS.get((site, stack))),
        settings=SETTINGS.get((site, stack), []),
    )
    assert plan.format == format
    kit = make_kit(plan, catalog)
    folder = GOLDEN / site / stack
    if request.config.getoption("--update-golden"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, file in kit.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, "utf-8")
            path.chmod(0o755 if file.executable else 0o644)
    assert {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} == set(kit.files)
    for name, file in kit.files.items():
        assert file.text == Path(folder / name).read_text("utf-8"), (
            f"{site}/{stack}/{name} differs from its golden file"
        )


def test_every_format_that_a_site_allows_has_golden_kits() -> None:
    from hpcgen.backends.engines import engine_format

    catalog = Catalog()
    for site, formats in SITES.items():
        engines = catalog.site(site).containers.engines
        assert {engine_format(name) for name, engine in engines.items() if engine.allowed} == set(formats)
