"""What Bazel fetches by itself, as files that a bundle must hold."""

from __future__ import annotations

from hpcgen.inputs.bazel_layout import file_name, require
from hpcgen.model.bundle import Wanted
from hpcgen.steps import BazelFiles


def bazel_wanted(files: BazelFiles) -> list[Wanted]:
    """Each file once, under the name that Bazel looks for, from https addresses alone.

    A project may name a mirror by http; the same address is asked by https then, and its hash decides.

    Raises
    ------
    InputError: nobody has made the list, or a name cannot be one in a bundle.
    """
    require(files)
    found: dict[tuple[str, str], Wanted] = {}
    for file in files.files:
        name = file_name(file)
        secure = [url for url in file.urls if url.startswith("https:")]
        urls = secure or ["https:" + url.removeprefix("http:") for url in file.urls]
        known = found.get((file.sha256, name))
        if known is not None:
            urls = list(dict.fromkeys([*known.urls, *urls]))
        label = known.name if known is not None else f"{files.name} {file.name}"
        found[(file.sha256, name)] = Wanted(kind="bazel", name=label, file=name, sha256=file.sha256, urls=urls)
    return [found[key] for key in sorted(found)]
