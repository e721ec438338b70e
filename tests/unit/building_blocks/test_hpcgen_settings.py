"""The module that programs import: nothing without a variable, each variable alone, a wrong value is said.

In the slow tier its switches are tried by ``HPCGEN_TEST_TORCH``, a Python with torch and SciPy.
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


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_a_number_of_threads_that_cannot_be_is_said(value: str) -> None:
    done = started("import hpcgen_settings", HPCGEN_FFT_WORKERS=value)
    assert f"HPCGEN_FFT_WORKERS={value!r}: expected a number of threads, or all" in done.stderr


def test_what_holds_for_the_process_waits_for_torch(tmp_path: Path) -> None:
    """A program that never imports torch pays nothing; one that does gets it, whoever imported the module."""
    (tmp_path / "torch.py").write_text("def set_float32_matmul_precision(word): print('precision', word)\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import hpcgen_settings\n"
    program += "print('torch' in sys.modules); import torch; print(torch.__loader__.__class__.__name__)"
    done = started(program, HPCGEN_MATMUL_PRECISION="high")
    assert done.stdout == "False\nprecision high\nSourceFileLoader\n"
    assert done.stderr == "hpcgen_settings: HPCGEN_MATMUL_PRECISION=high\n"
    late = started(
        program.replace("import hpcgen_settings", "import torch, hpcgen_settings"), HPCGEN_MATMUL_PRECISION="high"
    )
    assert late.stdout.startswith("precision high\nTrue\n")


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


TRANSFORMS = """
import hpcgen_settings, numpy, scipy.fft as fft
from scipy.fft._pocketfft import basic
seen = []
count = basic._workers
def told(workers):
    seen.append(count(workers))
    return seen[-1]
basic._workers = told
signal = numpy.random.rand(64, 64)
assert numpy.allclose(fft.ifft2(fft.fft2(signal)).real, signal)
fft.rfft(signal, workers=1)
with fft.set_workers(2):
    fft.rfft(signal)
fft.rfft(signal)
print(seen, fft.get_workers())
"""
"""Looks at what SciPy's own code is told; of what is public nothing says it."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "printed"),
    [
        ({}, "[1, 1, 1, 2, 1] 1"),
        ({"HPCGEN_FFT_WORKERS": "3"}, "[3, 3, 1, 2, 3] 1"),
        ({"HPCGEN_FFT_WORKERS": "all", "OMP_NUM_THREADS": "4"}, "[4, 4, 1, 2, 4] 1"),
    ],
)
def test_transforms_have_the_threads_unless_the_program_says(variables: dict[str, str], printed: str) -> None:
    assert TORCH is not None, "HPCGEN_TEST_TORCH must name a Python with torch and SciPy"
    done = started(TRANSFORMS, TORCH, **variables)
    assert done.stdout.strip() == printed, done.stderr
    assert ("hpcgen_settings: HPCGEN_FFT_WORKERS=" in done.stderr) == bool(variables)


def test_the_image_has_it_where_its_python_looks() -> None:
    catalog = Catalog()
    plan = make_plan(catalog, catalog.site("workstation"), catalog.stack("pytorch"), added=["hpcgen_settings"])
    kit = make_kit(plan, catalog)
    assert "purelib" in kit.files["Dockerfile"].text
    assert "channels last: True" in kit.files["selftest.sh"].text
    assert "hpcgen_settings.pth" not in kit.files["Dockerfile"].text


def test_on_request_every_start_of_python_imports_it() -> None:
    catalog, settings = Catalog(), ["hpcgen_settings.automatic=true"]
    site, stack = catalog.site("workstation"), catalog.stack("pytorch")
    kit = make_kit(make_plan(catalog, site, stack, added=["hpcgen_settings"], settings=settings), catalog)
    assert kit.files["files/hpcgen_settings.pth"].text == "import hpcgen_settings\n"
    assert "products: high" in kit.files["selftest.sh"].text
