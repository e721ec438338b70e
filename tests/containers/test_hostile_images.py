"""An image from a stranger, started by the real engines: what its record asks of the host does not happen.

The same image with ``--trust-image`` shows that it would have: two programs of the record's, one found by PATH, one
loaded before the engine's own libraries, each leave a file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bare import without_servers, write_bare_base
from container_tools import BaseImage, ChImage, Run, Sid, SidHpcgen
from test_rendered_kits import BASE_IN_SID, site_profile

STACK = "name: plain\ntitle: a base alone\nblocks: {}\nrun: {command: [cat, /etc/os-release], mpi: false}\n"
LIBRARY = """\
#include <fcntl.h>
__attribute__((constructor)) static void start(void) { open("%s/loaded", O_CREAT | O_WRONLY, 0644); }
"""
RECORD = "opt/hpcgen/kit/plan.json"
SHOWN = "/srv"
"""A folder of the host with something in it; in the image it is empty."""


@pytest.fixture
def collection(tmp_path: Path, machine_facts: dict[str, Any], base_image: BaseImage) -> Path:
    """This machine's profile and a stack of the base alone."""
    folder = tmp_path / "c"
    for name in ("site_profiles", "recipes"):
        (folder / name).mkdir(parents=True)
    write_bare_base(folder)
    profile = without_servers(site_profile(machine_facts, base_image))
    (folder / "site_profiles" / "here.yaml").write_text(json.dumps(profile))
    (folder / "recipes" / "plain.yaml").write_text(STACK)
    return folder


def kit(collection: Path, format: str, engine: str) -> Path:
    """A kit of the stack, on a site that starts images by ``engine``."""
    profile = collection / "site_profiles" / "here.yaml"
    site = json.loads(profile.read_text())
    site["containers"]["preferred"] = engine
    profile.write_text(json.dumps(site))
    folder = collection.parent / "kit"
    command = [sys.executable, "-m", "hpcgen", "--collection", collection, "render", "--site", "here"]
    subprocess.run([*command, "--stack", "plain", "--format", format, "-o", folder], check=True)
    return folder


def make_hostile(image: Path, folder: Path, engine: str, seen: str) -> None:
    """Have the image's record ask for everything that a record can ask of a host.

    Parameters
    ----------
    folder: for what the record names.
    engine: the program in whose place another one is offered.
    seen: the folder's path as the host of the run sees it.
    """
    (folder / "bin").mkdir(parents=True)
    (folder / "shown").mkdir()
    (folder / "shown" / "secret").write_text("of the host\n")
    (folder / "loaded.c").write_text(LIBRARY % seen)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "evil.so", folder / "loaded.c"], check=True)
    program = folder / "bin" / engine
    program.write_text(f'#!/bin/sh\ntouch {seen}/started\nPATH=${{PATH#*:}} exec {engine} "$@"\n')
    program.chmod(0o755)
    record = json.loads((image / RECORD).read_text())
    path = f"{seen}/bin:/usr/local/bin:/usr/bin:/bin"
    record["site"]["environment"] = {"PATH": path, "LD_PRELOAD": f"{seen}/evil.so"}
    record["site"]["file_systems"] = {"all": {"kind": "other", "path": SHOWN, "bind": True}}
    (image / RECORD).write_text(json.dumps(record))


def marks(folder: Path) -> list[str]:
    """What ran on the host, and left its file."""
    return [name for name in ("started", "loaded") if (folder / name).exists()]


def refused_then_trusted(run: Any, evil: Path, seen: str) -> None:
    """``run(*words)``: hpcgen run IMAGE WORDS, with the collection in which the user's profile is."""
    look = ["--", "cat", f"{SHOWN}/secret"]
    plain: Run = run("--")
    assert plain.returncode == 0 and "Debian" in plain.stdout, plain.stdout
    assert "the image was built with another profile of here; yours is used" in plain.stdout
    assert marks(evil) == [], plain.stdout
    hidden: Run = run(*look)
    assert hidden.returncode != 0 and "of the host" not in hidden.stdout, hidden.stdout
    assert marks(evil) == [], hidden.stdout
    trusted: Run = run("--trust-image", *look)
    assert trusted.returncode == 0 and "of the host" in trusted.stdout, trusted.stdout
    told = trusted.stdout.split("of the host")[0]
    assert f"LD_PRELOAD={seen}/evil.so" in told and SHOWN in told, told
    assert marks(evil) == ["started", "loaded"], trusted.stdout


def test_charliecloud(collection: Path, ch_image: ChImage, tmp_path: Path) -> None:
    image, evil = tmp_path / "plain", tmp_path / "evil"
    ch_image.run(
        ["bash", kit(collection, "charliecloud", "charliecloud") / "build.sh", image],
        env={"HPCGEN_BUILD_OPTIONS": "--no-cache"},
    )
    make_hostile(image, evil, "ch-run", str(evil))
    show = ["unshare", "--mount", "sh", "-c", f'mount --bind "$0" {SHOWN} && exec "$@"', evil / "shown"]
    command = [*show, sys.executable, "-m", "hpcgen", "--collection", collection, "run", image]
    refused_then_trusted(lambda *words: ch_image.run([*command, *words], check=False), evil, str(evil))


def test_apptainer(collection: Path, sid: Sid, sid_hpcgen: SidHpcgen, base_image: BaseImage, tmp_path: Path) -> None:
    folder, evil = sid.folder(kit(collection, "singularity", "apptainer")), tmp_path / "evil"
    binds = [(tmp_path, "/t"), (base_image.archive.parent, BASE_IN_SID)]
    options = {"HPCGEN_ENGINE": "apptainer", "HPCGEN_BUILD_OPTIONS": "--sandbox"}
    sid.run(["bash", "build.sh", "plain"], binds=[(folder, "/kit"), *binds], cwd="/kit", env=options)
    make_hostile(folder / "plain", evil, "apptainer", "/t/evil")
    sid.folder(evil)
    os.chown(tmp_path, 1001, 1001)
    shown = [*binds, (evil / "shown", SHOWN)]
    command = ["--collection", "/t/c", "run", "/t/kit/plain"]
    refused_then_trusted(
        lambda *words: sid_hpcgen.run([*command, *words], binds=shown, cwd="/t", check=False), evil, "/t/evil"
    )
