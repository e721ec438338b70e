"""What an image's configuration has a container do: kept beside its files, or by engines in files of their own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import msgspec

from hpcgen.core.model.image_facts import ImageSettings
from hpcgen.core.secret_rules import MASK, secret_in, secret_name
from hpcgen.images.reading.files import Look, SeenImage, text_of

# Apptainer's, Charliecloud's and enroot's places. Source: Apptainer's documentation, "SIF and the /.singularity.d
# folder"; ch-run(1), --set-env, and ch-image(1), pull; enroot's documentation, image-format.md.
RUN_SCRIPT = Look(r"/\.singularity\.d/runscript", text_of)
SCRIPTS = Look(r"/\.singularity\.d/env/\d\d-[\w.-]+\.sh", text_of)
LABELS = Look(r"/\.singularity\.d/labels\.json", text_of)
CHARLIECLOUD = Look(r"/ch/environment", text_of)
PULLED = Look(r"/ch/config\.pulled\.json", text_of)
ENROOT = Look(r"/etc/rc|/etc/environment", text_of)
LOOKS = (RUN_SCRIPT, SCRIPTS, LABELS, CHARLIECLOUD, PULLED, ENROOT)
_MOST = 2000
_ASSIGNMENT = r"([A-Za-z_][A-Za-z0-9_]*)=(.*)"


def settings_facts(view: SeenImage, configuration: dict[str, Any] | None) -> ImageSettings:
    """By the configuration if there is one, else by what engines keep of it in the image."""
    if configuration is not None:
        return _configured(configuration, "the image's configuration")
    pulled = view.one(PULLED)
    if pulled is not None and (inner := _decoded(pulled[1]).get("config")) and isinstance(inner, dict):
        return _configured(inner, pulled[0])
    return _by_engines(view)


def _configured(told: dict[str, Any], where: str) -> ImageSettings:
    ports = told.get("ExposedPorts")
    labels = told.get("Labels")
    pairs = (str(each).partition("=") for each in _words(told.get("Env")) or [])
    return ImageSettings(
        shown_by=[where],
        entrypoint=_words(told.get("Entrypoint")) or [],
        command=_words(told.get("Cmd")) or [],
        folder=str(told.get("WorkingDir") or ""),
        user=str(told.get("User") or ""),
        ports=sorted(map(str, ports)) if isinstance(ports, dict) else [],
        environment=_public({name: value for name, _, value in pairs}),
        labels=_public({str(name): str(value) for name, value in labels.items()}) if isinstance(labels, dict) else {},
    )


def _by_engines(view: SeenImage) -> ImageSettings:
    environment: dict[str, str] = {}
    files = []
    for path, text in [*view.found(CHARLIECLOUD).items(), *view.found(SCRIPTS).items(), *view.found(ENROOT).items()]:
        pairs = dict(_assignments(text)) if path != "/etc/rc" else {}
        environment |= pairs
        files += [path] if pairs else []
    entrypoint = command = None
    if (run := view.one(RUN_SCRIPT)) is not None:
        said = dict(_assignments(run[1]))
        if "OCI_ENTRYPOINT" in said or "OCI_CMD" in said:
            entrypoint, command = (_split(said.get(name, "")) for name in ("OCI_ENTRYPOINT", "OCI_CMD"))
        else:
            entrypoint = [run[0]]
        files.append(run[0])
    elif "/etc/rc" in view.found(ENROOT):
        entrypoint = ["/etc/rc"]
        files.append("/etc/rc")
    told = view.one(LABELS)
    labels = {name: value for name, value in _decoded(told[1]).items() if isinstance(value, str)} if told else {}
    files += [told[0]] if told and labels else []
    return ImageSettings(
        sorted(set(files)), entrypoint, command, environment=_public(environment), labels=_public(labels)
    )


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Plain assignments, exported or not; what a shell would work out first is left out."""
    for line in text.splitlines()[:_MOST]:
        match = re.fullmatch(rf"\s*(?:export\s+)?{_ASSIGNMENT}", line)
        if match is None:
            continue
        try:
            words = shlex.split(match[2])
        except ValueError:
            continue
        if len(words) <= 1 and "$" not in match[2] and "`" not in match[2]:
            yield match[1], words[0] if words else ""


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return [text]


def _decoded(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _words(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    return [str(each) for each in value[:_MOST]] if isinstance(value, list) else None


def _public(values: dict[str, str]) -> dict[str, str]:
    """The same without what may be a secret, which stays in the image alone."""
    kept = sorted(values.items())[:_MOST]
    return {name: MASK if secret_name(name, value) or secret_in(value) else value for name, value in kept}
