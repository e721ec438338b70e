"""Formatting file positions: where in a Python file an exception comes from, and paths in what other people get."""

from __future__ import annotations

from pathlib import Path


def place_in(error: BaseException, file: str) -> tuple[str, str] | None:
    """``FILE:LINE`` of the deepest call that is in a file, and the function there; None if it has no part in it."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{shown(file)}:{error.lineno}", ""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            found = f"{shown(file)}:{trace.tb_lineno}", trace.tb_frame.f_code.co_name
        trace = trace.tb_next
    return found


def recorded(path: str) -> str:
    """A path as lock, kit and bundle name it: their author's folders are not in them, and mean nothing elsewhere."""
    return (Path(path).name or path) if path.startswith("/") else path


def shown(file: str) -> str:
    """A path as messages name it: from the present folder, where the file is below it."""
    here = f"{Path.cwd()}/"
    return file.removeprefix(here)
