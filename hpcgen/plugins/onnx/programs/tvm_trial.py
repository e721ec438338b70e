"""Compiles and times schedules of TVM: a line of JSON for each on stdin, one with its seconds on stdout."""

import json
import os
import sys
from pathlib import Path

import tvm
from tvm.runtime import device
from tvm.s_tir.meta_schedule.builder.local_builder import default_build
from tvm.s_tir.meta_schedule.runner.config import EvaluatorConfig
from tvm.s_tir.meta_schedule.runner.local_runner import default_alloc_argument, default_run_evaluator

TIMED = EvaluatorConfig(number=3, repeat=1, min_repeat_ms=20, enable_cpu_cache_flush=False)


def timed(asked):
    """Seconds of the runs of one schedule."""
    trial = json.loads(Path(asked["path"]).read_text("utf-8"))
    module, target = tvm.script.from_source(trial["module"]), tvm.target.Target(trial["target"])
    built = default_build(module, target, None)
    runnable = tvm.runtime.Executable(built).jit() if hasattr(built, "import_module") else built
    arguments = default_alloc_argument(device("cpu", 0), asked["arguments"], 1)
    return default_run_evaluator(runnable, device("cpu", 0), TIMED, arguments)


def main():
    """Until there are no more; what compilers print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            said = {"seconds": [float(each) for each in timed(json.loads(line))]}
        except Exception as failure:
            said = {"failed": str(failure).strip().splitlines()[-1] if str(failure).strip() else repr(failure)}
        answers.write(json.dumps(said) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
