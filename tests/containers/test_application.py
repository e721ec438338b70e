"""A program of one's own: its archive fetched from the loopback, or the stack's own code; compiled and started."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from bare import without_servers, write_bare_base
from container_tools import BaseImage, Buildah, ChImage, Tool
from test_rendered_kits import render_by_command, site_profile

from tests.helpers.file_server import make_certificate, serving

PROGRAM = """
#include <stdio.h>
int main(int count, char **words) {
    printf("solved %s with %s\\n", count > 1 ? words[1] : "nothing", FROM);
    return 0;
}
"""
SED = "solver: solver.sh\n\t(echo '#!/bin/sh'; sed s/FROM/make/ $<) > $@\n\tchmod 755 $@\n"
MAKEFILE = "solver: solver.c\n\t$(CC) $(CFLAGS) -DFROM='\"make\"' -o $@ $<\n"


def archive() -> bytes:
    """Two files below one folder."""
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


def test_a_program_is_compiled_and_started(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, ch_image: ChImage, tmp_path: Path
) -> None:
    """One stack installs into the prefix; the other leaves it empty, so that its whole folder is kept."""
    content, key = archive(), make_certificate(tmp_path)
    with serving(key) as server:
        server.files["solver-1.tar.gz"] = content
        site = site_profile(machine_facts, plain_base_image)
        site["network"]["mirrors"]["files"] = server.url("").rstrip("/")
        site["network"]["ca_certificates"] = [*site["network"]["ca_certificates"], str(key[1])]
        ours = tmp_path / "ours"
        installed = stack(content, "make -j 2", 'mkdir "$PREFIX/bin" && cp solver "$PREFIX/bin"')
        for folder, each in (("site_profiles", site), ("recipes", installed)):
            (ours / folder).mkdir(parents=True)
            (ours / folder / f"{each['name']}.yaml").write_text(json.dumps(each))
        kept = {**stack(content, "make"), "name": "whole"}
        (ours / "recipes" / "whole.yaml").write_text(json.dumps(kept))
        for name, file in (("own", "bin/solver"), ("whole", "src/solver")):
            kit, image = tmp_path / name, tmp_path / f"image-{name}"
            render_by_command(ours, kit, "--site", "here", "--stack", name, "--format", "charliecloud")
            # With a cache the second image compiles its program alone.
            ch_image.run(["bash", kit / "build.sh", image], cwd=tmp_path)
            assert (image / "opt" / "application" / file).is_file()
            assert not (image / "opt" / "hpcgen" / "build").exists()
            words = [sys.executable, "-m", "hpcgen", "--collection", str(ours), "run", str(image)]
            done = subprocess.run(words, env=ch_image.env, capture_output=True, text=True, cwd=tmp_path, check=False)
            assert "solved x y with make" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("engine", ["ch-image", pytest.param("buildah", marks=pytest.mark.slow)])
def test_the_stacks_own_code_is_compiled_where_it_lies(
    engine: str, machine_facts: dict[str, Any], base_image: BaseImage, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    """The project of a user: code and hpcgen.yaml in one folder; objects and a log of an older build stay behind."""
    write_bare_base(tmp_path / "ours")
    site = without_servers(site_profile(machine_facts, base_image))
    (tmp_path / "ours/site_profiles").mkdir()
    (tmp_path / "ours/site_profiles/here.yaml").write_text(json.dumps(site))
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    for name, text in (("solver.sh", "echo solved $1 with FROM\n"), ("Makefile", SED), ("old.log", "old")):
        (project / "src" / name).write_text(text)
    (project / "src/.hpcgenignore").write_text("*.log\n")
    own = {
        "name": "own",
        "title": "our solver",
        "blocks": {"debian": {}},
        "run": {"command": ["solver", "x y"], "mpi": False},
    }
    own |= {"copy": [{"from": "src", "to": "/app"}], "build": {"commands": ["make"]}}
    (project / "hpcgen.yaml").write_text(json.dumps(own))
    here = Tool({**testbed_env, "HPCGEN_RECORDS": str(tmp_path / "records"), "BUILDAH_ISOLATION": "chroot"})
    image = str(tmp_path / "image") if engine == "ch-image" else "localhost/own:1"
    words = [sys.executable, "-m", "hpcgen", "--collection", str(tmp_path / "ours")]
    try:
        here.run([*words, "build", "--site", "here", "--engine", engine, "-o", image], cwd=project)
        seen = "ls /app && solver 'x y'"
        if engine == "ch-image":
            said = here.run(["ch-run", image, "--set-env", "--", "sh", "-c", seen]).stdout
        else:
            said = Buildah(here.env).exec(image, ["sh", "-c", seen]).stdout
    finally:
        here.run(["buildah", "rmi", "localhost/own:1"], check=False)
    assert said.split("\n") == ["Makefile", "solver", "solver.sh", "solved x y with make", ""]
