"""What a command costs at its start, by counts that no load changes: run as a program with the command's words.

Prints one line of JSON after what the command prints.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from typing import Any


def measure(words: list[str]) -> None:
    counts: Counter[str] = Counter()
    before = set(sys.modules)

    def watch(event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and str(given[0]).endswith((".yaml", ".msgpack", ".json")):
            counts["files"] += 1
        elif event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.system", "os.exec"):
            counts["processes"] += 1
        elif event.startswith("socket."):
            counts["sockets"] += 1

    # Python 3.10 has it under another name.
    compiler: Any = getattr(re, "_compiler", None) or sys.modules["sre_compile"]
    compiled = compiler.compile

    def count_expression(*given: Any) -> Any:
        counts["expressions"] += 1
        return compiled(*given)

    compiler.compile = count_expression
    sys.addaudithook(watch)
    sys.argv = ["hpcgen", *words]
    try:
        from hpcgen.cli import main as command

        command()
    except SystemExit:
        pass
    sys.stdout.flush()
    new = {name for name in sys.modules if name not in before}
    counts["modules"] = len(new)
    counts["own modules"] = sum(name.startswith("hpcgen") for name in new)
    heads = {".".join(name.split(".")[:2]) for name in new} | {name.split(".")[0] for name in new}
    os.write(1, b"\n" + json.dumps({"counts": counts, "loaded": sorted(heads)}).encode())


if __name__ == "__main__":
    measure(sys.argv[1:])
