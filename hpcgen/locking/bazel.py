"""What Bazel fetches by itself, as files that a bundle must hold."""

from __future__ import annotations

from hpcgen.blocks.bazel_layout import held_names, require
from hpcgen.blocks.steps import BazelFile, BazelFiles
from hpcgen.model.bundle import Wanted


def bazel_wanted(files: BazelFiles) -> list[Wanted]:
    """Each file once, from https addresses alone; where Bazel looks for it is :mod:`hpcgen.blocks.bazel_layout`'s part.

    A project may name a mirror by http; the same address is asked by https then, and its hash decides. Files of the
    Python package index are looked up in the one that pip's settings name.

    Raises
    ------
    InputError: nobody has made the list. FetchError: files that the Python package index has not.
    """
    require(files)
    packages = _packages([file for file in files.files if file.package])
    names = held_names(files)
    found: dict[str, Wanted] = {}
    for file in files.files:
        if file.package:
            urls = packages[file.sha256]
        else:
            secure = [url for url in file.urls if url.startswith("https:")]
            urls = secure or ["https:" + url.removeprefix("http:") for url in file.urls]
        label = f"{files.name} {file.name}"
        if file.sha256 in found:
            known = found[file.sha256]
            label, urls = known.name, list(dict.fromkeys([*known.urls, *urls]))
        found[file.sha256] = Wanted(kind="bazel", name=label, file=names[file.sha256], sha256=file.sha256, urls=urls)
    return [found[sha256] for sha256 in sorted(found)]


def _packages(files: list[BazelFile]) -> dict[str, list[str]]:
    """sha256 → addresses of files of the Python package index."""
    if not files:
        return {}
    from hpcgen.net.package_index import find_files

    lines = sorted({f"{file.package} --hash=sha256:{file.sha256}" for file in files})
    return {item.sha256: item.urls for item in find_files(lines)}
