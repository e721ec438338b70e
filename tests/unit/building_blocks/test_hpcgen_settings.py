"""The module that programs import: nothing without a variable, each variable alone, a wrong value is said.

In the slow tier its switches are tried by ``HPCGEN_TEST_TORCH``, a Python with torch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan

FILES = Path(__file__).parents[3] / "building_blocks" / "files"
TORCH = os.environ.get("HPCGEN_TEST_TORCH")
USED = """
import torch, hpcgen_settings as s
layer, pictures = torch.nn.Conv2d(3, 8, 3), torch.randn(2, 3, 8, 8)
model, batch = s.prepared(layer), s.laid_out(pictures)
with s.lower():
    found = model(batch)
print(batch.is_contiguous(memory_format=torch.channels_last), found.dtype, torch.get_float32_matmul_precision())
"""


def started(program: str, python: str = sys.executable, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HPCGEN_")}
    environment = {**clean, "PYTHONPATH": str(FILES), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    return subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True)


def test_nothing_happens_without_a_variable() -> None:
    program = "import sys, hpcgen_settings as s; x = object(); assert s.prepared(x) is x and s.laid_out(x) is x\n"
    program += "with s.lower(): pass\nprint('torch' in sys.modules)"
    done = started(program)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_wrong_value_is_said() -> None:
    assert (
        "HPCGEN_COMPILE='fast': expected one of default, "
        in started("import hpcgen_settings", HPCGEN_COMPILE="fast").stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "printed"),
    [
        ({}, "False torch.float32 highest"),
        ({"HPCGEN_CHANNELS_LAST": "1"}, "True torch.float32 highest"),
        ({"HPCGEN_AUTOCAST": "bf16"}, "False torch.bfloat16 highest"),
        ({"HPCGEN_MATMUL_PRECISION": "high"}, "False torch.float32 high"),
    ],
)
def test_each_switch_alone(variables: dict[str, str], printed: str) -> None:
    assert TORCH is not None, "HPCGEN_TEST_TORCH must name a Python with torch"
    done = started(USED, TORCH, **variables)
    assert done.stdout.strip() == printed
    assert done.stderr.startswith("hpcgen_settings: " if variables else "")


def test_the_image_has_it_where_its_python_looks() -> None:
    catalog = Catalog()
    plan = make_plan(catalog, catalog.site("workstation"), catalog.stack("pytorch"), added=["hpcgen_settings"])
    kit = make_kit(plan, catalog)
    assert "purelib" in kit.files["Dockerfile"].text
    assert "channels last: True" in kit.files["selftest.sh"].text
