"""Every error that hpcgen can say, with what was expected and what to do: read from the code, so none is missing."""

from __future__ import annotations

import gc
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import chain
from pathlib import Path

from patterns import fitting
from said import FILLED_IN, Code, Said
from writing import cell, code, prose, table

import hpcgen
from hpcgen.builders.remedies import remedies
from hpcgen.core import errors

_ROOT = Path(hpcgen.__file__).parent
_HEAD = ("message", "expected", "what to do")
EXIT_CLASSES = {
    name: each
    for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, errors.HpcgenError) and each is not errors.HpcgenError
}
USAGE, RESULT, SKIPPED, BROKEN, ROW = "usage", "result", "skipped", "broken", "row"
"""Sections of what is no exit class of its own."""
_OTHERS = {
    "Problem": "",
    "replace": "",
    "Fault": "",
    "UsageError": USAGE,
    "BadParameter": USAGE,
    "Cannot": RESULT,
    "BrokenPromise": RESULT,
    "SkippedTest": SKIPPED,
    "Check": BROKEN,
    "_Refused": ROW,
}
_ORDER = {
    "Check": ("name", "outcome", "message", "remedy", "expected"),
    **dict.fromkeys(("Cannot", "Fault", "BrokenPromise", "SkippedTest", "_Refused"), ("message", "remedy")),
}
"""Fields of calls whose first word is not the message."""
_WRITE = "write what is expected"
_NOTHING = "nothing is wrong with image or site: what the test needs is not here"
_HELP = "the command's `--help`, which is named with the error"
_INSTEAD = {USAGE: _HELP, SKIPPED: _NOTHING}
"""What the page says where an error has no remedy of its own, by section."""
_SECTIONS = (
    ("", "Mistakes in files", "Reported together, each with file, line and column; mostly with exit code 3."),
    (BROKEN, "The contract between image and host", "Exit code 6, while planning; `--allow-unsupported` goes on."),
    (RESULT, "Tests, measurements and conversions", "The result of one test, workload or model among others."),
    (SKIPPED, "Tests that are skipped", "Never counted as passed."),
    (ROW, "Rows of release tables", "By `hpcgen tables refresh`: why it writes no row."),
)
_ECHO = re.compile(r'echo "(?:build\.sh|@\{file_name\}|[a-z_]+): (.*?)"(?: @\{shown\} "(.*?)")? >&2(.*(?:\n.*){0,2})')


@cache
def all_code() -> Code:
    """The modules of hpcgen. None of their millions of nodes is garbage, for which Python would look all the time."""
    gc.disable()
    try:
        return Code(_ROOT)
    finally:
        gc.freeze()
        gc.enable()


@cache
def said() -> tuple[Said, ...]:
    """All of them, in the order of the code."""
    read = all_code()
    return tuple(read.said(read.heirs({name: name for name in EXIT_CLASSES} | _OTHERS), _ORDER))


def pages() -> dict[str, str]:
    """reference/errors/KIND.md, and a list; what is filled in while hpcgen runs stands as ``…``."""
    shown = {f"reference/errors/{name}.md": f"# {title}\n\n{text}" for name, (title, text) in _kinds().items()}
    rows = [[f"[{title}]({name}.md)", text.partition("\n")[0]] for name, (title, text) in _kinds().items()]
    return {"reference/errors/index.md": f"# Errors\n\n{_ABOUT}\n{table(('page', 'what is on it'), rows)}", **shown}


@cache
def _kinds() -> dict[str, tuple[str, str]]:
    """The title and the text of each page, which begins with a sentence."""
    by_kind: dict[str, list[Said]] = defaultdict(list)
    for each in said():
        by_kind[each.kind].append(each)
    usage = "The command was called in another way than its help says.\n\n"
    found = {"exit-code-2": ("Exit code 2", usage + _table(by_kind[USAGE], _INSTEAD[USAGE]))}
    for name, each in sorted(EXIT_CLASSES.items(), key=lambda pair: pair[1].exit_code):
        if by_kind[name]:
            about = prose((each.__doc__ or "").split("\n")[0]) + "\n\n"
            found[f"exit-code-{each.exit_code}"] = (f"Exit code {each.exit_code}", about + _table(by_kind[name]))
    for kind, title, about in _SECTIONS:
        found[kind or "files"] = (title, f"{about}\n\n{_table(by_kind[kind], _INSTEAD.get(kind, ''))}")
    scripts = "They need no hpcgen, and end with these.\n\n" + table(("message", "exit code"), _scripts())
    causes = f"{_ENGINES}\n{table(('what appears', 'cause', 'what to do'), _causes())}"
    found["scripts"] = ("Scripts of a kit", scripts)
    return found | {"engines": ("What engines say when a build fails", causes)}


