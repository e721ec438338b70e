"""The workload 3dgan: what tf-horovod is, with a program and data of its own."""

from __future__ import annotations

import hpcgen


def test_it_is_tf_horovod_with_another_program() -> None:
    plans = [hpcgen.plan("supermuc", stack) for stack in ("tf-horovod", "3dgan")]
    blocks = [[block.label for block in plan.blocks] for plan in plans]
    assert [label for label in blocks[1] if label not in blocks[0]] == ["gan3d 1"]
    assert plans[1].job.command == ["python3", "/opt/gan3d/share/gan3d_step.py"]
    job = hpcgen.render(plans[1]).files["job.slurm"].text
    assert "KMP_" not in job and "/opt/gan3d/share/gan3d_step.py" in job


def test_the_kit_has_its_programs() -> None:
    files = hpcgen.render(hpcgen.plan("workstation", "3dgan")).files
    for name in ("gan3d_step.py", "make_showers.py"):
        compile(files[f"files/tests/{name}"].text, name, "exec")
    assert "gan3d 1: showers and networks" in files["selftest.sh"].text
