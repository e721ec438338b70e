"""``hpcgen install`` and ``uninstall``: what is written below a prefix, that it starts what it says, and goes again.

``ch-run`` is a small program here that starts the command itself; the container tier has real images.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpcgen.core.errors import OutputError, PolicyError
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.writing import KitFile
from hpcgen.running.image_job import ImageJob
from hpcgen.running.install.files import InstalledCommand, devcontainer_text, files_of
from hpcgen.running.install.manifest import InstallRecord, manifest_path
from hpcgen.running.install.prefix import install as write
from hpcgen.running.install.prefix import uninstall
from tests.conftest import GOLDEN
from tests.conftest import Command as Hpcgen
from tests.unit.launch.test_command import planned

CH_RUN = """\
#!/bin/bash
printf '%s\\n' "$@" > "$(dirname "$0")/words"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""
STACK = {"name": "mpi-hello", "title": "Ours {", "blocks": {"rank_test": {}, "mpi": {}}}
Install = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image of mpi-hello for SuperMUC-NG in a folder, in which nothing is but its kit."""
    made = tmp_path / "images" / "it's $one"
    shutil.copytree(GOLDEN / "supermuc" / "mpi-hello", made / "opt/hpcgen/kit")
    (made / "ch").mkdir()
    return made


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where ch-run is, which keeps the words that it was given."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "ch-run").write_text(CH_RUN)
    (folder / "ch-run").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    return tmp_path / "my 'apps' $x"


@pytest.fixture
def install(hpcgen: Hpcgen, image: Path, prefix: Path, programs: Path) -> Install:
    """``install(words)``: the image, by commands that every machine has."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        named = () if "--command" in words else ("--command", "sh", "--command", "show=/usr/bin/printf")
        return hpcgen("install", str(image), "--prefix", str(prefix), *named, *words)

    return run


def own_stack(tmp_path: Path, **more: Any) -> tuple[str, str]:
    """A collection with a stack mpi-hello of the user's own."""
    folder = tmp_path / "ours" / "recipes"
    folder.mkdir(parents=True, exist_ok=True)
    run = {"command": ["/opt/rank_test/bin/rank_test"], "gpus_per_node": 0}
    (folder / "mpi-hello.yaml").write_text(json.dumps({**STACK, "run": run, **more}))
    return "--collection", str(tmp_path / "ours")


def start(program: Path, *words: str | bytes, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([program, *words], capture_output=True, **more)


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


# What is started


def test_a_wrapper_passes_words_input_output_and_status_on(install: Install, prefix: Path, tmp_path: Path) -> None:
    done = install()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{prefix}/bin/sh", f"{prefix}/bin/show"]
    words = ["a b", "", "*", "two\nlines", "$HOME", "'\"\\", "-n", "é"]
    said = start(prefix / "bin/show", "%s|", *words, cwd=tmp_path)
    assert said.stdout.decode() == "".join(f"{word}|" for word in words), said.stderr
    data = bytes(range(256)) * 300
    assert start(prefix / "bin/sh", "-c", "cat", input=data).stdout == data
    assert start(prefix / "bin/sh", "-c", "exit 42").returncode == 42
    assert start(prefix / "bin/sh", "-c", "kill -TERM $$").returncode == -15
    assert start(prefix / "bin/sh", "-c", "echo aside >&2").stderr == b"aside\n"


def test_a_wrapper_becomes_the_program(install: Install, prefix: Path) -> None:
    """No shell stays between, so every signal and status is the program's own."""
    install()
    process = subprocess.Popen([prefix / "bin/sh", "-c", "echo $$; cat"], stdin=-1, stdout=-1, text=True)
    assert process.stdout is not None
    assert int(process.stdout.readline()) == process.pid
    process.communicate("", timeout=20)


def test_threads_and_ranks_are_the_callers(install: Install, prefix: Path) -> None:
    install()
    script = 'echo "${OMP_NUM_THREADS-none} ${HPCGEN_RANKS-none} $FI_PROVIDER"'
    clean = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "HPCGEN_RANKS")}
    assert start(prefix / "bin/sh", "-c", script, env=clean).stdout == b"none none psm2\n"
    assert start(prefix / "bin/sh", "-c", script, env={**clean, "OMP_NUM_THREADS": "3"}).stdout == b"3 none psm2\n"


