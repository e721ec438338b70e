"""What Bazel fetches by itself, as files that a bundle must hold."""

from __future__ import annotations

from hpcgen.inputs.bazel_layout import file_name, require
from hpcgen.model.bundle import Wanted
from hpcgen.steps import BazelFile, BazelFiles


def bazel_wanted(files: BazelFiles) -> list[Wanted]:
    """Each file once, under the name that Bazel looks for, from https addresses alone.

    A project may name a mirror by http; the same address is asked by https then, and its hash decides. Files of the
    Python package index are looked up in the one that pip's settings name.

    Raises
    ------
    InputError: nobody has made the list. FetchError: files that the Python package index has not.
    """
    require(files)
    packages = _packages([file for file in files.files if file.package])
    found: dict[tuple[str, str], Wanted] = {}
    for file in files.files:
        key = (file.sha256, file_name(file))
        if file.package:
            urls = packages[file.sha256]
        else:
            secure = [url for url in file.urls if url.startswith("https:")]
            urls = secure or ["https:" + url.removeprefix("http:") for url in file.urls]
        label = f"{files.name} {file.name}"
        if key in found:
            label, urls = found[key].name, list(dict.fromkeys([*found[key].urls, *urls]))
        found[key] = Wanted(kind="bazel", name=label, file=key[1], sha256=file.sha256, urls=urls)
    return [found[key] for key in sorted(found)]


def _packages(files: list[BazelFile]) -> dict[str, list[str]]:
    """sha256 → addresses of files of the Python package index."""
    if not files:
        return {}
    from hpcgen.inputs.package_index import find_files

    lines = sorted({f"{file.package} --hash=sha256:{file.sha256}" for file in files})
    return {item.sha256: item.urls for item in find_files(lines)}
