"""``building_blocks/bazel/NAME.yaml``: what Bazel fetches by itself while it builds one release of a software."""

from __future__ import annotations

from pathlib import Path

from hpcgen.blocks.steps import BazelFile, BazelFiles
from hpcgen.errors import InputError, Problem
from hpcgen.model.bazel import BazelList


def read_bazel_files(path: Path, shown: str) -> BazelFiles:
    """The list in a file; it is called as the file is, without ``.yaml``.

    Raises
    ------
    InputError: the file is not such a list, or says two things of one address.
    """
    from hpcgen.config.decoding import convert
    from hpcgen.config.yamlfile import load

    document = load(path, shown)
    listed = convert(document, BazelList)
    seen: dict[str, str] = {}
    problems = []
    for number, file in enumerate(listed.files):
        if bool(file.urls) == bool(file.package and file.file):
            where = document.position(["files", number])
            problems.append(Problem(f"{file.name} must have either urls, or file and package", where))
        for place, url in enumerate(file.urls):
            if seen.setdefault(url, file.sha256) != file.sha256:
                where = document.position(["files", number, "urls", place])
                problems.append(Problem(f"{url} is listed with two hashes", where, remedy="keep the right one"))
    if problems:
        raise InputError(problems)
    files = (BazelFile(f.name, f.sha256, tuple(f.urls), f.file or "", f.package or "") for f in listed.files)
    return BazelFiles(path.stem, tuple(files))
