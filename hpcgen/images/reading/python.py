"""Python, and frameworks with what they compute on."""

from __future__ import annotations

import posixpath
import re

from hpcgen.core.model.image_facts import ImageFramework, ImageSoftware, Shown, Variant
from hpcgen.images.reading.files import LIBRARY, Look, SeenImage, text_of
from hpcgen.images.reading.owners import Owners
from hpcgen.machine.detect.tree import Blob

_VERSION = re.compile(rb"\0(3\.\d{1,2}\.\d{1,2}(?:(?:a|b|rc)\d{1,2})?\+?)(?=\0)")
_MOST = 64 * 1024 * 1024


def _releases(blob: Blob) -> tuple[str, ...] | None:
    """Texts that may be its release; which of them is decided by the minor release that the file's name has."""
    found = {match.decode() for match in _VERSION.findall(blob.at(0, min(blob.size, _MOST)))}
    return tuple(sorted(found)) or None


PYTHON = Look(r"/.*/bin/python3(?:\.\d+)?", _releases, LIBRARY, elf=True)
LIBPYTHON = Look(r"/.*/libpython3\.\d+\.so[0-9.]*", _releases, LIBRARY, elf=True)
TORCH = Look(r"/.*/torch/version\.py", text_of)
TENSORFLOW = Look(r"/.*/tensorflow/python/platform/build_info\.py", text_of)
LOOKS = (PYTHON, LIBPYTHON, TORCH, TENSORFLOW)

_FRAMEWORKS = {
    "torch": r"torch|pytorch(-gpu|-cpu)?",
    "tensorflow": r"(intel-)?tensorflow(-cpu|-gpu|-rocm|-base|-aarch64)?",
    "jax": r"jax",
    "onnxruntime": r"onnxruntime(-gpu|-rocm|-openvino)?",
    "cupy": r"cupy(-cuda\d+x|-rocm-[\d-]+|-core)?",
    "mxnet": r"mxnet(-cu\d+)?",
    "paddle": r"paddlepaddle(-gpu)?",
}
"""Names of packages, of indexes and conda, with a framework."""
_PLUGINS: dict[str, list[tuple[Variant, str]]] = {
    "jax": [("cuda", r"jax-cuda(\d+)-plugin"), ("rocm", r"jax-rocm(\d+)-plugin")]
}


def python_facts(view: SeenImage) -> list[ImageSoftware]:
    """Each interpreter once, by its path."""
    libraries = view.found(LIBPYTHON)
    own = view.found(PYTHON)
    found = []
    for path in sorted(set(view.named(PYTHON).values())):
        minor = _minor(path) or next(
            (m for name, real in view.named(PYTHON).items() if real == path and (m := _minor(name))), ""
        )
        prefix = path.rsplit("/bin/", 1)[0]
        candidates = [(path, own.get(path, ())), *((p, v) for p, v in libraries.items() if p.startswith(f"{prefix}/"))]
        said = (
            (file, text) for file, texts in candidates for text in texts if not minor or text.startswith(f"{minor}.")
        )
        version = next((Shown(text.rstrip("+"), file) for file, text in said), None) if minor else None
        found.append(ImageSoftware(name="python", file=path, version=version))
    return found


def _minor(path: str) -> str:
    match = re.search(r"python(3\.\d+)$", path)
    return match[1] if match else ""


def framework_facts(view: SeenImage, owners: Owners) -> list[ImageFramework]:
    """By what they write down of themselves, else by their packages."""
    found = [_torch(path, text) for path, text in view.found(TORCH).items()]
    found += [_tensorflow(path, text, owners) for path, text in view.found(TENSORFLOW).items()]
    there = {each.name for each in found}
    for name, pattern in _FRAMEWORKS.items():
        for package in owners.packages_of(pattern) if name not in there else ():
            kind, by = _by_package(name, package.name, owners)
            shown = Shown(package.version, f"the package {package.name} by {package.where}")
            found.append(ImageFramework(name=name, file=package.where, version=shown, variant=kind, built_with=by))
    return sorted(found, key=lambda each: (each.name, each.file))


def _torch(path: str, text: str) -> ImageFramework:
    said = dict(re.findall(r"^(\w+)(?:: [\w\[\]]+)? = '([^'\n]{1,80})'$", text, re.MULTILINE))
    known = re.search(r"^cuda(: [\w\[\]]+)? = ", text, re.MULTILINE) is not None
    keys: dict[Variant, str] = {"cuda": "cuda", "rocm": "hip", "xpu": "xpu"}
    variant = next((each for each, key in keys.items() if said.get(key)), None)
    return ImageFramework(
        name="torch",
        file=posixpath.dirname(path),
        version=Shown(said["__version__"], path) if "__version__" in said else None,
        variant=variant or ("cpu" if known else None),
        built_with=Shown(said[keys[variant]], path) if variant else None,
    )


def _tensorflow(path: str, text: str, owners: Owners) -> ImageFramework:
    flags = dict(re.findall(r"""['"]is_(cuda|rocm)_build['"]\s*[:,]\s*(True|False)""", text))
    release = re.search(r"""['"](cuda|rocm)_version['"]\s*[:,]\s*['"]([\d.]{1,20})['"]""", text)
    variants: tuple[Variant, ...] = ("cuda", "rocm")
    variant = next((each for each in variants if flags.get(each) == "True"), "cpu" if flags else None)
    return ImageFramework(
        name="tensorflow",
        file=path.removesuffix("/python/platform/build_info.py"),
        version=owners.of(_FRAMEWORKS["tensorflow"], path),
        variant=variant,
        built_with=Shown(release[2], path) if release and release[1] == variant else None,
    )


def _by_package(name: str, package: str, owners: Owners) -> tuple[Variant | None, Shown | None]:
    """By a word in its name, or by a plug-in beside it; a plain name does not say it."""
    for variant, pattern in _PLUGINS.get(name, ()):
        for plugin in owners.packages_of(pattern)[:1]:
            match = re.fullmatch(pattern, plugin.name)
            return variant, Shown(match[1] if match else "", f"the package {plugin.name} by {plugin.where}")
    if match := re.search(r"-cuda(\d+)x$|-cu(\d+)$", package):
        return "cuda", Shown(match[1] or match[2], f"the name of the package {package}")
    if package.endswith("-gpu"):
        return "cuda", None
    if "-rocm" in package:
        return "rocm", None
    return ("cpu", None) if name in ("jax", "onnxruntime", "paddle") or package.endswith("-cpu") else (None, None)
