"""Choose conda packages, or install them, by py-rattler: conda_program.py solve|install FILE.

FILE has what is asked as JSON. ``solve`` prints the chosen packages as JSON; hpcgen lock runs it for that, too.
"""

import asyncio
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

import rattler


def virtual_packages(said):
    """``__archspec``: ``1=zen3`` is a version and a build."""
    found = []
    for name, text in sorted(said.items()):
        version, _, build = text.partition("=")
        words = rattler.PackageName(name), rattler.Version(version), rattler.BuildString(build or "0")
        found.append(rattler.GenericVirtualPackage(*words))
    return found


async def solve(asked):
    """The records of all packages that are to be installed."""
    return await rattler.solve(
        [rattler.Channel(each) for each in asked["channels"]],
        [rattler.MatchSpec(each) for each in asked["needs"]],
        platforms=[asked["subdir"], "noarch"],
        virtual_packages=virtual_packages(asked["virtual"]),
        constraints=[rattler.MatchSpec(each) for each in asked["held"]],
    )


def check(path, sha256):
    """ValueError where a file is not what it is to be."""
    found = hashlib.sha256()
    with open(path, "rb") as stream:
        while piece := stream.read(1 << 20):
            found.update(piece)
    if found.hexdigest() != sha256:
        raise ValueError(f"{path} has the sha256 {found.hexdigest()}, not {sha256}")


async def of_files(packages, addresses):
    """Records of packages whose files are there."""
    records = []
    for each in packages:
        check(each["path"], each["sha256"])
        record = await rattler.RepoDataRecord.from_package_archive(each["path"])
        record.url = f"file://{each['path']}"
        record.file_name = each["path"].rpartition("/")[2]
        addresses[record.url] = each["url"]
        records.append(record)
    return records


def tidy(prefix, addresses):
    """conda-meta says where the packages are from, not where they lay in the builder."""
    for name in sorted(os.listdir(f"{prefix}/conda-meta")):
        if not name.endswith(".json"):
            continue
        path = f"{prefix}/conda-meta/{name}"
        with open(path, encoding="utf-8") as stream:
            meta = json.load(stream)
        url = addresses.get(meta["url"], meta["url"])
        meta["url"], meta["channel"] = url, url.rsplit("/", 2)[0]
        for field in ("extracted_package_dir", "package_tarball_full_path", "link"):
            meta.pop(field, None)
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(meta, stream, indent=1, sort_keys=True)


async def install(asked):
    """The packages whose files are named, or what a solver chooses now, into a folder."""
    prefix, addresses, platform = asked["prefix"], {}, rattler.Subdir(asked["subdir"])
    if asked["packages"]:
        records = await of_files(asked["packages"], addresses)
    else:
        records = await solve(asked)
    with tempfile.TemporaryDirectory(dir=prefix.rpartition("/")[0]) as cache:
        await rattler.install(records, prefix, cache_dir=cache, platform=platform, show_progress=False)
    tidy(prefix, addresses)
    print(f"{len(records)} conda packages are in {prefix}")
    scripts = f"{prefix}/etc/conda/activate.d"
    if Path(scripts).is_dir():
        print(f"not run in a container: {', '.join(sorted(os.listdir(scripts)))} of {scripts}")


def main(action, path):
    with open(path, encoding="utf-8") as stream:
        asked = json.load(stream)
    try:
        if action == "install":
            asyncio.run(install(asked))
        else:
            print(json.dumps([json.loads(each.to_json()) for each in asyncio.run(solve(asked))]))
    except Exception as failure:
        print(f"conda packages: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of py-rattler that still run while the interpreter ends make it abort, now and then (seen with 0.28.0).
    os._exit(status)
