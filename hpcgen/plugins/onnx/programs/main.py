"""Do steps for one model, in its work folder: main.py MODEL STEP [STEP ...], each convert, validate, time or a variant.

Steps share this process, so that a framework is started once; variants of a runtime other than ONNX Runtime have one of
their own. A step that gives no answer because the process ended, or was short of memory beside the others, is for the
host to start again by itself.

Exit status 1: there is no valid result, and said/ tells why; 3: not even that could be written; 4: a step is left that
needs the memory for itself; 124: a step took too long.
"""

import importlib
import os
import resource
import shutil
import subprocess
import sys
import threading
import traceback
from contextlib import contextmanager
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)
sys.path.append(str(Path("given").resolve()))

from programs import common  # noqa: E402 (only from here on can it be found)

STEPS = {"convert": "convert", "validate": "convert", "time": "timing"}
"""Modules of the steps; all others are variants."""
UNWRITTEN, ALONE, TOO_LONG = 3, 4, 124


def limit(asked):
    """Let foreign code and files have no more memory than the machine can spare, and leave no dumps of it."""
    most = asked.get("memory_bytes")
    if most:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextmanager
def within(seconds):
    """End the process where a step takes longer, whatever it is doing."""
    timer = threading.Timer(seconds or threading.TIMEOUT_MAX, os._exit, [TOO_LONG])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Steps:
    """The steps of one model in this process: ``asked`` of them, ``original`` once it is loaded."""

    def __init__(self, name):
        self.name, self.asked, self.original = name, common.job(), None
        self.valid, self.wrong, self.done = [], False, 0

    def all(self, steps):
        """The exit status."""
        failed = 0
        while steps:
            runtime = self._runtime(steps[0])
            if self.done and runtime != "onnxruntime":
                mine = [each for each in steps if self._runtime(each) == runtime]
                # Its answers say what went wrong with it.
                subprocess.run([sys.executable, __file__, self.name, *mine], check=False)
                self._read(mine)
                steps = [each for each in steps if each not in mine]
                continue
            step, *steps = steps
            if step == "time" and self.wrong:
                break
            with within(self.asked.get("timeout_s")):
                status = self.one(step)
            self.done += 1
            failed = status or failed
            # Without a model there are no variants; without a variant there are the others.
            if status in (UNWRITTEN, ALONE) or (status and step in STEPS):
                break
        return failed

    def _runtime(self, step):
        if step in STEPS:
            return "onnxruntime"
        return importlib.import_module("programs.variants").RUNTIME.get(step, "onnxruntime")

    def one(self, step):
        """Do a step and say its result; its exit status."""
        try:
            record = self._record(step)
        except MemoryError:
            return ALONE
        failed = isinstance(record, dict) and record.get("failed", "")
        self._judge(step, record)
        for kept in (True, False):
            try:
                common.said(f"{self.name}.{step}", record)
                break
            except OSError as failure:
                sys.stderr.write(f"{failure}; {common.space()}\n")
                if not kept:
                    return UNWRITTEN
                # Half a model is of no use; without it there is room to say so.
                shutil.rmtree(Path(self.name, *([] if step in STEPS else [step])), ignore_errors=True)
        if failed:
            sys.stderr.write(f"{failed}\n  {record['remedy']}\n")
        return 1 if failed else 0

    def _record(self, step):
        """What a step says; MemoryError where it may be enough without what earlier steps keep."""
        model = common.model_record(self.asked, self.name)
        model.original = self.original
        more = [] if step in STEPS else [step]
        record = {"model": self.name}
        try:
            limit(self.asked)
            common.seed_all(self.asked)
            module = importlib.import_module(f"programs.{STEPS.get(step, 'variants')}")
            record = module.begun(model, *more)
            asked = {"variants": self.valid, **self.asked} if step == "time" else self.asked
            getattr(module, step if step == "validate" else "work")(asked, model, record, *more)
            self.original = model.original
        except Exception as failure:
            traceback.print_exc()
            if self.done and common.lacks_memory(failure):
                raise MemoryError from failure
            message, remedy = common.reason(failure, self.name, self.asked)
            record.update(failed=common.text(message), remedy=common.text(remedy))
        return record

    def _judge(self, step, record):
        """Keep what is valid to be measured; where something is wrong, nothing is."""
        if step in STEPS or record.get("failed"):
            return
        if all(each["passed"] for each in record.get("differences", ())):
            self.valid.append(step)
        else:
            self.wrong = True

    def _read(self, steps):
        """What another process has said."""
        for step in steps:
            record = common.heard(f"{self.name}.{step}")
            if record is not None:
                self._judge(step, record)


if __name__ == "__main__":
    sys.exit(Steps(sys.argv[1]).all(sys.argv[2:]))
