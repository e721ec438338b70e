"""The self-test at the end of a build: what it runs, what it leaves, and how each build script leaves it out."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpcgen.blocks.steps import Test as Check
from hpcgen.core.model.stack import Copied
from hpcgen.kit.folder import read_kit
from hpcgen.recipe.selftest import selftest_script
from tests.conftest import GOLDEN


def run(tmp_path: Path, *tests: Check, build: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "selftest.sh"
    plan = read_kit(GOLDEN / "workstation" / "mpi-hello").plan
    script.write_text(selftest_script(plan, [("block 1", list(tests))]))
    (tmp_path / "tmp").mkdir(exist_ok=True)
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), **variables}
    command = ["/bin/sh", str(script), *(["--build"] if build else [])]
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_build_tests_what_needs_no_device(tmp_path: Path) -> None:
    done = run(tmp_path, Check("works", "echo good", expect="good"), Check("on a device", "false", device="/dev/null"))
    assert done.stdout.splitlines() == [
        "ok       block 1: works",
        "skipped  block 1: on a device: not while building",
        "1 passed, 0 failed, 1 skipped",
    ]
    assert done.returncode == 0


def test_a_build_ends_where_a_test_fails(tmp_path: Path) -> None:
    done = run(tmp_path, Check("broken", "echo bad; exit 3"))
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == ["FAILED   block 1: broken: status 3", "         | bad"]


def test_a_build_has_nothing_of_the_tests_in_its_image(tmp_path: Path) -> None:
    written = 'touch "$HOME/settings" "$(mktemp)"; echo "$PYTHONDONTWRITEBYTECODE"'
    assert run(tmp_path, Check("writes", written, expect="1"), HOME=str(tmp_path / "home")).returncode == 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["selftest.sh", "tmp"]


def test_a_home_that_cannot_be_written_to_keeps_no_caches(tmp_path: Path) -> None:
    """As in a read-only image: /dev/null is not a folder, not even root's."""
    written = Check("caches", 'touch "$XDG_CACHE_HOME/compiled"; echo "$XDG_CACHE_HOME"', expect=str(tmp_path))
    done = run(tmp_path, written, build=False, HOME="/dev/null/home", XDG_CACHE_HOME="")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "ok       block 1: caches")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["selftest.sh", "tmp"]
    (tmp_path / "own").mkdir()
    own = Check("own", "echo $XDG_CACHE_HOME", expect=f"{tmp_path}/own")
    assert run(tmp_path, own, build=False, HOME="/dev/null/home", XDG_CACHE_HOME=f"{tmp_path}/own").returncode == 0


def test_a_build_argument_leaves_it_out(tmp_path: Path) -> None:
    done = run(tmp_path, Check("broken", "false"), HPCGEN_NOTEST="1")
    assert (done.returncode, done.stdout) == (0, "self-test left out: HPCGEN_NOTEST\n")
    assert run(tmp_path, Check("broken", "false"), HPCGEN_NOTEST="0").returncode == 1


# What glibc's ldd prints; the real one is asked in tests/containers/test_symbols.py.
LDD = """\
#!/bin/sh
printf '\\tlibmpi.so.12 => /opt/host-mpi/lib/libmpi.so.12 (0x00007f3b)\\n\\tlibc.so.6 => /lib/libc.so.6 (0x00007f3a)\\n'
printf 'undefined symbol: %s\\t(%s)\\n' MPI_Session_init "$2" PyLong_Type "$2" mpi_wait_ "$2" PMPI_Init /opt/other.so
"""