def test_the_hosts_mpi_is_bound_as_in_a_job(install: Install, prefix: Path, programs: Path, tmp_path: Path) -> None:
    install()
    start(prefix / "bin/sh", "-c", "true", cwd=tmp_path)
    words = (programs / "words").read_text().splitlines()
    assert "/lrz/sys/.:/lrz/sys" in words and f"{tmp_path}:/mnt/0" in words
    assert any(word.startswith("LD_LIBRARY_PATH=/dss/") for word in words)
    assert "mpiexec" not in words


def test_an_image_that_is_gone_is_named(install: Install, prefix: Path, image: Path) -> None:
    install()
    image.rename(image.with_name("elsewhere"))
    done = start(prefix / "bin/sh", "-c", "true")
    assert (done.returncode, done.stderr.decode()) == (66, f"start: there is no image {image}\n")


# Who names the commands


def test_the_users_stack_names_them(hpcgen: Hpcgen, image: Path, prefix: Path, programs: Path, tmp_path: Path) -> None:
    words = own_stack(tmp_path, commands=["show=/usr/bin/printf", "sh"])
    done = hpcgen(*words, "install", str(image), "--prefix", str(prefix))
    assert done.returncode == 0, done.stderr
    assert tree(prefix / "bin") == ["sh", "show"]


def test_without_commands_it_is_the_program_of_the_job(
    hpcgen: Hpcgen, image: Path, prefix: Path, programs: Path
) -> None:
    done = hpcgen("install", str(image), "--prefix", str(prefix))
    assert done.returncode == 0, done.stderr
    assert "start rank_test" not in (prefix / "bin/rank_test").read_text()
    assert "/opt/rank_test/bin/rank_test" in (prefix / "bin/rank_test").read_text()


def test_a_strangers_image_names_no_commands(hpcgen: Hpcgen, image: Path, prefix: Path, programs: Path) -> None:
    path = image / "opt/hpcgen/kit/plan.json"
    plan = json.loads(path.read_text())
    plan["stack"] |= {"name": "foreign", "commands": ["sudo", "ls=/opt/evil"]}
    path.write_text(json.dumps(plan))
    done = hpcgen("install", str(image), "--prefix", str(prefix))
    assert done.returncode == 3 and not prefix.exists()
    assert "the image's own record must not decide" in done.stderr
    assert "--command sudo --command ls=/opt/evil; or --stack FILE, or --trust-image" in done.stderr
    assert hpcgen("install", str(image), "--prefix", str(prefix), "--trust-image").returncode == 0
    assert tree(prefix / "bin") == ["ls", "sudo"]


@pytest.mark.parametrize("word", ["../evil", "a b", "-x", "a=b", "a=/b c", "", "x" * 65, "a\n"])
def test_names_that_are_none_are_refused(install: Install, prefix: Path, word: str) -> None:
    done = install("--command", word)
    assert done.returncode == 3 and "cannot be a command" in done.stderr
    assert not prefix.exists()


def test_two_commands_of_one_name_are_refused(install: Install) -> None:
    done = install("--command", "sh", "--command", "sh=/bin/bash")
    assert done.returncode == 3 and "two commands would be called sh" in done.stderr


# What is there, and whose it is


def test_uninstall_leaves_nothing(install: Install, hpcgen: Hpcgen, prefix: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    install()
    assert tree(prefix) == [
        *("bin/sh", "bin/show", "modulefiles/mpi-hello/1", "modulefiles/mpi-hello/1.lua"),
        *("share/hpcgen/mpi-hello/installed.json", "share/hpcgen/mpi-hello/start"),
    ]
    done = hpcgen("uninstall", "--prefix", str(prefix))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 6
    assert sorted(tmp_path.rglob("*")) == before


def test_uninstall_leaves_what_others_have_there(install: Install, hpcgen: Hpcgen, prefix: Path) -> None:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "mine").write_text("x")
    (prefix / "modulefiles").mkdir()
    install()
    install("--name", "second", "--command", "other=/bin/sh")
    assert hpcgen("uninstall", "mpi-hello", "--prefix", str(prefix)).returncode == 0
    assert tree(prefix / "bin") == ["mine", "other"]
    assert hpcgen("uninstall", "--prefix", str(prefix)).returncode == 0
    assert sorted(str(path.relative_to(prefix)) for path in prefix.rglob("*")) == ["bin", "bin/mine", "modulefiles"]


