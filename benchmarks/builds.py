"""Builds of an image with a user's own code, against the best two-stage file of the same content by hand.

It needs podman or ch-image and a network, and makes its base image with tests/containers/testbed: see the README there.
Each round builds from nothing, without a change, after a changed line of the code, and with one package more, by hand
and by hpcgen in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timing import Command, measured

HERE = Path(__file__).resolve().parent
TESTBED = HERE.parent / "tests" / "containers" / "testbed"
sys.path.insert(0, str(TESTBED.parent))

NAME = "benchmark-builds"
CASES = ("from nothing", "without a change", "a line of the code", "a package more")
PACKAGES = ("numpy==2.2.6", "scipy==1.15.3", "pandas==2.3.3")
ONE_MORE = "tqdm==4.67.1"
SMALL = "attrs==26.1.0"
MAIN = '#include <stdio.h>\nint main(void) { puts("round %s"); return 0; }\n'
GOAL = {case: 1.05 if case == "from nothing" else 1.1 for case in CASES}


@dataclass(frozen=True)
class Case:
    """The work of one build: versions of the packages, and a line of the code."""

    packages: tuple[str, ...]
    line: str


@dataclass(frozen=True)
class Built:
    """One build: seconds on the clock and of the processor, instructions of the recipe, layers and bytes."""

    wall: float
    processor: float
    steps: int
    layers: int
    size: int


def environment() -> dict[str, str]:
    """The test bed's, which has stores of its own."""
    text = subprocess.run([TESTBED / "environment"], check=True, capture_output=True, text=True).stdout
    return {**os.environ, **dict(line.split("=", 1) for line in text.splitlines())}


class Project:
    """A stack of Python packages and a program that is compiled, with the profile of this machine."""

    def __init__(self, folder: Path) -> None:
        from bare import without_servers
        from container_tools import BaseImage
        from test_rendered_kits import site_profile

        facts = json.loads(subprocess.run([sys.executable, TESTBED / "machine_facts.py"], capture_output=True).stdout)
        base = BaseImage("debian:12", "localhost/debian:12", folder / "none", folder / "none")
        for name in ("site_profiles", "recipes", "code"):
            (folder / name).mkdir(parents=True)
        profile = without_servers(site_profile(facts, base))
        profile["containers"]["engines"]["charliecloud"]["squashfs"] = "zstd"
        (folder / "site_profiles" / "here.yaml").write_text(json.dumps(profile))
        self.folder = folder
        self.code = folder / "recipes" / "code"
        self.code.mkdir()
        (self.code / "Makefile").write_text("program: main.c\n\t$(CC) -O2 -o program main.c\n")

    def write(self, case: Case) -> None:
        """The stack and the code as that build has them."""
        (self.code / "main.c").write_text(MAIN % case.line)
        stack = {
            "name": NAME,
            "title": "packages and a program",
            "blocks": {
                "debian": {"version": "12"},
                "gnu": {},
                "python": {},
                "python_packages": {"options": {"packages": list(case.packages)}},
            },
            "copy": [{"from": "code", "to": "/app"}],
            "build": {"in": "/app", "commands": ["make"]},
            "run": {"command": ["/app/program"], "mpi": False},
        }
        (self.folder / "recipes" / f"{NAME}.yaml").write_text(json.dumps(stack))

    def words(self, command: str, engine: str) -> list[str]:
        """The words of hpcgen for the engine."""
        words = [str(Path(sys.executable).with_name("hpcgen")), "--collection", str(self.folder), command]
        form = "charliecloud" if engine == "ch-image" else "docker"
        chosen = ["--engine", engine] if command == "build" else []
        return [*words, "--site", "here", "--stack", NAME, "--format", form, *chosen]


BY_HAND = """\
FROM {base} AS builder
RUN apt-get update && apt-get install -y --no-install-recommends {build} && apt-get clean && rm -rf /var/lib/apt/lists/*
COPY {lists} /opt/lists/
RUN {mount}{installs}
COPY copy/app /app
RUN cd /app && make CC=gcc-12
FROM {base}
ENV PATH=/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV PYTHONNOUSERSITE=1
RUN apt-get update && apt-get install -y --no-install-recommends {run} && apt-get clean && \\
    rm -rf /var/lib/apt/lists/* && mkdir -p /mnt/0
COPY --from=builder /opt/python /opt/python
COPY --from=builder /app /app
COPY selftest.sh /opt/hpcgen/
RUN sh /opt/hpcgen/selftest.sh --build
COPY {kit} /opt/hpcgen/kit/
COPY files/ /opt/hpcgen/kit/files/
"""


