"""Which branches of conditions a shell takes while an image is built, if nobody sets a variable from outside."""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNKNOWN = re.compile(r"\$\(|`|\$\{?(\d|[@*#?]|PATH|HOME|USER|HOSTNAME|SHELL)\b|[*?]")
_VARIABLE = re.compile(r"\$(\w+|\{\w+[^}]*\})")
_BUILDER = {"TARGETPLATFORM": "linux/amd64", "TARGETARCH": "amd64", "TARGETOS": "linux"}
"""Variables that builders of images set.

Source: https://docs.docker.com/reference/dockerfile/#automatic-platform-args-in-the-global-scope.
"""


def _known(word: str) -> str:
    """A word with variables of the builder, and without those that nobody sets."""
    return _VARIABLE.sub(lambda match: _BUILDER.get(match[1].strip("{}"), ""), word)


def _holds(words: Sequence[str]) -> bool | None:
    """What ``[ … ]`` says; None where that is not known."""
    if words[:1] == ["!"]:
        found = _holds(words[1:])
        return None if found is None else not found
    if words[:1] not in (["["], ["[["]) or any(map(_UNKNOWN.search, words[1:])):
        return None
    inner = [_known(word) for word in words[1:-1]]
    if inner[:1] == ["!"]:
        found = _holds(["[", *words[2:]])
        return None if found is None else not found
    if len(inner) == 2 and inner[0] in ("-n", "-z"):
        return bool(inner[1]) == (inner[0] == "-n")
    if len(inner) == 3 and inner[1] in ("=", "==", "!="):
        return (inner[0] == inner[2]) == (inner[1] != "!=")
    return None


class Branches:
    """Follows ``if``, ``elif``, ``else`` and ``fi``; if a condition cannot be told, its first branch counts."""

    def __init__(self) -> None:
        self._open: list[tuple[bool | None, bool, bool]] = []

    def takes(self, leading: Sequence[str], words: Sequence[str]) -> bool:
        """Whether a command is one that is run.

        ``leading``: words of the shell that stand before it. ``words``: its own.
        """
        negated = ["!"] if "!" in leading else []
        for word in leading:
            if word == "if":
                self._open.append((_holds([*negated, *words]), False, False))
            elif word in ("then", "elif", "else") and self._open:
                holds, _, done = self._open.pop()
                now = word != "elif" and not done and (word == "else" or holds is not False)
                holds = _holds([*negated, *words]) if word == "elif" else holds
                self._open.append((holds, now, done or now))
        if words[:1] == ["fi"] and self._open:
            self._open.pop()
        return "if" in leading or all(now for _, now, _ in self._open)
