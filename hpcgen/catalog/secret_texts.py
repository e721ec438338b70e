"""Secrets in a profile, a stack, a request or a plan, which kits and images would have for everybody to read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Problem, Problems
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.core.secret_rules import LEAVE_OUT, USER, secret_in, secret_name, without_secret_words

Path = tuple[str | int, ...]
_ELSEWHERE = {
    "proxy": "leave it out, and set http_proxy and https_proxy where the image is built: buildah, podman and ch-image "
    "take them from the environment, Apptainer takes APPTAINERENV_http_proxy, docker the proxies of its config.json",
    "mirrors": "leave it out, and use a mirror that asks for none",
}
"""What to do instead, by the part of ``network`` that it is in."""
_OF_A_BLOCK = "leave it out, and take it from an address that everybody may read, or from a mirror of the site"
_VARIABLES = ("environment", "variables")
"""Fields that map names of variables to what these are set to."""


def secret_texts(document: Document) -> Iterator[Problem]:
    """Each place of a document with a secret, which is not shown."""
    for path, what in _found(document.data, ()):
        yield _problem(path, what).at(document.position(path))


def check_request(job: JobRequest) -> None:
    """InputError where the command of a job that is written down has a secret."""
    Problems(_problem(path, what) for path, what in _found(msgspec.to_builtins(job), ())).raise_as(InputError)


def check_plan(plan: Plan) -> None:
    """InputError where a plan has a secret, from wherever: a file of packages, an option, a table of a collection.

    What the user said comes first; a plan repeats it in several places, of which one is told.
    """
    found: dict[str, Path] = {}
    for path, what in sorted(_found(msgspec.to_builtins(plan), ()), key=lambda each: each[0][0] != "settings"):
        found.setdefault(what, path)
    Problems(
        _problem(path, what).at(f"--set {path[1]}" if path[0] == "settings" else ".".join(map(str, path)))
        for what, path in found.items()
    ).raise_as(InputError)


def _problem(path: Path, what: str) -> Problem:
    remedy = _OF_A_BLOCK if path[0] in ("blocks", "settings", "conda") else LEAVE_OUT
    if path[0] == "network" and len(path) > 1:
        remedy = _ELSEWHERE.get(str(path[1]), LEAVE_OUT)
    return Problem(f"{what}, which would end up in the plan, the recipe and the image", remedy=remedy)


def _found(data: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Where there is a secret, and in words what it is."""
    if isinstance(data, str):
        what = secret_in(data)
        # git@ is a user's name too; of a mirror or a proxy it may be a token.
        if what and (what != USER or "network" in path):
            yield path, f"this {'address' if '://' in data or '@' in data else 'text'} contains {what}"
    elif isinstance(data, dict):
        for key, value in data.items():
            if path[-1:] and path[-1] in _VARIABLES and isinstance(value, str) and secret_name(str(key), value, False):
                yield (*path, key), f"the variable {key} may be a secret"
            else:
                yield from _found(value, (*path, key))
    elif isinstance(data, list):
        yield from _of_list(data, path)


def _of_command(name: str) -> str:
    return f"the command has {name}" if " " in name else f"`{name}` of the command may be a secret"


def _of_list(data: list[Any], path: Path) -> Iterator[tuple[Path, str]]:
    if path[-1:] == ("command",) and all(isinstance(each, str) for each in data):
        yield from ((path, _of_command(name)) for name in without_secret_words(data, doubtful=False).left)
        return
    if path[-1:] == ("commands",) and all(isinstance(each, str) for each in data):
        for number, line in enumerate(data):
            # To the rules a whole line is as a word that a shell gets.
            left = without_secret_words(["", line], doubtful=False).left
            yield from (((*path, number), _of_command(name)) for name in left)
        return
    for number, value in enumerate(data):
        yield from _found(value, (*path, number))
