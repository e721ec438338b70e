"""The program by which the self-test of aws_ofi_nccl asks a plugin for its name, compiled here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize("asked", ["AWS Libfabric", ""])
def test_its_self_test_prints_the_name_that_nccl_would_see(tmp_path: Path, asked: str) -> None:
    """A plugin in its place that takes another name where NCCL is told of that one, as it does itself."""
    (tmp_path / "plugin.c").write_text(
        '#include <stdlib.h>\n#include <string.h>\nstruct { const char *name; } ncclNetPlugin_v8 = { "Libfabric" };\n'
        '__attribute__((constructor)) static void named(void) { const char *net = getenv("NCCL_NET");\n'
        '    if (net != NULL && strcmp(net, "AWS Libfabric") == 0) ncclNetPlugin_v8.name = "AWS Libfabric"; }\n'
    )
    program = ROOT / "building_blocks" / "files" / "net_plugin.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "plugin.so", "plugin.c"], cwd=tmp_path, check=True)
    subprocess.run(["cc", "-Wall", "-Werror", "-o", "net_plugin", program, "-ldl"], cwd=tmp_path, check=True)
    run = subprocess.run(
        ["./net_plugin", "./plugin.so"], cwd=tmp_path, env={"NCCL_NET": asked}, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout) == (0, f"ncclNetPlugin_v8: {asked or 'Libfabric'}\n")
    gone = subprocess.run(["./net_plugin", "./gone.so"], cwd=tmp_path, capture_output=True, text=True)
    assert gone.returncode == 1 and "gone.so" in gone.stderr
