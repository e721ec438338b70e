"""Write down what Spack chose for the active environment: its lock, and each source of what it will compile.

Started by ``spack python`` with the path of the answer. Sources without a sha256 are told by their package. As
lib/spack/spack of spack/spack at v1.1.0 has stages and mirrors.
"""

import json
import sys

import spack.environment

_ARCHIVES = "_source-cache/archive/"


def _sources(spec):
    """The files that a package is made from, each with its place in mirrors; "" where that is not by a sha256."""
    if not spec.package.has_code:
        return
    stages = list(spec.package.stage)
    for stage in stages:
        fetcher = getattr(stage, "default_fetcher", None)
        url = getattr(fetcher, "url", None) or ""
        if fetcher is None or url.startswith("file:"):
            continue  # a file of the package repository itself
        digest = getattr(fetcher, "digest", None) or ""
        path = str(getattr(stage.mirror_layout, "path", ""))
        known = len(digest) == 64 and path.startswith(_ARCHIVES)
        yield {"path": path[len(_ARCHIVES) :] if known else "", "sha256": digest, "url": url}


def main():
    environment = spack.environment.active_environment()
    sources = []
    for spec in environment.all_specs():
        if not spec.external:
            name = f"{spec.name}@{spec.version}"
            sources += [dict(each, package=name) for each in _sources(spec)]
    with open(environment.lock_path) as text:
        lock = json.load(text)
    with open(sys.argv[1], "w") as out:
        json.dump({"lock": lock, "sources": sources}, out)


main()
