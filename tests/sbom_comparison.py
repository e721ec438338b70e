"""An SBOM held against what dpkg and pip say inside the image that it is for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

PYTHON = "/opt/python"


def missing_from_sbom(sbom_text: str, dpkg_list: Mapping[str, str], pip_list: Mapping[str, str]) -> list[str]:
    """What the image has and the SBOM does not say, or says otherwise; one line each.

    Parameters
    ----------
    dpkg_list: version by package, what :data:`DPKG` prints inside the image.
    pip_list: version by package, what :data:`PIP` prints.
    """
    return _differences(_named(sbom_text), dpkg_list, pip_list)


def missing_from_image(sbom_text: str, dpkg_list: Mapping[str, str], pip_list: Mapping[str, str]) -> list[str]:
    """What the SBOM says that the image has, and it has not."""
    named = _named(sbom_text)
    image = {"package": dict(dpkg_list), "python": {_python_name(name): text for name, text in pip_list.items()}}
    return [
        f"{kind} {name} {version}: not in the image"
        for kind in ("package", "python")
        for name, version in sorted(named[kind].items())
        if image[kind].get(name) != version
    ]


def _differences(
    named: dict[str, dict[str, str]], dpkg_list: Mapping[str, str], pip_list: Mapping[str, str]
) -> list[str]:
    lines = []
    # What is built from source is not a package of an index, and pip lists it all the same.
    python = named["software"] | named["python"]
    for kind, real, said in (("package", dpkg_list, named["package"]), ("python", pip_list, python)):
        for name, version in sorted(real.items()):
            known = said.get(name if kind == "package" else _python_name(name))
            if known is None:
                lines.append(f"{kind} {name} {version}: not in the SBOM")
            elif known != version:
                lines.append(f"{kind} {name} {version}: the SBOM says {known}")
    return lines


def _named(sbom_text: str) -> dict[str, dict[str, str]]:
    """Version by name: OS packages, Python packages of /opt/python, software from archives."""
    found: dict[str, dict[str, str]] = {"package": {}, "python": {}, "software": {}}
    data = json.loads(sbom_text)
    for purl, where in _cyclonedx(data) if data.get("bomFormat") == "CycloneDX" else _spdx(data):
        match = re.match(r"pkg:(deb/[^/]+|pypi|generic)/([^@?]+)@([^?]+)", purl)
        if match is None or (match[1] == "pypi" and where != PYTHON):
            continue
        kind = {"pypi": "python", "generic": "software"}.get(match[1], "package")
        found[kind][unquote(match[2])] = unquote(match[3])
    return found


def _cyclonedx(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for component in data["components"]:
        folders = [p["value"] for p in component.get("properties", []) if p["name"] == "hpcgen:folder"]
        if component.get("scope") != "excluded" and "purl" in component:
            yield component["purl"], "".join(folders)


def _spdx(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    image = next(r for r in data["relationships"] if r["relationshipType"] == "DESCRIBES")["relatedSpdxElement"]
    held = {
        r["relatedSpdxElement"]
        for r in data["relationships"]
        if r["relationshipType"] == "CONTAINS" and r["spdxElementId"] == image
    }
    for package in data["packages"]:
        if package["SPDXID"] in held:
            where = package.get("sourceInfo", "").rpartition("in ")[2]
            for reference in package.get("externalRefs", []):
                yield reference["referenceLocator"], where


def _python_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


DPKG = ["dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\\n"]
PIP = [f"{PYTHON}/bin/python", "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
"""What an image is asked."""


def dpkg_list(output: str) -> dict[str, str]:
    """The installed packages that :data:`DPKG` prints; what was removed and left its configuration is not."""
    words = [line.split() for line in output.splitlines()]
    return {name: version for name, version, status in words if status.startswith("ii")}


def pip_list(output: str) -> dict[str, str]:
    """What :data:`PIP` prints."""
    return {package["name"]: package["version"] for package in json.loads(output)}
