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


def test_a_program_is_compiled_and_started(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, ch_image: ChImage, tmp_path: Path
) -> None:
    """One installs into the prefix, one leaves it empty so that its folder is kept, a project stays where it is."""
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
        own = str(project(tmp_path / "project"))
        for name, file in (
            ("own", "application/bin/solver"),
            ("whole", "application/src/solver"),
            (own, "../app/solver"),
        ):
            kit, image = tmp_path / f"kit-{Path(name).stem}", tmp_path / f"image-{Path(name).stem}"
            render_by_command(ours, kit, "--site", "here", "--stack", name, "--format", "charliecloud")
            # With a cache the later images compile their program alone.
            ch_image.run(["bash", kit / "build.sh", image], cwd=tmp_path)
            assert (image / "opt" / file).is_file()
            assert not (image / "opt" / "hpcgen" / "build").exists()
            words = [sys.executable, "-m", "hpcgen", "--collection", str(ours), "run", str(image)]
            done = subprocess.run(words, env=ch_image.env, capture_output=True, text=True, cwd=tmp_path, check=False)
            assert "solved x y with make" in done.stdout, done.stdout + done.stderr
        assert sorted(each.name for each in (image / "app").iterdir()) == ["Makefile", "solver", "solver.c"]
