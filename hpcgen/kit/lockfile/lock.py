"""hpcgen.lock: the plan and its inputs as text that reviews well. A kit is known by it.

Every kit has one. The one that ``hpcgen lock`` writes also pins what the plan leaves open, holds the whole plan, so
that it can be rendered anywhere, and ends with a seal: a hash of all before it, by which an edit by hand is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hpcgen.blocks.inputs.image import Image
from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.file_formats import KIT, LOCK
from hpcgen.core.support.hashing import read_plain, sha256_of
from hpcgen.core.support.quoting import sh
from hpcgen.core.support.writing import OneLine, yaml_text
from hpcgen.recipe.stages import Assembly

if TYPE_CHECKING:
    from hpcgen.core.model.lock import Lock, Pins

HEADER = "# Written by hpcgen: the plan and everything its build takes from outside.\n"
SEALED_HEADER = HEADER + "# Not to be edited: `hpcgen lock --update NAME` moves one thing, `hpcgen lock` all of it.\n"
SEAL = "seal: sha256:"
MAX_BYTES = 16 * 1024 * 1024
_WIDE, _SIGNATURE_BYTES = 1000, 64 * 1024


def lock_text(plan: Plan, assembly: Assembly) -> str:
    """YAML: what was asked, what was chosen, every input with its hash or pinned version."""
    return HEADER + yaml_text(_overview(plan, assembly))


def sealed_text(plan: Plan, assembly: Assembly, pins: Pins, collections: Mapping[str, str]) -> str:
    """The same with all pins and the whole plan, sealed.

    ``assembly``: of the plan with the pins. ``collections``: sha256 of every file of a collection that the plan rests
    on, by its name, the first collection first.
    """
    body = SEALED_HEADER + yaml_text(_overview(plan, assembly))
    for name, value in msgspec.to_builtins(pins).items():
        body += yaml_text({f"pinned_{name}": _in_lines(value)}, width=_WIDE)
    body += yaml_text({"collections": dict(collections)})
    body += yaml_text({"plan": msgspec.to_builtins(plan)})
    return body + SEAL + sha256_of(body) + "\n"


def read_lock(path: Path) -> Lock:
    """A lock that ``hpcgen lock`` wrote into the file ``path``.

    Raises
    ------
    InputError: it cannot be read, it was edited, it pins nothing, or a newer hpcgen wrote it.
    """
    try:
        data = read_plain(path, MAX_BYTES)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        said = failure.strerror if isinstance(failure, OSError) else "it is not UTF-8"
        raise InputError(
            f"the lock {path} cannot be read: {said}", remedy=f"check its path, or write it: {_making('', str(path))}"
        ) from failure
    if len(data) > MAX_BYTES:
        raise InputError(f"{path} is larger than any lock", remedy="regenerate it with hpcgen lock")
    return msgspec.structs.replace(parse_lock(text, str(path)), signature=signature_beside(path))


def signature_of(path: Path) -> Path:
    """Where the signature of a lock is: ``ssh-keygen`` puts it there too."""
    return path.with_name(f"{path.name}.sig")


def signature_beside(path: Path) -> str:
    """The signature of a lock, "" where there is none."""
    try:
        return read_plain(signature_of(path), _SIGNATURE_BYTES)[:_SIGNATURE_BYTES].decode("ascii", "replace")
    except OSError:
        return ""


def write_signed(path: Path, text: str, key: Path | None, namespace: str) -> bool:
    """Write a text, and beside it its signature by an SSH key; that of an older text does not stay there.

    Returns whether the older text was signed and this one is not.

    ``key``, ``namespace``: as of :func:`~hpcgen.core.support.signatures.sign`, whose errors it has; no key, no
    signature.
    """
    from hpcgen.core.support.signatures import sign
    from hpcgen.core.support.writing import write_file

    signed = sign(text.encode(), key, namespace) if key is not None else ""
    stale = not signed and signature_beside(path).startswith("-----BEGIN SSH SIGNATURE-----")
    write_file(path, text)
    if signed:
        write_file(signature_of(path), signed)
    elif stale:
        signature_of(path).unlink(missing_ok=True)
    return stale


_SAID = frozenset(
    f"{LOCK.field} hpcgen command site partition stack format engine content images blocks environment packages copied "
    "inputs collections plan seal".split()
)
"""All fields of a lock but its pins."""


def parse_lock(text: str, name: str) -> Lock:
    """The lock in a text; ``name`` is what messages call it. Raises as :func:`read_lock` does."""
    from hpcgen.core.config.written_yaml import read_written
    from hpcgen.core.model.lock import Lock

    _check_number(text, name)
    _check_seal(text, name)
    try:
        data = read_written(text, name)
    except InputError as failure:
        raise LOCK.not_understood({"hpcgen": _written_by(text)}, name, failure.problems[0]) from failure
    try:
        KIT._replace(command=LOCK.command).check(data["plan"], name)
        if unknown := next((key for key in data if key not in _SAID and not key.startswith("pinned_")), None):
            raise ValueError(f"it has an unknown field `{unknown}`")
        pins = {key.removeprefix("pinned_"): value for key, value in data.items() if key.startswith("pinned_")}
        fields = {key: data[key] for key in ("hpcgen", "content", "plan", "collections", "packages", "inputs")}
        lock = record_from({**fields, "pins": pins, "text": text}, Lock)
        if said := lock.plan.contradiction():
            raise ValueError(said)
        return lock
    except (KeyError, AttributeError, ValueError, RecursionError) as failure:
        why = f"it has no `{failure.args[0]}`" if isinstance(failure, KeyError) else failure
        raise LOCK.not_understood({"hpcgen": _written_by(text)}, name, why) from failure


def for_build(lock: Lock, *, bundled: bool) -> Plan:
    """The plan of a lock, for a kit that takes its inputs from a bundle or from the network."""
    return msgspec.structs.replace(lock.plan, supply="bundle" if bundled else "network")


def is_sealed(text: str) -> bool:
    """Whether a lock has pins and a seal, intact or not."""
    return f"\n{SEAL}" in text


def _check_number(text: str, name: str) -> None:
    """Before the seal: a newer release may seal in another way."""
    if found := re.search(r"^lock: ([0-9]{1,9})$", text, re.MULTILINE):
        names = dict(re.findall(r"^(site|stack): (\S+)$", text, re.MULTILINE))
        LOCK.check({**names, LOCK.field: int(found[1]), "hpcgen": _written_by(text)}, name)


def _check_seal(text: str, name: str) -> None:
    body, found, seal = text.rpartition(f"\n{SEAL}")
    if not found:
        raise InputError(
            f"{name} pins nothing: it has no seal",
            expected="a lock that hpcgen lock wrote; the one in a kit only names what was chosen",
            remedy=_making(text, "hpcgen.lock"),
        )
    if seal != sha256_of(body + "\n") + "\n":
        raise InputError(
            f"{name} is not as hpcgen lock wrote it: its seal does not match its content",
            expected="an unchanged file; a merge or a manual edit leaves the old seal",
            remedy="get the file again from its source, or regenerate it: " + _making(text, name),
        )


def _making(text: str, output: str) -> str:
    """The command that makes this lock, by its own words where these are a plain command."""
    found = re.search(r"^command: hpcgen (?:render|lock) ([A-Za-z0-9 ._/=:@%+,-]+)$", text, re.MULTILINE)
    return f"hpcgen lock -o {sh(output)} {found[1] if found else '--site SITE --stack STACK'}"


def _written_by(text: str) -> str:
    found = re.search(r"^hpcgen: '?([0-9A-Za-z.+]{1,40})'?$", text, re.MULTILINE)
    return found[1] if found else "that wrote it"


def _overview(plan: Plan, assembly: Assembly) -> dict[str, Any]:
    copied = {"copied": msgspec.to_builtins(plan.copied)} if plan.copied else {}
    return {
        LOCK.field: LOCK.newest,
        "hpcgen": plan.hpcgen,
        "command": plan.command,
        "site": plan.site.name,
        "partition": plan.partition,
        "stack": plan.stack.name,
        "format": plan.format,
        "engine": plan.engine,
        "content": assembly.labels["io.hpcgen.content"],
        "images": {"builder": assembly.builder.image.entry(), "final": assembly.final.image.entry()},
        "blocks": {b.name: _without_empty({"version": b.version, "options": b.options}) for b in plan.blocks},
        "environment": assembly.final.environment,
        "packages": assembly.packages,
        **copied,
        "inputs": [{"block": of.label, **item.entry()} for of, item in assembly.inputs if not isinstance(item, Image)],
    }


def _in_lines(value: Any) -> Any:
    """One line for each package, image and key, so that a change of one is a change of one line."""
    if isinstance(value, list):
        return [_in_lines(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "sha256" in value or "digest" in value or "fingerprint" in value:
        return OneLine(value)
    return {key: _in_lines(each) for key, each in value.items()}


def _without_empty(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value not in ({}, [], "", None)}
