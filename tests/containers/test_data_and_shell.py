"""Data of the machine, a project's own files live, and a shell on a terminal, in images as each engine has them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from bare import without_servers, write_bare_base
from container_tools import REPORTS, BaseImage, Run, Sid, SidHpcgen, Tool, run
from test_rendered_kits import BASE_IN_SID, CERTIFICATES, site_profile

pytestmark = pytest.mark.slow
STACK = {
    "name": "reader",
    "title": "what reads data",
    "site": "here",
    "blocks": {"debian": {}},
    "copy": [{"from": "app", "to": "/app"}],
    "run": {"command": ["/app/read"], "mpi": False, "binds": ["results:/results"]},
}
FILES = 200_000
READ = "#!/bin/sh\necho first; cat /mnt/1/rounds; cp /mnt/1/rounds /results/copied\n"
BUILT = {
    "podman": [["build", "--engine", "podman", "-o", "localhost/reader:1"]],
    "ch-image": [["build", "--engine", "ch-image", "-o", "image"], ["convert", "image", "image.sqfs"]],
    "apptainer": [["build", "--engine", "apptainer", "-o", "image.sif"], ["convert", "image.sif", "folder"]],
}
IMAGES = [
    *(("podman", "podman", "podman:localhost/reader:1"), ("ch-image", "charliecloud", "./image")),
    *(("ch-image", "charliecloud", "./image.sqfs"), ("apptainer", "apptainer", "./image.sif")),
    ("apptainer", "apptainer", "./folder"),
]


class Person:
    """Somebody in the project's folder, on this machine or in the sid root: starts any command there."""

    def __init__(self, folder: Path, python: str, start: Callable[..., Run]) -> None:
        self.folder, self.start, self.hpcgen = folder, start, (python, "-m", "hpcgen")

    def types(self, *words: str, check: bool = True) -> str:
        return self.start([*self.hpcgen, *words], check=check).stdout

    def on_a_terminal(self, typed: str, *words: str) -> str:
        """What a command says and what is typed into it, on a terminal."""
        line = shlex.join([*self.hpcgen, *words])
        return self.start(
            ["sh", "-c", f"printf {shlex.quote(typed)} | script -qec {shlex.quote(line)} /dev/null"]
        ).stdout

    def refused(self, *words: str) -> str:
        done = self.start([*self.hpcgen, *words], check=False)
        assert done.returncode == 3, done.stdout
        return done.stdout


def project(folder: Path, facts: dict[str, Any], base: BaseImage) -> Path:
    write_bare_base(folder)
    profile = without_servers(site_profile(facts, base))
    (folder / "app").mkdir(parents=True)
    (folder / "app/read").write_text(READ)
    (folder / "app/read").chmod(0o755)
    for name in ("site_profiles", "data", "results"):
        (folder / name).mkdir(parents=True)
    (folder / "data/rounds").write_text("7\n")
    (folder / "config.yaml").write_text("")
    (folder / "site_profiles/here.yaml").write_text(yaml.safe_dump(profile))
    (folder / "hpcgen.yaml").write_text(yaml.safe_dump(STACK))
    return folder


@pytest.fixture(scope="module")
def persons(
    machine_facts: dict[str, Any],
    base_image: BaseImage,
    testbed_env: dict[str, str],
    sid: Sid,
    sid_hpcgen: SidHpcgen,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], Person]]:
    """By the name of what builds; what a person built is there."""
    there: dict[str, Person] = {}

    def make(builder: str) -> Person:
        folder = project(tmp_path_factory.mktemp(builder) / "p", machine_facts, base_image)
        if builder == "apptainer":
            binds = [(folder, "/p"), (base_image.archive.parent, BASE_IN_SID), (CERTIFICATES, str(CERTIFICATES))]
            own = {"HPCGEN_COLLECTIONS": "/p", "HPCGEN_CONFIG": "/p/config.yaml", "HOME": "/p"}
            sid.folder(folder)
            return Person(
                folder,
                "python3",
                lambda words, **also: sid_hpcgen.starts(words, binds=binds, env=own, cwd="/p", **also),
            )
        config = {"HPCGEN_CONFIG": str(folder / "config.yaml"), "HPCGEN_RECORDS": str(folder / "records")}
        own = {"HPCGEN_COLLECTIONS": str(folder), **config, "BUILDAH_ISOLATION": "chroot"}
        here = Tool({**testbed_env, **own})
        return Person(folder, sys.executable, lambda words, **also: here.run(words, cwd=folder, **also))

    def person(builder: str) -> Person:
        if builder not in there:
            there[builder] = make(builder)
            for words in BUILT[builder]:
                print(there[builder].types(*words))
        return there[builder]

    yield person