def test_files_of_others_are_refused_all_at_once(install: Install, prefix: Path) -> None:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "sh").write_text("mine")
    (prefix / "bin" / "show").symlink_to("/bin/true")
    for words in ((), ("--force",)):
        done = install(*words)
        assert done.returncode == 7 and done.stderr.count("already exists, and hpcgen did not write it") == 2
    assert tree(prefix) == ["bin/sh", "bin/show"]
    assert (prefix / "bin" / "sh").read_text() == "mine"


def test_a_command_of_another_stack_is_refused(install: Install, prefix: Path) -> None:
    install()
    done = install("--name", "second")
    assert done.returncode == 7 and f"{prefix}/bin/sh belongs to mpi-hello" in done.stderr
    assert not (prefix / manifest_path("second")).exists()


def test_changed_files_stay_without_force(install: Install, hpcgen: Hpcgen, prefix: Path) -> None:
    install()
    (prefix / "bin" / "sh").write_text("changed")
    for done in (install(), hpcgen("uninstall", "--prefix", str(prefix))):
        assert done.returncode == 7 and f"{prefix}/bin/sh was changed after it was installed" in done.stderr
    assert (prefix / "bin" / "sh").read_text() == "changed" and (prefix / "bin" / "show").exists()
    assert install("--force").returncode == 0
    assert (prefix / "bin" / "sh").read_text() != "changed"
    (prefix / "bin" / "sh").write_text("changed")
    assert hpcgen("uninstall", "--prefix", str(prefix), "--force").returncode == 0
    assert not prefix.exists()


def test_another_install_replaces_the_first_as_a_whole(install: Install, prefix: Path) -> None:
    install()
    assert install("--command", "other=/bin/sh").returncode == 0
    assert tree(prefix / "bin") == ["other"]
    record = json.loads((prefix / manifest_path("mpi-hello")).read_text())
    assert (record["install"], record["commands"]) == (1, ["other"])


def test_what_cannot_be_written_leaves_the_older_files(install: Install, prefix: Path) -> None:
    install()
    before = {path: (prefix / path).read_bytes() for path in tree(prefix)}
    (prefix / "share" / "jupyter").write_text("no folder")
    done = install("--command", "other=/bin/sh", "--kernel")
    assert done.returncode != 0
    (prefix / "share" / "jupyter").unlink()
    assert {path: (prefix / path).read_bytes() for path in tree(prefix)} == before


def test_what_is_there_is_named_if_it_is_not_one(install: Install, hpcgen: Hpcgen, prefix: Path) -> None:
    nothing = hpcgen("uninstall", "--prefix", str(prefix))
    assert nothing.returncode == 4 and f"nothing is installed in {prefix}" in nothing.stderr
    install()
    install("--name", "second", "--command", "other=/bin/sh")
    several = hpcgen("uninstall", "--prefix", str(prefix))
    assert several.returncode == 4 and "expected: a NAME: mpi-hello, second" in several.stderr
    misspelt = hpcgen("uninstall", "secnd", "--prefix", str(prefix))
    assert misspelt.returncode == 4 and "did you mean second?" in misspelt.stderr


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "bin/../../x", "a\nb"])
def test_a_record_leads_nowhere_else(install: Install, hpcgen: Hpcgen, prefix: Path, path: str) -> None:
    install()
    manifest = prefix / manifest_path("mpi-hello")
    record = json.loads(manifest.read_text())
    record["files"][0]["path"] = path
    manifest.write_text(json.dumps(record))
    (prefix.parent / "outside").write_text("theirs")
    done = hpcgen("uninstall", "--prefix", str(prefix), "--force")
    assert done.returncode == 3 and "is not understood" in done.stderr
    assert (prefix.parent / "outside").read_text() == "theirs" and (prefix / "bin/sh").exists()


def test_json(install: Install, hpcgen: Hpcgen, prefix: Path, image: Path) -> None:
    said = json.loads(install("--json").stdout)
    assert (said["prefix"], said["name"], said["image"]) == (str(prefix), "mpi-hello", str(image))
    assert said["commands"] == ["sh", "show"] and {"bin/sh", "bin/show"} < {each["path"] for each in said["files"]}
    gone = json.loads(hpcgen("uninstall", "--prefix", str(prefix), "--json").stdout)
    assert gone["name"] == "mpi-hello" and f"{prefix}/bin/sh" in gone["removed"]


