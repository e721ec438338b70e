"""Compilers and Jupyter."""

from __future__ import annotations

import posixpath
import re

from hpcgen.core.model.image_facts import ImageSoftware, Shown
from hpcgen.images.reading.elf_parts import text_in
from hpcgen.images.reading.files import LIBRARY, Look, SeenImage
from hpcgen.images.reading.owners import Owners, first_said, said_by

_TRIPLE = r"(?:[a-z0-9_]+-(?:[a-z0-9]+-)?linux-[a-z0-9]+-)?"
GCC = Look(
    rf"/.*/bin/{_TRIPLE}(?:gcc|g\+\+|gfortran)(?:-\d+)?",
    text_in(rb"\0(\d{1,2}\.\d{1,2}\.\d{1,2})\0"),
    LIBRARY,
    elf=True,
)
OTHERS = Look(
    r"/.*/bin/(?:clang(?:-\d+)?|clang\+\+(?:-\d+)?|flang(?:-new)?(?:-\d+)?|nvcc|hipcc|amdclang|icx|icpx|ifx|nvc|nvc\+\+|nvfortran)"
)
KERNELS = Look(r"/.*/jupyter/kernels/[^/]+/kernel\.json")
LOOKS = (GCC, OTHERS, KERNELS)
_PACKAGES = {"nvcc": r"cuda-nvcc(-\d+-\d+)?|nvidia-cuda-nvcc(-cu\d+)?", "g++": r"g\+\+|gcc-c\+\+|gxx_impl_linux-64"}
_JUPYTER = ("jupyterlab", "notebook", "jupyter-server", "jupyterhub", "ipykernel", "nbclassic", "voila")


def compiler_facts(view: SeenImage, owners: Owners) -> list[ImageSoftware]:
    """Each program once, by its path."""
    texts = view.found(GCC)
    found = {}
    for path in sorted({*view.named(GCC).values(), *view.named(OTHERS).values()}):
        match = re.fullmatch(rf"{_TRIPLE}(.*?)(-\d+)?", posixpath.basename(path))
        name, number = (match[1], match[2] or "") if match else (posixpath.basename(path), "")
        version = first_said(said_by(texts.get(path), path), _by_package(owners, name, number, path))
        found[path] = ImageSoftware(name=name, file=path, version=version)
    return sorted(found.values(), key=lambda each: (each.name, each.file))


def _by_package(owners: Owners, name: str, number: str, path: str) -> Shown | None:
    """By the package of this release, else by one that may only point to it, and then has a shorter number."""
    if not number and (folder := re.search(r"/llvm-?(\d+)/", path)):
        number = f"-{folder[1]}"
    exact = owners.of(re.escape(name + number), path) if number else None
    plain = owners.of(_PACKAGES.get(name, f"{re.escape(name)}(_impl_linux-64)?"), path)
    return exact or (plain if plain is not None and plain.value.count(".") > 1 else None)


def jupyter_facts(view: SeenImage, owners: Owners) -> list[ImageSoftware]:
    """Its packages, and the kernels that it offers."""
    found = [
        ImageSoftware(name=package.name, file=package.where, version=Shown(package.version, package.where))
        for name in _JUPYTER
        for package in owners.packages_of(re.escape(name))
    ]
    kernels = sorted(set(view.named(KERNELS)))
    return found + [ImageSoftware(name=f"kernel {path.split('/')[-2]}", file=path) for path in kernels]