class Bench:
    """Both ways with one engine."""

    def __init__(self, engine: str, project: Project, folder: Path, env: Mapping[str, str]) -> None:
        self.engine, self.project, self.folder = engine, project, folder
        # Records, logs and ch-image's store go with the folder.
        self.env = {**env, "HPCGEN_RECORDS": str(folder / "records"), "CH_IMAGE_STORAGE": str(folder / "storage")}

    def kit(self) -> Path:
        """The kit of the project as it is now."""
        kit = self.folder / "kit"
        shutil.rmtree(kit, ignore_errors=True)
        self.run([*self.project.words("render", self.engine), "-o", str(kit)])
        return kit

    def by_hand(self) -> Built:
        """The kit's files with a Dockerfile that a person would write for the same packages."""
        kit = self.kit()
        recipe = (kit / ("build.sh" if self.engine == "ch-image" else "Dockerfile")).read_text()
        build, run = (" ".join(found.replace("\\\n", " ").split()) for found in re.findall(_APT, recipe))
        lists = sorted(str(path.relative_to(kit)) for path in (kit / "files" / "requirements").iterdir())
        lists.sort(key=lambda path: "/pip-" not in path)
        mount = "" if self.engine == "ch-image" else "--mount=type=cache,target=/root/.cache/pip "
        installs = [f"/opt/python/bin/pip install {_pip_words(recipe, each)}" for each in lists]
        text = BY_HAND.format(
            base="debian:12" if self.engine == "ch-image" else "localhost/debian:12",
            build=build,
            run=run,
            lists=" ".join(lists),
            mount=mount,
            installs=" && ".join(["/usr/bin/python3 -m venv /opt/python", *installs]),
            kit=" ".join(sorted(path.name for path in kit.iterdir() if path.is_file())),
        )
        context = self.folder / "context"
        shutil.rmtree(context, ignore_errors=True)
        shutil.copytree(kit, context)
        for path in context.rglob("*"):
            # ch-image knows a file by its time, as the user's own files keep theirs.
            os.utime(path, (0, hash(path.read_bytes()) % 10**9) if path.is_file() else (0, 0))
        (context / "Dockerfile.hand").write_text(text)
        commands = [[self.engine, "build", "-t", f"{NAME}-hand", "-f", "Dockerfile.hand", "."]]
        if self.engine == "ch-image":
            commands[0][2:2] = ["--force"]
            image = str(self.folder / "hand.sqfs")
            commands.append(["sh", "-c", f"rm -f {image}; ch-convert -o squash {NAME}-hand {image}"])
        else:
            commands[0][2:2] = ["--layers", "--force-rm", "--format", "docker"]
        script = " && ".join(" ".join(["sh -c '" + w[2] + "'"] if w[0] == "sh" else w) for w in commands)
        return self.timed(["/bin/sh", "-c", f"cd {context} && {script}"], text, "hand")

    def by_hpcgen(self) -> Built:
        """``hpcgen build`` with the site and the stack."""
        kit = self.kit()
        recipe = (kit / ("build.sh" if self.engine == "ch-image" else "Dockerfile")).read_text()
        image = str(self.folder / "hpcgen.sqfs") if self.engine == "ch-image" else f"localhost/{NAME}-hpcgen"
        return self.timed([*self.project.words("build", self.engine), "-o", image], recipe, "hpcgen")

    def timed(self, words: list[str], recipe: str, who: str) -> Built:
        """Run it and look at what came of it."""
        with (self.folder / f"{who}.log").open("w") as log:
            quiet = ["/bin/sh", "-c", f'exec "$@" > {log.name} 2>&1', "sh", *words]
            try:
                wall, processor, _ = measured(Command(quiet, self.env))
            except SystemExit:
                print((self.folder / f"{who}.log").read_text()[-2000:], file=sys.stderr)
                raise
        steps = len(re.findall(r"^(?:FROM|ENV|ARG|RUN|COPY|LABEL) ", recipe, re.MULTILINE))
        if self.engine == "ch-image":
            return Built(wall, processor, steps, 0, (self.folder / f"{who}.sqfs").stat().st_size)
        told = json.loads(self.run([self.engine, "image", "inspect", f"localhost/{NAME}-{who}"]))[0]
        return Built(wall, processor, steps, len(told["RootFS"]["Layers"]), told["Size"])

    def forget(self) -> None:
        """All that the engine knows of earlier builds."""
        if self.engine == "ch-image":
            # Its cache has the base as well.
            shutil.rmtree(self.env["CH_IMAGE_STORAGE"], ignore_errors=True)
            self.run(["ch-image", "import", str(Path(self.env["HPCGEN_TESTBED"]) / "debian12-root.tar"), "debian:12"])
            return
        listed = self.run([self.engine, "images", "-a", "-q", "--no-trunc"]).split()
        base = self.run([self.engine, "images", "-q", "--no-trunc", "localhost/debian:12"]).split()
        if others := [each for each in dict.fromkeys(listed) if each not in base]:
            subprocess.run([self.engine, "rmi", "-f", *others], env=self.env, capture_output=True)

    def run(self, words: list[str]) -> str:
        """What a command prints."""
        done = subprocess.run(words, env=self.env, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout


_APT = r"apt-get install -y --no-install-recommends ((?:[^&]|\\\n)+?) &&"


def _pip_words(recipe: str, path: str) -> str:
    """How the recipe installs a list: with hashes where it has them."""
    name = path.rpartition("/")[2]
    line = next(line for line in recipe.replace("\\\n", " ").splitlines() if name in line and "pip install" in line)
    words = next(part for part in line.split("&&") if name in part and "pip install" in part).split()
    return " ".join([*words[words.index("install") + 1 : words.index("-r")], "-r", f"/opt/lists/{name}"])


def measure(bench: Bench, rounds: int, packages: tuple[str, ...] = PACKAGES) -> dict[str, list[tuple[Built, Built]]]:
    """Pairs of builds, by hand and by hpcgen, of each case."""
    found: dict[str, list[tuple[Built, Built]]] = {case: [] for case in CASES}
    for number in range(rounds):
        ways: list[Callable[[], Built]] = [bench.by_hand, bench.by_hpcgen]
        lines = {case: f"{number} {'b' if index >= 2 else 'a'}" for index, case in enumerate(CASES)}
        results: list[dict[str, Built]] = []
        for way in ways if number % 2 == 0 else reversed(ways):
            bench.forget()
            built = {}
            for case in CASES:
                more = (ONE_MORE,) if case == "a package more" else ()
                bench.project.write(Case((*packages, *more), lines[case]))
                built[case] = way()
                print(f"{bench.engine}, {way.__name__}, {case}: {built[case]}", file=sys.stderr, flush=True)
            results.append(built)
        hand, hpcgen = results if number % 2 == 0 else reversed(results)
        for case in CASES:
            found[case].append((hand[case], hpcgen[case]))
    return found


def table(engine: str, found: Mapping[str, list[tuple[Built, Built]]]) -> str:
    """The medians, and how many times as long hpcgen takes, pair by pair."""
    lines = [f"{engine:24} by hand       hpcgen      ratio   processor   goal"]
    for case, pairs in found.items():
        walls = [statistics.median(each.wall for each in side) for side in zip(*pairs, strict=True)]
        ratio = statistics.median(other.wall / hand.wall for hand, other in pairs)
        work = statistics.median(other.processor / hand.processor for hand, other in pairs)
        lines.append(f"{case:24}{walls[0]:7.1f} s {walls[1]:10.1f} s {ratio:9.2f} {work:9.2f} {GOAL[case]:10.2f}")
    for name in ("steps", "layers", "size"):
        hand, other = (getattr(each, name) for each in found[CASES[0]][0])
        lines.append(f"{name:24}{hand:>7} {other:>12}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", action="append", choices=["podman", "ch-image"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--once", action="store_true", help="one round with one small package: to see that it works, not how fast it is"
    )
    arguments: Any = parser.parse_args()
    packages = PACKAGES
    if arguments.once:
        arguments.rounds, packages = 1, (SMALL,)
    subprocess.run([TESTBED / "make-base"], check=True)
    with tempfile.TemporaryDirectory() as temporary:
        project = Project(Path(temporary) / "collection")
        for engine in arguments.engine or ["podman", "ch-image"]:
            folder = Path(temporary) / engine
            folder.mkdir()
            print(table(engine, measure(Bench(engine, project, folder, environment()), arguments.rounds, packages)))


if __name__ == "__main__":
    main()
