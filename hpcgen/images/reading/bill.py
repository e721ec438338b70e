"""The bill of materials of an image that was read: its packages, and software that no package brought."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import starmap

from hpcgen.core.model.component import Component
from hpcgen.core.model.image_facts import ImageFacts, ImagePackage, ImageSoftware
from hpcgen.core.model.record import ArtifactOrigin
from hpcgen.core.support import purl
from hpcgen.kit.sbom import cyclonedx_of_image

_OS = {"dpkg": "deb", "apk": "apk", "rpm": "rpm"}


def bill_of_materials(name: str, facts: ImageFacts, artifacts: Mapping[str, ArtifactOrigin] | None = None) -> str:
    """CycloneDX 1.6 JSON: the same bytes for the same contents. ``artifacts``: the blocks that were compiled before."""
    found: dict[str, Component] = {}
    for component in (*_components(facts), *starmap(_artifact, (artifacts or {}).items())):
        found.setdefault(component.ref, component)
    return cyclonedx_of_image(name, sorted(found.values(), key=lambda each: (each.kind, each.name, each.ref)))


def _components(facts: ImageFacts) -> Iterator[Component]:
    system = facts.system
    distribution = system.distribution.value if system.distribution is not None else ""
    release = system.release.value if system.release is not None else ""
    if distribution:
        yield Component(f"system:{distribution}", "system", distribution, release)
    for package in facts.packages:
        yield _package(package, distribution, release)
    libraries = (*facts.mpi, *facts.pmi, *facts.fabric.libraries, *facts.gpu.libraries)
    named = {package.name for package in facts.packages}
    for each in (*libraries, *facts.python, *facts.frameworks, *facts.compilers):
        if each.name not in named and each.version is not None and not each.version.file.startswith("the package "):
            yield _software(each, each.version.value)


def _artifact(block: str, origin: ArtifactOrigin) -> Component:
    address = purl.purl("generic", block, origin.version)
    ref = f"artifact:{origin.key}"
    return Component(
        ref, "software", block, origin.version, address, block=block, artifact=origin.key, note=str(origin)
    )


def _package(package: ImagePackage, distribution: str, release: str) -> Component:
    kind = {"os": "package", "python": "python", "conda": "conda"}[package.kind]
    if package.kind == "python":
        address = purl.python_package(package.name, package.version)
    elif package.kind == "conda":
        address = purl.purl("conda", package.name, package.version)
    else:
        manager = next((purl_type for word, purl_type in _OS.items() if word in package.where), "generic")
        where = f"{distribution}-{release}" if distribution and release else distribution
        address = purl.purl(manager, package.name, package.version, namespace=distribution, distro=where)
    ref = f"{kind}:{package.name}@{package.version}#{package.where}"
    return Component(ref, kind, package.name, package.version, address, where=package.where)  # type: ignore[arg-type]


def _software(each: ImageSoftware, version: str) -> Component:
    plain = re.sub(r"[^A-Za-z0-9.+_-]", "-", each.name)
    address = purl.purl("generic", plain, version)
    return Component(f"software:{each.name}#{each.file}", "software", each.name, version, address, where=each.file)