# Kernel, module, dev container


def test_a_kernel_needs_python(install: Install, prefix: Path) -> None:
    done = install("--kernel")
    assert done.returncode == 6 and "there is no Python in the image" in done.stderr
    assert not prefix.exists()


def made(plan: Plan, image: str, **more: Any) -> tuple[dict[str, str], ImageJob]:
    job = ImageJob(plan, {"PATH": "/opt/python/bin:/usr/bin"}, image, "podman" if ":" in image else "squashfs")
    files = files_of(job, Path("/apps"), "mine", [InstalledCommand("train", "/opt/a b/train")], **more)
    return {path: file.text for path, file in files.items()}, job


def test_the_kernel_binds_the_folder_of_its_connection_file() -> None:
    files, _ = made(planned("supermuc", "tf-horovod"), "/images/a.sqfs", kernel=True)
    spec = json.loads(files["share/jupyter/kernels/mine/kernel.json"])
    assert spec["argv"] == ["/apps/share/hpcgen/mine/kernel", "{connection_file}"]
    kernel = files["share/hpcgen/mine/kernel"]
    assert '-b "$connection":/srv' in kernel
    assert kernel.endswith('exec "${container[@]}" python3 -m ipykernel_launcher -f "/srv/${1##*/}"\n')
    assert "prepend-path JUPYTER_PATH /apps/share/jupyter" in files["modulefiles/mine/2.15.1"]
    assert "exec /apps/share/hpcgen/mine/start '/opt/a b/train' \"$@\"" in files["bin/train"]


def test_a_dev_container_is_started_as_the_site_does() -> None:
    plan = planned("workstation", "mpi-hello")
    plan = replace(plan, engine="podman", site=replace(plan.site, environment={"A": "b c"}))
    data = json.loads(devcontainer_text(made(plan, "localhost/hello:1")[1]))
    assert data == {
        "name": "mpi-hello for workstation",
        "image": "localhost/hello:1",
        "containerEnv": {"A": "b c"},
        "runArgs": ["--security-opt", "label=disable", "--ipc=host"],
    }
    with pytest.raises(PolicyError, match="dev containers by Docker or Podman"):
        devcontainer_text(made(planned("supermuc", "mpi-hello"), "/images/a.sqfs")[1])


def test_a_modulefile_quotes_what_a_stack_says() -> None:
    plan = planned("supermuc", "mpi-hello")
    evil = 'a } [exec rm] $x "; \\'
    plan = replace(plan, stack=replace(plan.stack, title=evil))
    files = made(plan, "/images/a.sqfs")[0]
    text = files["modulefiles/mine/1"]
    assert 'whatis("mine: a } [exec rm] $x \\"; \\\\")' in files["modulefiles/mine/1.lua"]
    assert r"module-whatis mine:\ a\ \}\ \[exec\ rm\]\ \$x\ \"\;\ \\" in text


def test_an_engine_that_the_launcher_starts_makes_no_commands() -> None:
    plan = replace(planned("supermuc", "mpi-hello"), engine="pyxis")
    with pytest.raises(PolicyError, match="pyxis starts containers with an option of srun"):
        made(plan, "/images/a.sqfs")


def test_a_dev_container_goes_with_the_rest(tmp_path: Path) -> None:
    place = tmp_path / "project/.devcontainer/mine/devcontainer.json"
    (tmp_path / "project").mkdir()
    about = InstallRecord(
        hpcgen="1", name="mine", version="1", stack="a", site="b", engine="podman", image="c", commands=[], files=[]
    )
    files = {"bin/x": KitFile("x")}
    done = write(tmp_path / "apps", about, files, {place: "{}"})
    assert place.read_text() == "{}"
    place.write_text("changed")
    with pytest.raises(OutputError, match="was changed after it was installed"):
        uninstall(tmp_path / "apps", done.name)
    assert (tmp_path / "apps/bin/x").exists()
    assert place in uninstall(tmp_path / "apps", force=True)[1]
    write(tmp_path / "apps", about, files, {place: "{}"})
    write(tmp_path / "apps", about, files)
    uninstall(tmp_path / "apps")
    assert [path.name for path in tmp_path.iterdir()] == ["project"] and not list((tmp_path / "project").iterdir())


