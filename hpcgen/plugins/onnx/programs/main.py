"""Do one step for one model, in its work folder: main.py STEP MODEL [MORE ...].

Exit status 1: there is no valid result, and said/ tells why; 3: not even that could be written.
"""

import importlib
import resource
import shutil
import sys
import traceback
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)
sys.path.append(str(Path("given").resolve()))

from programs import common  # noqa: E402 (only from here on can it be found)

STEPS = {"convert": "convert", "validate": "convert", "variant": "variants", "time": "timing"}


def limit(asked):
    """Let foreign code and files have no more memory than the machine can spare, and leave no dumps of it."""
    most = asked.get("memory_bytes")
    if most:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def begin(step, name, rest):
    """The record of a step, and the step done."""
    asked = common.job()
    model = common.model_record(asked, name)
    record = {"model": name}
    try:
        limit(asked)
        common.seed_all(asked)
        module = importlib.import_module(f"programs.{STEPS[step]}")
        record = module.begun(model, *rest)
        getattr(module, step if step == "validate" else "work")(asked, model, record, *rest)
    except Exception as failure:
        traceback.print_exc()
        message, remedy = common.reason(failure, name, asked)
        record.update(failed=common.text(message), remedy=common.text(remedy))
    return record


def main():
    """The exit status."""
    step, name, *rest = sys.argv[1:]
    record = begin(step, name, rest)
    failed = isinstance(record, dict) and record.get("failed", "")
    for kept in (True, False):
        try:
            common.said(".".join([name, *rest, *([] if step == "variant" else [step])]), record)
            break
        except OSError as failure:
            sys.stderr.write(f"{failure}; {common.space()}\n")
            if not kept:
                return 3
            # Half a model is of no use; without it there is room to say so.
            shutil.rmtree(Path(name, *rest), ignore_errors=True)
    if failed:
        sys.stderr.write(f"{failed}\n  {record['remedy']}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
