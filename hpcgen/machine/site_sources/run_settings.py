"""A settings file in Python, run in a process of its own, once somebody has said that it may.

That process is not a cage: it is the user's, as ReFrame's own is. It has no variables, no modules of the user's, a
limit on its time and on what it prints, and what it prints is taken as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from hpcgen.core.errors import InputError
from hpcgen.machine.detect.commands import Command, ask
from hpcgen.machine.site_sources.said import Said

TIMEOUT_S = 20.0
_PROGRAM = """
import json, os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (15, 15))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
answer = os.dup(1)
os.dup2(2, 1)
names = {"__name__": "settings", "__file__": sys.argv[1]}
with open(sys.argv[1], encoding="utf-8") as file:
    exec(compile(file.read(), sys.argv[1], "exec"), names)
text = json.dumps(names["site_configuration"], default=str)
sys.stdout.flush()
with os.fdopen(answer, "w") as out:
    out.write("\\n" + text)
# What the file left to be done at the end would follow the answer.
os._exit(0)
"""


def run_settings(path: str, name: str) -> Said:
    """What a settings file gives when it is run. Who calls this has asked the user.

    Parameters
    ----------
    path: the file. name: what messages call it.

    Raises
    ------
    InputError: it ends with an error, takes longer than ``TIMEOUT_S`` seconds, or gives no mapping.
    """
    command = Command((sys.executable, "-I", "-B", "-c", _PROGRAM, str(Path(path).absolute())), timeout_s=TIMEOUT_S)
    answer = ask(command, {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}, {})
    if answer.text is None:
        why = answer.why.replace(sys.executable, "Python")
        raise InputError(f"running it failed: {why}", name, remedy="write out what it computes, or name a JSON file")
    try:
        data: Any = json.loads(answer.text.rpartition("\n")[2])
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise InputError(
            "running it gave no mapping called site_configuration",
            name,
            remedy="leave out --run-settings: what is written out in the file is read without running it",
        )
    return Said(data, f"{name} as it was run", None)
