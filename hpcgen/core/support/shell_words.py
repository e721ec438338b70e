"""Words of a command line: text, or a piece of shell that stands for something known only when the job runs."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.core.support.quoting import sh


class Shell(str):
    """A word that is shell already, such as ``"$image"``. Made by this package alone, never from a profile."""

    __slots__ = ()


IMAGE = Shell('"$image"')
FOLDER = Shell('"$folder"')


def quoted(word: str) -> str:
    """A word as it stands in a script; InputError for line breaks and control characters."""
    return str(word) if isinstance(word, Shell) else sh(word)


def line(words: Iterable[str]) -> str:
    """Words as one line of shell."""
    return " ".join(quoted(word) for word in words)


def loading(tool: str, modules: Iterable[str]) -> list[str]:
    """Shell that puts modules on PATH with the site's tool for them: ``module`` or ``valet``."""
    verb = "vpkg_require" if tool == "valet" else "module load"
    return [f"{verb} {sh(module)}" for module in modules]


def joined(*parts: str) -> Shell:
    """One word from several parts, such as a bind's two sides."""
    return Shell("".join(quoted(part) for part in parts))