def test_a_host_library_that_lacks_what_a_program_calls_fails_by_name(tmp_path: Path) -> None:
    program = tmp_path / "opt/a tool/bin/tool"
    own, plain = tmp_path / "opt/mpich/bin/own", tmp_path / "opt/plain"
    for file, text in ((program, "libmpi.so.12"), (own, "libmpi.so.12"), (plain, "")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ldd").write_text(LDD)
    (tmp_path / "bin" / "ldd").chmod(0o755)
    plan = read_kit(GOLDEN / "workstation" / "mpi-hello").plan
    text = selftest_script(plan, [], ["/opt"]).replace(" /opt", f" {tmp_path}/opt")
    env = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(["/bin/sh", "-c", text], env=env, capture_output=True, text=True)
    lines = [
        f"{program} needs {symbol}, which /opt/host-mpi/lib/libmpi.so.12 does not have"
        for symbol in ("MPI_Session_init", "mpi_wait_")
    ]
    assert done.stdout.splitlines() == [
        f"FAILED   mpich 4.3.2: symbols: {lines[0]}",
        *(f"         | {line}" for line in lines),
        "0 passed, 1 failed, 0 skipped",
    ]
    assert (done.returncode, done.stderr) == (1, "")


def serial_program_in(tmp_path: Path, *, mpi: bool = True, command: list[str] | None = None) -> str:
    """What the self-test says of a stack whose program, a copy of a program of this machine, is linked with no MPI."""
    plan = read_kit(GOLDEN / "workstation" / "mpi-hello").plan
    program = tmp_path / "app" / "solver"
    program.parent.mkdir(exist_ok=True)
    program.write_bytes(Path("/bin/true").read_bytes())
    run = replace(plan.stack.run, command=command or ["/app/solver"], mpi=mpi)
    stack = replace(plan.stack, run=run, copy=[Copied(from_=".", to="/app")])
    text = selftest_script(replace(plan, stack=stack), []).replace("/app/", f"{tmp_path}/app/")
    return subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True).stdout


def test_a_program_of_a_job_over_mpi_that_links_none_ends_the_build(tmp_path: Path) -> None:
    said = f"{tmp_path}/app/solver is linked with no MPI"
    assert said in serial_program_in(tmp_path)
    assert said in serial_program_in(tmp_path, command=["bash", "-c", 'exec /app/solver "$HPCGEN_TASK"'])
    assert "FAILED" not in serial_program_in(tmp_path, mpi=False)
    assert "FAILED" not in serial_program_in(tmp_path, command=["python3", "/app/solver"])
    assert f"{tmp_path}/app/other is not in the image" in serial_program_in(tmp_path, command=["/app/other"])


def test_a_script_and_a_program_with_mpi_in_it_are_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app/run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "app/static").write_bytes(Path("/bin/true").read_bytes() + b"\0MPI_Init\0")
    assert "FAILED" not in serial_program_in(tmp_path, command=["/app/run.sh"])
    assert "FAILED" not in serial_program_in(tmp_path, command=["/app/static"])


ENGINE = """\
#!/bin/sh
printf '%s\\n' "$@" >> "$TOLD"
case "$1" in
    ch-convert | -i) for last; do :; done; mkdir "$last" ;;
    build) case "$0" in */singularity) for word; do case $word in *.partial) mkdir "$word" ;; esac; done ;; esac ;;
esac
"""
ARGUMENT = ["--build-arg", "HPCGEN_NOTEST=1"]


@pytest.mark.parametrize(
    ("site", "words"), [("workstation", ARGUMENT), ("supermuc", ARGUMENT), ("hlrs-testbed", ["--notest"])]
)
def test_every_build_script_can_leave_it_out(tmp_path: Path, site: str, words: list[str]) -> None:
    for name in ("docker", "ch-image", "ch-convert", "singularity"):
        (tmp_path / name).write_text(ENGINE)
        (tmp_path / name).chmod(0o755)
    told = tmp_path / "told"
    script = GOLDEN / site / "mpi-hello" / "build.sh"

    def build(*given: str, **variables: str) -> list[str]:
        told.write_text("")
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TOLD": str(told), **variables}
        done = subprocess.run(["bash", script, *given, "image"], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return told.read_text().splitlines()

    def has(lines: list[str]) -> bool:
        return any(lines[index : index + len(words)] == words for index in range(len(lines)))

    assert not has(build())
    assert not has(build(HPCGEN_NOTEST="0"))
    assert has(build("--notest"))
    assert has(build(HPCGEN_NOTEST="1"))


def test_what_the_shell_of_a_test_expands_is_clean_for_shellcheck(tmp_path: Path) -> None:
    assert run(tmp_path, Check("path", 'echo "${HOME:-}" "$PATH"', expect="/")).returncode == 0
    words = [Path(sysconfig.get_path("scripts")) / "shellcheck", "--norc", tmp_path / "selftest.sh"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
