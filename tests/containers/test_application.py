"""A program of one's own: its archive fetched from the loopback, or the stack's own code; compiled and started."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage
from test_rendered_kits import render_by_command, site_profile

from tests.helpers.file_server import make_certificate, serving

PROGRAM = """
#include <stdio.h>
int main(int count, char **words) {
    printf("solved %s with %s\\n", count > 1 ? words[1] : "nothing", FROM);
    return 0;
}
"""
SUM = """
#include <stdio.h>
static float field[1 << 20];
int main(void) {
    float sum = 0;
    for (int round = 0; round < 600; round++)
        for (int i = 1; i < (1 << 20) - 1; i++)
            field[i] = 0.3f * field[i] + 0.1f * (float)(i % 7);
    for (int i = 0; i < 1 << 20; i++)
        sum += field[i];
    printf("%f\\n", sum);
    return 0;
}
"""
MAKEFILE = "solver: solver.c\n\t$(CC) $(CFLAGS) -DFROM='\"make\"' -o $@ $<\n"


@cache
def archive() -> bytes:
    """Two files below one folder; once, since gzip writes the time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in (("solver.c", PROGRAM), ("Makefile", MAKEFILE)):
            member = tarfile.TarInfo(f"solver-1/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def stack(content: bytes, *commands: str) -> dict[str, Any]:
    options = {
        "source": "https://example.org/solver-1.tar.gz",
        "sha256": hashlib.sha256(content).hexdigest(),
        "commands": list(commands),
    }
    return {
        "name": "own",
        "title": "a program of one's own",
        "blocks": {"application": {"options": options}},
        "run": {"command": ["solver", "x y"], "mpi": False, "gpus_per_node": 0},
    }


def project(folder: Path) -> Path:
    """What a user has: code and hpcgen.yaml in one folder; the log of an older run stays behind."""
    (folder / "src").mkdir(parents=True)
    for name, text in (("solver.c", PROGRAM), ("Makefile", MAKEFILE), ("old.log", ""), (".hpcgenignore", "*.log\n")):
        (folder / "src" / name).write_text(text)
    own = {
        "name": "project",
        "title": "our solver",
        "blocks": {},
        "run": {"command": ["solver", "x y"], "mpi": False, "gpus_per_node": 0},
        "copy": [{"from": "src", "to": "/app"}],
        "build": {"commands": ["make"]},
    }
    file = folder / "hpcgen.yaml"
    file.write_text(json.dumps(own))
    return file


class Site:
    """This machine, with a mirror that has the archive."""

    def __init__(self, profile: dict[str, Any], ch_image: ChImage, folder: Path) -> None:
        self.ours, self.folder, self.ch_image = folder / "ours", folder, ch_image
        (self.ours / "site_profiles").mkdir(parents=True)
        (self.ours / "site_profiles/here.yaml").write_text(json.dumps(profile))

    def built(self, stack: Path, *programs: str) -> Path:
        """An image of a stack, after each of the programs has solved something in it."""
        kit, image = self.folder / f"kit-{stack.stem}", self.folder / f"image-{stack.stem}"
        render_by_command(self.ours, kit, "--site", "here", "--stack", str(stack), "--format", "charliecloud")
        once = {"HPCGEN_BUILD_OPTIONS": "--no-cache"}
        self.ch_image.run(["bash", kit / "build.sh", image], cwd=self.folder, env=once)
        assert not (image / "opt/hpcgen/build").exists()
        hpcgen = [sys.executable, "-m", "hpcgen", "--collection", self.ours]
        for program in programs:
            done = self.ch_image.run([*hpcgen, "run", image, "--", program, "x y"], cwd=self.folder)
            assert "solved x y with make" in done.stdout
        return image


@pytest.fixture
def site(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, ch_image: ChImage, tmp_path: Path
) -> Iterator[Site]:
    key = make_certificate(tmp_path)
    with serving(key) as server:
        server.files["solver-1.tar.gz"] = archive()
        profile = site_profile(machine_facts, plain_base_image)
        network = profile["network"]
        network["mirrors"]["files"] = server.url("").rstrip("/")
        network["ca_certificates"] = [*network["ca_certificates"], str(key[1])]
        yield Site(profile, ch_image, tmp_path)


def test_the_projects_own_program_is_compiled_and_started(site: Site, tmp_path: Path) -> None:
    """By the same block as an archive's, and its folder stays where it is."""
    image = site.built(project(tmp_path / "project"), "/app/solver")
    assert sorted(each.name for each in (image / "app").iterdir()) == ["Makefile", "solver", "solver.c"]


@pytest.mark.slow
def test_a_search_finds_the_image_whose_program_is_compiled_better(site: Site, tmp_path: Path) -> None:
    """One program, by two images: without optimisation, and as images have it."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "sum.c").write_text(SUM)
    images = []
    for name, flags in (("plain", ["-O0"]), ("fast", [])):
        own = {
            "name": name,
            "title": "sums",
            "blocks": {},
            "run": {"command": ["/app/sum"], "mpi": False, "gpus_per_node": 0},
            "copy": [{"from": "code", "to": "/app"}],
            "build": {"commands": ['"$CC" $CFLAGS -o sum sum.c'], "flags": flags},
        }
        file = tmp_path / f"{name}.yaml"
        file.write_text(json.dumps(own))
        images.append(site.built(file))
    words = ["--command", "/app/sum", "--trials", "3", "--rounds", "2", "--compare-rounds", "3", "--json"]
    hpcgen = [sys.executable, "-m", "hpcgen", "--collection", site.ours]
    done = site.ch_image.run([*hpcgen, "tune", *images, *words], cwd=tmp_path)
    found = json.loads(done.stdout[done.stdout.index("{\n") :])
    assert found["trials"][1]["settings"] == {"image": str(images[1])}
    assert found["verdict"].startswith(f"image={images[1]} "), found["verdict"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("commands", "program"),
    [
        (["make -j 2", 'mkdir "$PREFIX/bin" && cp solver "$PREFIX/bin"'], "/opt/application/bin/solver"),
        (["make"], "/opt/application/src/solver"),
    ],
    ids=["installed", "left where it is"],
)
def test_an_archives_program_is_compiled_and_started(
    site: Site, tmp_path: Path, commands: list[str], program: str
) -> None:
    """One installs into the prefix, one leaves it empty so that its folder is kept."""
    file = tmp_path / "own.yaml"
    file.write_text(json.dumps(stack(archive(), *commands)))
    site.built(file, program)
