"""The hpccm recipe with the content of a Dockerfile of hpcgen's, to compare the two commands on equal work.

Each group of instructions becomes one primitive of hpccm: the same stages, the same number of primitives, the
same commands. That it is so is checked, see :func:`differences`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_KINDS = ("FROM", "ARG", "ENV", "COPY", "LABEL", "RUN", "#")
_MOUNT = re.compile(r"^(--mount=\S+ )+")


def instructions(dockerfile: str) -> Iterator[tuple[str, list[str]]]:
    """Pairs of an instruction's name and its lines; neighbours of one kind, other than RUN, are one group."""
    kind, lines = "", list[str]()
    continued = False
    for line in dockerfile.splitlines():
        if continued:
            lines[-1] += "\n" + line
        elif line.startswith(_KINDS):
            found = "#" if line.startswith("#") else line.split(" ", 1)[0]
            content = line[1:].strip() if found == "#" else line.split(" ", 1)[1]
            if found == kind and found not in ("RUN", "FROM"):
                lines.append(content)
            else:
                if kind:
                    yield kind, lines
                kind, lines = found, [content]
        continued = line.endswith("\\") and not line.startswith("#")
    if kind:
        yield kind, lines


def commands(run: str) -> list[str]:
    """The commands of one RUN; hpcgen's have no ``&&`` of their own."""
    return [part.strip() for part in _MOUNT.sub("", run).split(" && \\\n")]


def hpccm_recipe(dockerfile: str) -> str:
    """The recipe as Python text."""
    stage = -1
    result = []
    for kind, lines in instructions(dockerfile):
        if kind == "FROM":
            stage += 1
            image, _, name = lines[0].partition(" AS ")
            result.append(f"Stage{stage} += baseimage(image={image!r}, _as={name!r}, _distro='ubuntu22')")
        elif stage >= 0:
            result.append(f"Stage{stage} += {_primitive(kind, lines)}")
    return "\n".join([*result, ""])


def _primitive(kind: str, lines: list[str]) -> str:
    if kind == "#":
        return f"comment({' '.join(lines)!r}, reformat=False)"
    if kind == "RUN":
        mounts = _MOUNT.match(lines[0])
        arguments = mounts[0].strip() if mounts else ""
        return f"shell(commands={commands(lines[0])!r}, _arguments={arguments!r})"
    if kind == "COPY":
        stage = "builder" if lines[0].startswith("--from=") else ""
        copied = [line.removeprefix("--from=builder ").split() for line in lines]
        files = {source: target for *sources, target in copied for source in sources}
        return f"copy(files={files!r}, _from={stage!r})"
    words = [word.strip() for line in lines for word in line.split(" \\\n")]
    pairs = {pair[1]: pair[2] for pair in (re.fullmatch(r"(\S+?)[= ](.*)", word) for word in words) if pair}
    if kind == "LABEL":
        return f"label(metadata={pairs!r})"
    if kind == "ARG":
        return "raw(docker=" + repr("\n".join(f"ARG {name}={value}" for name, value in pairs.items())) + ")"
    return f"environment(variables={pairs!r})"


def differences(mine: str, theirs: str) -> list[str]:
    """In what two Dockerfiles differ: stages, number of groups of each kind, any command of any step."""
    counts = [[kind for kind, _ in instructions(text) if kind != "#"] for text in (mine, theirs)]
    result = [
        f"{counts[0].count(kind)} against {counts[1].count(kind)} {kind}"
        for kind in sorted({*counts[0], *counts[1]})
        if counts[0].count(kind) != counts[1].count(kind)
    ]
    steps = [[commands(run[0]) for kind, run in instructions(text) if kind == "RUN"] for text in (mine, theirs)]
    if steps[0] != steps[1]:
        result.append("the commands of the steps")
    return result