_ABOUT = """\
Messages are listed by their literal text in the code: search for a few words of what you see. `…` stands for
a name, a path or a number. The error itself also says what to do, after `remedy:`.
[A table](../../exit-codes.md#exit-codes) explains exit codes; 70 is a bug in hpcgen.
"""
_ENGINES = """\
By their output; `hpcgen build` shows the cause and the remedy for the engine in use. More:
[when a build fails](../../when-a-build-fails.md).
"""


def silent(kind: str, found: Iterable[Said]) -> list[str]:
    """Messages of a section for which neither is said what was expected nor what to do."""
    said: dict[str, bool] = {}
    for each in found:
        said[each.message] = said.get(each.message, False) or bool(each.expected or each.remedy)
    return [message for message, told in said.items() if not told and kind not in _INSTEAD]


def _table(found: Iterable[Said], instead: str = "") -> str:
    """One row for each text; the remedies of one that is said in several places together.

    Parameters
    ----------
    instead: what to do where the code names neither a remedy nor what was expected; without it such a text has no
        row, since it only puts words beside an error that has one.
    """
    rows: dict[str, tuple[set[str], set[str]]] = {}
    for each in found:
        expected, remedies = rows.setdefault(each.message, (set(), set()))
        expected.add(each.expected)
        remedies.add(each.remedy)
    shown = []
    for message in sorted(rows, key=str.lower):
        expected, remedy = map(_either, rows[message])
        if advice := remedy or (_WRITE if expected else cell(instead)):
            shown.append([cell(message), expected, advice])
    used = [number for number in range(len(_HEAD)) if any(row[number] for row in shown)]
    return table([_HEAD[number] for number in used], ([row[number] for number in used] for row in shown))


def _either(texts: set[str]) -> str:
    known = {text for text in texts if text.strip(FILLED_IN + " ")}
    return cell(" or: ".join(sorted(known))) if known else FILLED_IN if any(texts) else ""


def _scripts() -> list[list[str]]:
    """What shell templates print before they end with a status."""
    rows: dict[str, str] = {}
    for file in sorted(_ROOT.rglob("*.sh")):
        for start, end, after in _ECHO.findall(file.read_text("utf-8")):
            status = re.search(r"(?:exit|refused=)\s?(\d+)", after)
            message = re.sub(
                r"@\{\w+\}|\$\{[^}]*\}|\$\([^)]*\)|\$\w+|\$\d", FILLED_IN, f"{start}{end and f' {FILLED_IN} {end}'}"
            )
            if status or message not in rows:
                rows[message] = status[1] if status else ""
    return [[cell(message), status] for message, status in sorted(rows.items()) if message.strip("… ")]


def _causes() -> list[list[str]]:
    rows = []
    for each in remedies():
        printed = dict.fromkeys(chain(*map(fitting, each.patterns))) or [f"status {number}" for number in each.statuses]
        shown = "<br>".join(code(text) for text in printed)
        groups = (re.compile(pattern).groupindex for pattern in (*each.patterns, *each.details))
        unknown = {name: FILLED_IN for name in chain(*groups) if name not in each.otherwise}
        texts = {engine: each.text(engine if engine != "any" else "ENGINE", unknown) for engine in each.remedy}
        advice = [remedy if engine == "any" else f"{engine}: {remedy}" for engine, (_, remedy) in texts.items()]
        rows.append([shown, cell(texts["any"][0]), "<br>".join(cell(text) for text in advice)])
    return rows
