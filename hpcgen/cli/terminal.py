"""Text for people: fitted to their terminal and coloured there.

Elsewhere each message is one line without colours, however long, so that programs and ``grep`` find the same in it
whatever the terminal is.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Literal, TextIO

import click

Colour = Literal["auto", "always", "never"]
LEAST = 30
"""Columns that lines are fitted to at least."""
_INDENT = "  "
# Compiled where a terminal needs them.
_PIECES = r"`hpcgen [^`]+`|\S+"
# An option stays with its value.
_WORDS = r"""(?:--?[\w-]+ (?=[^\s-]))?(?:[^\s'"]|'[^']*'|"[^"]*")+"""
_MEANINGS = (
    (r"^((?:hpcgen: )?(?:internal )?error:|broken(?=:)|FAILED)", "red"),
    (r"^((?:hpcgen: )?(?:warning|missing):)", "yellow"),
    (r"^(\s*(?:remedy|expected):|next\b.*:$)", "green"),
)
"""What the beginning of a line means: an error, a warning, what to do."""
_colour: Colour = "auto"


def choose_colour(wanted: Colour) -> None:
    """Use colours as ``--color`` says; the displays of progress, and programs that are started, hold to it too."""
    global _colour
    _colour = wanted
    if wanted == "never":
        os.environ["NO_COLOR"] = "1"


def is_coloured(stream: TextIO) -> bool:
    """Whether a stream shows colours: it is a terminal, and neither NO_COLOR nor --color says otherwise."""
    if _colour != "auto":
        return _colour == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO) -> int | None:
    """How wide the terminal is that a stream is written to; None where it is none."""
    if not stream.isatty():
        return None
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return max(int(wanted), LEAST)
    try:
        # A terminal that nobody has told its size has 0.
        return max(os.get_terminal_size(stream.fileno()).columns or 80, LEAST)
    except (OSError, ValueError):
        return 80


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text for people, on stdout or stderr; results that others use are printed as they are, by click."""
    stream = sys.stderr if err else sys.stdout
    if (width := columns(stream)) is not None:
        text = fitted(text, width)
    if is_coloured(stream):
        text = "\n".join(map(_painted, text.split("\n")))
    click.echo(text, err=err, nl=nl, color=is_coloured(stream))


def echo_commands(text: str) -> None:
    """Print lines for a shell; on a terminal a long one is broken where the shell takes what follows for its end."""
    if (width := columns(sys.stdout)) is not None:
        text = "\n".join(part for line in text.split("\n") for part in _as_command(line, width))
    click.echo(text)


def _as_command(line: str, width: int) -> list[str]:
    if line[:1] == "#":
        return [line]
    return command_lines(line, line[: len(line) - len(line.lstrip())], width)


def _painted(line: str) -> str:
    for pattern, colour in _MEANINGS:
        if found := re.match(pattern, line):
            return click.style(found[0], fg=colour, bold=True) + line[found.end() :]
    return line


def fitted(text: str, width: int) -> str:
    """Text whose long lines are broken at spaces and go on indented.

    A command of hpcgen in a long line stands on a line of its own, from where it can be copied.
    """
    return "\n".join(part for line in text.split("\n") for part in _broken(line, width))


def _broken(line: str, width: int) -> list[str]:
    if len(click.unstyle(line)) <= width:
        return [line]
    # A comment goes on as one: what is shown of a file may be copied into one.
    found = re.match(r"\s*(?:# )?", line)
    margin = found[0] if found is not None else ""
    further = margin + _INDENT
    lines, current = [], margin
    for piece in re.findall(_PIECES, line[len(margin) :]):
        if piece.startswith("`hpcgen "):
            lines += [current] if current.strip() else []
            lines += command_lines(piece.strip("`"), further + _INDENT, width)
            current = further
        elif current == further and lines:
            # A new line separates the command from the words behind it.
            current += piece.lstrip(",;:.")
        elif len(current) + 1 + len(piece) > width and current.strip():
            lines.append(current)
            # A long word fits where it is not indented.
            current = further[: max(width - len(piece), 0)] + piece
        else:
            current += f"{' ' if current.strip() else ''}{piece}"
    return lines + ([current] if current.strip() else [])


def command_lines(text: str, indent: str, width: int) -> list[str]:
    """A command on lines of its own: one, or as many as a shell takes for one."""
    lines, current = [], indent
    for word in re.findall(_WORDS, text):
        if len(current) + len(word) + 3 > width and current.strip() and len(text) > width:
            lines.append(f"{current} \\")
            current = f"{indent}{_INDENT}{word}"
        else:
            current += f"{' ' if current.strip() else ''}{word}"
    return [*lines, current]
