"""Libraries that are not installed with hpcgen alone: locks and bundles need some that plans and recipes do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

from hpcgen.core.errors import MissingToolError
from hpcgen.core.secret_rules import secret_in
from hpcgen.core.support.quoting import command


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Import libraries of an extra inside it; MissingToolError that says how to install them where they are missing.

    ``name``: of the extra in pyproject.toml. ``purpose``: what they are needed to do, such as ``lock wheels``.
    """
    try:
        yield
    except ImportError as failure:
        missing = (failure.name or "a library").partition(".")[0]
        raise MissingToolError(
            f"the Python package {missing} is needed to {purpose}, and is not installed",
            remedy=_install(name, missing),
        ) from failure


def _install(extra_name: str, missing: str) -> str:
    """The command that installs what an extra of this hpcgen needs.

    The packages themselves are named: hpcgen is on no index, and whoever takes its name there decides what it is.
    """
    needed = requirements_of(extra_name) or [missing]
    return command("pip", "install", *needed)


def requirements_of(extra_name: str) -> list[str]:
    """The packages of an extra with their ranges, for this Python; none where hpcgen was not installed."""
    from packaging.requirements import Requirement

    try:
        listed = [Requirement(each) for each in metadata.requires("hpcgen") or []]
    except metadata.PackageNotFoundError:
        return []
    found = []
    for each in listed:
        marker = each.marker
        if marker is not None and marker.evaluate({"extra": extra_name}) and not marker.evaluate({"extra": ""}):
            found.append(f"{each.name}{each.specifier}")
    return found


def own_requirement() -> str:
    """What pip installs this very hpcgen from: the address of a repository with its commit, or of a file.

    Empty where that is a folder of this machine or an address with a secret, or cannot be told, as after an
    installation by name: which index or folder had it, nobody knows, and on another one anybody may have taken it.
    Source: https://packaging.python.org/en/latest/specifications/direct-url/.
    """
    try:
        said = json.loads(metadata.distribution("hpcgen").read_text("direct_url.json") or "")
        url, vcs, archive = said.get("url", ""), said.get("vcs_info", {}), said.get("archive_info", {})
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return ""
    if not url.startswith("https://") or secret_in(url):
        return ""
    if vcs.get("vcs") == "git":
        return f"hpcgen @ git+{url}@{vcs.get('commit_id', '')}"
    sha256 = archive.get("hashes", {}).get("sha256", "")
    return f"hpcgen @ {url}" + (f"#sha256={sha256}" if sha256 else "") if archive else ""