def test_a_colon_in_the_prefix_is_refused(hpcgen: Hpcgen, image: Path, programs: Path, tmp_path: Path) -> None:
    done = hpcgen("install", str(image), "--prefix", "col:on", "--command", "sh")
    assert done.returncode == 3 and "contains a colon, which separates folders in PATH" in done.stderr
    assert not (tmp_path / "col:on").exists()


def at(number: int, install: Callable[[], Any]) -> None:
    """Run it in a fork of this process, killed as the rename of that number begins."""
    if (child := os.fork()) == 0:
        seen = []

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event == "os.rename":
                seen.append(event)
                if len(seen) == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            install()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.parametrize("number", range(1, 11))
def test_after_a_kill_the_same_command_installs_and_no_older_command_stays(tmp_path: Path, number: int) -> None:
    about = InstallRecord(
        hpcgen="1", name="mine", version="1", stack="a", site="b", engine="podman", image="c", commands=[], files=[]
    )
    peace, prefix = tmp_path / "peace", tmp_path / "apps"
    old = {"bin/both": KitFile("1"), "bin/old": KitFile("1"), "modulefiles/mine/1": KitFile("1")}
    new = {"bin/both": KitFile("2"), "bin/new": KitFile("2"), "modulefiles/mine/2": KitFile("2")}
    places = {place: (tmp_path / place / ".devcontainer/mine/devcontainer.json") for place in ("project", "other")}
    for each in (peace, prefix):
        write(each, about, old, {places["project"]: "{}"})
        if each == prefix:
            at(number, lambda: write(prefix, about, new, {places["other"]: "{}"}))
        write(each, about, new, {places["other"]: "{}"})
        assert not places["project"].exists() and places["other"].exists()
    assert tree(prefix) == tree(peace)
    for path in tree(prefix):
        assert (prefix / path).read_bytes() == (peace / path).read_bytes()
    uninstall(prefix)
    assert not prefix.exists()


def test_uninstall_after_a_killed_install_removes_all(tmp_path: Path) -> None:
    about = InstallRecord(
        hpcgen="1", name="mine", version="1", stack="a", site="b", engine="podman", image="c", commands=[], files=[]
    )
    write(tmp_path / "apps", about, {"bin/old": KitFile("1")})
    at(4, lambda: write(tmp_path / "apps", about, {"bin/new": KitFile("2")}))
    assert not (tmp_path / "apps" / manifest_path("mine")).exists()
    uninstall(tmp_path / "apps", "mine")
    assert list(tmp_path.iterdir()) == []


DAMAGE = ["", "{", "[1]", '{"install": 1}', '{"install": 0}', "\xff" * 9]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_record_stands_in_nobodys_way(install: Install, hpcgen: Hpcgen, prefix: Path, damage: str) -> None:
    install("--name", "first", "--command", "one=/bin/true", "--command", "gone=/bin/true")
    record = prefix / manifest_path("first")
    whole = record.read_text()
    record.write_text(damage)
    other = install("--name", "other", "--command", "two=/bin/true")
    assert other.returncode == 0 and str(record) in other.stderr
    taken = install("--name", "third", "--command", "one=/bin/false")
    assert taken.returncode == 7 and "already exists, and hpcgen did not write it" in taken.stderr
    refused = hpcgen("uninstall", "first", "--prefix", str(prefix))
    assert refused.returncode == 3 and "hpcgen install" in refused.stderr
    # The remedy: the same again. What it no longer has goes, too.
    again = install("--name", "first", "--command", "one=/bin/true")
    assert again.returncode == 0, again.stderr
    assert not (prefix / "bin/gone").exists()
    assert json.loads(record.read_text())["files"] != json.loads(whole)["files"]
    for name in ("first", "other"):
        assert hpcgen("uninstall", name, "--prefix", str(prefix)).returncode == 0
    assert tree(prefix) == []


def test_a_record_of_a_newer_release_is_not_written_over(install: Install, prefix: Path) -> None:
    install()
    record = prefix / manifest_path("mpi-hello")
    newer = record.read_text().replace('"install": 1', '"install": 999')
    record.write_text(newer)
    done = install()
    assert done.returncode == 3 and "use a newer hpcgen here" in done.stderr and record.read_text() == newer
