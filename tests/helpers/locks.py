"""Locks for the tests of what is made from them; no network has part in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.lock import ImagePin, KeyPin, Lock, PackagePin, Pins, StagePackages
from hpcgen.core.model.site import Site
from hpcgen.kit.lockfile.lock import parse_lock, sealed_text
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from hpcgen.supply.pin.locking import collection_files

CATALOG = Catalog()
PRESENT = {
    "base-files": "12.4+deb12u12",
    "libc6": "2.36-9+deb12u13",
    "libgcc-s1": "12.2.0-14+deb12u1",
    "zlib1g": "1:1.2.13.dfsg-1",
}
FINAL = {"libstdc++6": "12.2.0-14+deb12u1", "python3": "3.11.2-1+b1"}
BUILDER = {**FINAL, "g++-12": "12.2.0-14+deb12u1", "git": "1:2.39.5-0+deb12u2", "python3-dev": "3.11.2-1+b1~x"}
WHEELS = {
    "python_packages": [
        f"h5py==3.11.0 --hash=sha256:{'1' * 64} --hash=sha256:{'2' * 64}",
        f"numpy==1.26.4 --hash=sha256:{'3' * 64}",
    ]
}


def package(version: str, name: str = "", number: int = 0) -> PackagePin:
    sha256 = f"{abs(hash_of(name + version)) + number:064x}"
    return PackagePin(
        version=version, architecture="amd64", sha256=sha256, size=1000, url=f"http://deb.example.org/pool/{name}.deb"
    )


def hash_of(text: str) -> int:
    import hashlib

    return int(hashlib.sha256(text.encode()).hexdigest()[:32], 16)


def added(packages: Mapping[str, str]) -> dict[str, PackagePin]:
    return {name: package(version, name) for name, version in packages.items()}


def pins(
    builder: Mapping[str, str] = BUILDER,
    final: Mapping[str, str] = FINAL,
    present: Mapping[str, str] = PRESENT,
    wheels: Mapping[str, Sequence[str]] = WHEELS,
    images: Sequence[str] = ("debian:12", "ubuntu:22.04"),
    epoch: int = 1760000000,
) -> Pins:
    stages = {"builder": builder, "final": final}
    return Pins(
        images={name: ImagePin(digest=f"sha256:{hash_of(name):064x}", origin=f"docker://{name}") for name in images},
        packages={stage: StagePackages(present=dict(present), added=added(names)) for stage, names in stages.items()},  # type: ignore[misc]
        keys=[
            KeyPin(
                fingerprint="4D64FEC119C2029067D6E791F8D2585B8783D481",
                keyring="/usr/share/keyrings/debian-archive-keyring.gpg",
                index="http://deb.example.org/debian bookworm",
                date="Sat, 06 Sep 2025 09:57:05 UTC",
            )
        ],
        wheels={name: list(lines) for name, lines in wheels.items()},
        epoch=epoch,
    )


def lock(
    stack: str = "tf-horovod",
    site: str = "workstation",
    settings: Sequence[str] = ("base.provider=debian",),
    pinned: Pins | None = None,
    catalog: Catalog = CATALOG,
    profile: Site | None = None,
    job: JobRequest | None = None,
) -> Lock:
    """The lock of a plan; ``profile`` is a changed one of the site."""
    plan = make_plan(catalog, profile or catalog.site(site), catalog.stack(stack), settings=settings, job=job)
    chosen = pins() if pinned is None else pinned
    assembly = assemble(plan, catalog, chosen)
    files = collection_files(plan, catalog)
    text = sealed_text(plan, assembly, chosen, files)
    return parse_lock(text, "the lock of a test")
