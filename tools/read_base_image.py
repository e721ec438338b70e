#!/usr/bin/env python3
"""Print the entry of a release table for one build of a base image, from a file of docker-library/repo-info.

    tools/read_base_image.py ubuntu:22.04 592e1d75 repos/ubuntu/remote/jammy-20260901.2.md

reads that file, from a checkout of github.com/docker-library/repo-info at that commit or from elsewhere, and prints
what belongs below ``images: default:`` of the row. Exit status 1 if it is no such file.
"""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path

PLATFORMS = {"amd64": "amd64", "arm64 variant v8": "arm64", "ppc64le": "ppc64le"}
"""How the files call the platforms of a table."""
_PART = re.compile(
    r"^##(?:#)? `(?P<image>[^`]+)`(?: - (?P<system>[^;\n]+); (?P<platform>[^\n]+))?\n"
    r"\n```console\n\$ docker pull \S+@(?P<digest>sha256:[0-9a-f]{64})\n",
    re.MULTILINE,
)


def entry(name: str, commit: str, path: str, text: str, today: str) -> str:
    """The entry's lines; ValueError where the text does not say one index and manifests of one tag."""
    parts = [part.groupdict() for part in _PART.finditer(text)]
    if not parts or parts[0]["system"] or any(part["image"] != parts[0]["image"] for part in parts):
        raise ValueError(f"{path} is no list of the digests of a tag")
    repository, _, tag = parts[0]["image"].partition(":")
    if repository != name.partition(":")[0]:
        raise ValueError(f"{path} is of {repository}, not of {name}")
    where = f"repos/{path.partition('repos/')[2] or path}"
    digests = {PLATFORMS.get(part["platform"]): part["digest"] for part in parts[1:] if part["system"] == "linux"}
    lines = [f'name: "{name}"', f"dated: {tag}", f"digest: {parts[0]['digest']}", "platforms:"]
    lines += [f"  {platform}: {digests[platform]}" for platform in PLATFORMS.values() if platform in digests]
    read = f'checked: "{today}", as_of: "{today}", dated_by: reading, verified: "yes"'
    source = f'from: "github.com/docker-library/repo-info@{commit} {where}", {read}'
    return "\n".join([*lines, f"source: {{{source}}}"])


def main(words: list[str]) -> int:
    """Print the entry that the command line asks for."""
    if len(words) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    name, commit, path = words
    try:
        print(entry(name, commit, path, Path(path).read_text(encoding="utf-8"), date.today().isoformat()))
    except (OSError, ValueError) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
