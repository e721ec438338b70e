"""The one form of errors; with ``--json`` an object on stdout, unless a result is there already."""

from __future__ import annotations

import sys

import click
import msgspec

from hpcgen.cli import INTERNAL_ERROR
from hpcgen.cli.common import PRINTED, print_json
from hpcgen.core.errors import HpcgenError, Problem
from hpcgen.core.support.refusals import refused


def report_as_json(ctx: click.Context, error: Exception) -> None:
    """Print an error as JSON, where the command line asks for JSON and nothing has been printed."""
    words = sys.argv[1:]
    before = words[: words.index("--")] if "--" in words else words
    if "--json" in before and not ctx.meta.get(PRINTED):
        print_json(error_data(error))


def error_data(error: Exception) -> dict[str, object]:
    """Kind, exit code, message, problems and remedies of an error, as docs/exit-codes.md has them."""
    if isinstance(error, OSError):
        error = refused(error) or error
    if isinstance(error, HpcgenError):
        problems, code = error.problems, error.exit_code
    elif isinstance(error, click.ClickException):
        problems, code = (problem_of(error),), error.exit_code
    else:
        problems, code = (Problem(f"{type(error).__name__}: {error}"),), INTERNAL_ERROR
    own = isinstance(error, HpcgenError)
    return {
        "error": type(error).__name__ if own else "UsageError" if code == 2 else "InternalError",
        "exit_code": code,
        "message": "\n".join(str(problem) for problem in problems),
        "problems": [
            {"message": each.message, "where": _place(each), "expected": each.expected, "remedy": each.remedy}
            for each in problems
        ],
        "remedies": msgspec.to_builtins(error.remedies) if isinstance(error, HpcgenError) else [],
    }


def problem_of(error: click.ClickException) -> Problem:
    """What click found, in the form of all other errors; its remedy is where the command's usage is."""
    message = error.format_message().removesuffix(".")
    ctx = getattr(error, "ctx", None)
    more = f"`{ctx.command_path} --help` shows the usage" if ctx is not None else ""
    return Problem(f"{message[:1].lower()}{message[1:]}", remedy=more)


def _place(problem: Problem) -> dict[str, object] | None:
    """File, line and column; or what else the place is called, such as an option."""
    if problem.where is None:
        return None
    if isinstance(problem.where, str):
        return {"name": problem.where}
    place: dict[str, object] = msgspec.to_builtins(problem.where)
    return place
