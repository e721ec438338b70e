"""What no file may have in it, whatever was said in a profile, a stack, a job, a fleet or a lock."""

from __future__ import annotations

import re
from collections.abc import Mapping

COMMANDS_A_TERMINAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
LINES_OF_ITS_OWN = re.compile(
    r"^[ \t]*(canary\b|(RUN|FROM|ENTRYPOINT) canary|#SBATCH --wrap=canary|#PBS -v X=canary|# flux: --wrap=canary"
    r"|#\$ -v X=canary"
    r"|# syntax=canary)",
    re.MULTILINE,
)
EXPRESSION = re.compile(r"\$\{\{ (canary|secrets\.X) ")
TEMPLATE = re.compile(r"\{\{ ?(canary|x )")


def wild(files: Mapping[str, str]) -> str:
    """What is wrong with files by their names; empty if nothing is."""
    for name, text in files.items():
        if found := COMMANDS_A_TERMINAL.search(text):
            return f"{name} has {found[0]!r}"
        if not name.endswith((".json", ".lock")) and (found := LINES_OF_ITS_OWN.search(text)):
            return f"{name} has a line of its own for {found[0]!r}"
        if name.endswith(".yml") and (found := EXPRESSION.search(text)):
            return f"{name} has the expression {found[0]!r}"
        if name == "Singularity.def" and (found := TEMPLATE.search(text)):
            return f"{name} has the template argument {found[0]!r}"
    return ""