@pytest.mark.parametrize(("builder", "engine", "image"), IMAGES)
def test_data_is_seen(persons: Callable[[str], Person], builder: str, engine: str, image: str) -> None:
    user = persons(builder)
    run = ("run", image, "--engine", engine)

    def inside(script: str, *words: str) -> Sequence[str]:
        return (*run, *words, "--", "sh", "-c", script)

    said = user.types(*run, "--bind", "data:/mnt/1")
    assert said.endswith("first\n7\n") and (user.folder / "results/copied").read_text() == "7\n", said
    assert "there is no" in user.refused(*run, "--bind", "dota:/mnt/1")
    assert "would hide /usr" in user.refused(*run, "--bind", "data:/usr/share")
    absent, changed = inside("cat /some/where/rounds", "--bind", "data:/some/where"), "echo 8 > /mnt/1/rounds"
    if engine == "charliecloud":
        assert "this one may not have /some/where" in user.refused(*absent)
        assert "cannot bind a folder read-only" in user.refused(*run, "--bind", "data:/mnt/1:ro")
    else:
        assert user.types(*absent).endswith("7\n")
        assert "Read-only file system" in user.types(*inside(changed, "--bind", "data:/mnt/1:ro"), check=False)
    config = user.folder / "config.yaml"
    where = "/p" if builder == "apptainer" else user.folder
    config.write_text(yaml.safe_dump({"binds": {"here": [f"{where}/data:/mnt/2"]}}))
    try:
        assert user.types(*inside("cat /mnt/2/rounds")).endswith("7\n")
    finally:
        config.write_text("")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200,000 small files, packed by the command; how long that took is reported."""
    folder = tmp_path_factory.mktemp("packed")
    for number in range(FILES):
        path = folder / "many" / f"{number % 400:03}" / str(number)
        if number < 400:
            path.parent.mkdir(parents=True)
        path.write_text(f"{number} " * (number % 900))
    command = [sys.executable, "-m", "hpcgen", "-q", "data", "pack", "many", "-o", "many.sqfs", "--json"]
    made = json.loads(run(command, cwd=folder).stdout)
    assert made["files"] == FILES
    sizes = f"{made['bytes']} bytes, {made['packed_bytes']} packed by {made['compressor']}"
    REPORTS.append(f"data pack: {FILES} files, {sizes}, in {made['seconds']} s")
    return folder / "many.sqfs"


@pytest.mark.parametrize(("builder", "engine", "image"), IMAGES)
def test_packed_data_is_seen(
    persons: Callable[[str], Person], packed: Path, builder: str, engine: str, image: str
) -> None:
    user = persons(builder)
    shutil.copy(packed, user.folder / "many.sqfs")
    script = "find /mnt/1 -type f | wc -l; head -c 12 /mnt/1/123/80523; echo; grep ' /mnt/1 ' /proc/self/mounts"
    began = time.monotonic()
    words = ("run", image, "--engine", engine, "--bind", "many.sqfs:/mnt/1")
    said = user.types(*words, "--", "sh", "-c", script).splitlines()
    REPORTS.append(f"packed data in {image}, all listed: {time.monotonic() - began:.1f} s; {said[-1]}")
    assert said[-3:-1] == [str(FILES), "80523 80523 "], said
    assert "squashfuse" in said[-1] or "squashfs" in said[-1]
    assert f"/tmp/hpcgen-{os.getuid()}" not in Path("/proc/self/mounts").read_text()
    assert not [*Path("/tmp").glob(f"hpcgen-{os.getuid()}-*")]


@pytest.mark.parametrize(("builder", "engine", "image"), IMAGES)
def test_a_shell_and_the_files_live(persons: Callable[[str], Person], builder: str, engine: str, image: str) -> None:
    user = persons(builder)
    code = user.folder / "app/read"
    code.write_text("#!/bin/sh\necho second\n")
    try:
        assert user.types("run", image, "--engine", engine, "--live").endswith("second\n")
        typed = "test -t 0 && echo ter''minal; cat /etc/debian_version; pwd; /app/read; exit\n"
        said = user.on_a_terminal(typed, "shell", image, "--engine", engine, "--live")
        print(said)
        assert "\nterminal" in said and "\n12." in said and "\nsecond" in said and "exit ends it" in said
    finally:
        code.write_text(READ)
    words = ("shell", image, "--engine", engine, "--", "sh", "-c", "echo there; exit 3")
    assert user.start([*user.hpcgen, *words], check=False).returncode == 10
