"""A program of one's own: its source is pinned, its commands stay in their file, and what fails ends the build."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpcgen import api
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.lock import Lock
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.kit.lockfile.lock import parse_lock, sealed_text
from hpcgen.kit.sbom import cyclonedx
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from hpcgen.supply.pin.locking import collection_files
from hpcgen.supply.pin.wanted import wanted
from tests.helpers.locks import pins
from tests.unit.building_blocks.test_mpi import site
from tests.unit.building_blocks.test_standard_mpi import MPICH

CATALOG = Catalog()
ARCHIVE = {"source": "https://example.org/solver-1.2.tar.gz", "sha256": "a" * 64}
TREE = {"source": "https://example.org/group/solver.git", "commit": "c" * 40}
SCRIPT = "files/application/commands"


def stack(**options: Any) -> api.Stack:
    data = {
        "name": "own",
        "title": "a program of one's own",
        "blocks": {"os_packages": {"options": {"packages": ["vim"]}}, "application": {"options": options}},
        "run": {"command": ["solver"], "mpi": bool(options.get("mpi")), "gpus_per_node": 0},
    }
    return api.load_stack(data, catalog=CATALOG)


def planned(name: str = "workstation", **options: Any) -> Plan:
    return make_plan(CATALOG, CATALOG.site(name), stack(**options), settings=["base.provider=debian"])


def files(plan: Plan) -> dict[str, str]:
    return {name: file.text for name, file in make_kit(plan, CATALOG).files.items()}


def locked(plan: Plan, **more: Any) -> Lock:
    import msgspec

    chosen = msgspec.structs.replace(pins(), **more)
    text = sealed_text(plan, assemble(plan, CATALOG, chosen), chosen, collection_files(plan, CATALOG))
    return parse_lock(text, "the lock of a test")


def test_the_source_is_fetched_by_its_hash_and_compiled_for_the_node() -> None:
    kit = files(planned("supermuc", **ARCHIVE, commands=["make", "make install"]))
    recipe = next(kit[name] for name in ("build.sh",))
    assert ARCHIVE["source"] in recipe and "a" * 64 in recipe
    assert "COPY --from=builder /opt/application /opt/application" in recipe
    assert "PATH=/opt/application/bin:/opt/application/src:" in recipe
    script = kit[SCRIPT].splitlines()
    assert script[0] == "export PREFIX=/opt/application"
    assert "export FFLAGS='-O3 -march=skylake-avx512 -mtune=skylake-avx512'" in script
    assert script[-2:] == ["eval make", "eval 'make install'"]


def test_a_git_tree_is_fetched_at_its_commit() -> None:
    plan = planned(**TREE, commands=["make"])
    assert f"fetch -q --depth 1 {TREE['source']} {'c' * 40}" in files(plan)["Dockerfile"].replace("\\\n        ", "")
    assert "git" in assemble(plan, CATALOG).packages["builder"]
    assert "git" not in assemble(planned(**ARCHIVE), CATALOG).packages["builder"]


def test_a_single_file_lies_in_the_folder_of_the_source() -> None:
    recipe = files(planned(source="https://example.org/x/Xthi.c", sha256="a" * 64, commands=["mpicc Xthi.c"]))
    assert "cp /opt/hpcgen/build/Xthi.c /opt/hpcgen/build/application/src/Xthi.c" in recipe["Dockerfile"]
    assert "tar -xf /opt/hpcgen/build/Xthi.c" not in recipe["Dockerfile"]


def test_what_the_stack_names_before_it_is_there_when_it_is_compiled() -> None:
    names = [block.name for block in planned(**ARCHIVE, mpi=True).blocks]
    assert names.index("application") > max(names.index(each) for each in ("os_packages", "cmake", "gnu", "mpich"))
    assert "mpich" not in [block.name for block in planned(**ARCHIVE).blocks]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "the block application has nothing to compile"),
        ({"source": TREE["source"]}, f"`git ls-remote {TREE['source']} HEAD` shows the newest commit"),
        ({"source": ARCHIVE["source"]}, "`sha256sum solver-1.2.tar.gz` the hash"),
        ({**ARCHIVE, "commit": "c" * 40}, "name one of them"),
        ({**TREE, "commit": "main"}, "`application.commit` must be 40 lower-case hexadecimal digits"),
        ({**ARCHIVE, "source": "http://example.org/a.tar"}, "`application.source` must be the https:// address"),
        ({**ARCHIVE, "source": "https://example.org/%2e%2e%2fa.tar"}, "`application.source` must be"),
        ({**ARCHIVE, "source": "https://example.org/x/..a.tar"}, "`application.source` must be"),
        ({**ARCHIVE, "source": "https://user:secret@example.org/a.tar"}, "this address contains a password"),
        ({**ARCHIVE, "commands": ["make\nRUN canary"]}, "must be text on one line"),
    ],
)
def test_what_is_not_pinned_or_not_one_line_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(HpcgenError) as caught:
        planned(**options)
    assert said in str(caught.value)


def started(plan: Plan, folder: Path) -> subprocess.CompletedProcess[str]:
    """The commands as the builder starts them, in a folder of this test."""
    text = files(plan)[SCRIPT].replace("cd /opt/hpcgen/build/application/src", f"cd {folder}")
    (folder / "commands").write_text(text)
    words = ["bash", "-eo", "pipefail", str(folder / "commands")]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_commands_share_a_shell_and_see_prefix_and_flags(tmp_path: Path) -> None:
    commands = ["mkdir -p a && cd a", "X='b c'", 'echo "$PREFIX $X" > out; echo "$CFLAGS" | grep -q march']
    done = started(planned(**ARCHIVE, commands=commands), tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a" / "out").read_text() == "/opt/application b c\n"


@pytest.mark.parametrize(
    "bad", ["false", "false && true", "cd nowhere; true", "false | cat", "echo 'x", "( true", "x("]
)
def test_a_command_that_fails_anywhere_ends_the_build(bad: str, tmp_path: Path) -> None:
    done = started(planned(**ARCHIVE, commands=[bad, "touch after"]), tmp_path)
    assert done.returncode != 0
    assert not (tmp_path / "after").exists()


@pytest.mark.parametrize(
    ("options", "kind", "name"), [(ARCHIVE, "archive", "solver-1.2.tar.gz"), (TREE, "tree", "solver")]
)
def test_lock_bundle_and_sbom_know_the_source(
    options: dict[str, str], kind: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plan = planned(**options, commands=["make"])
    key = f"{TREE['source']}@{TREE['commit']}"
    lock = locked(plan, trees={key: "e" * 64} if kind == "tree" else {})
    (entry,) = [each for each in lock.inputs if each["block"] == "application 1"]
    assert entry[kind] == options["source"]
    monkeypatch.setattr("hpcgen.supply.pin.git_trees.fetch_tree", lambda tree, folder: "e" * 64)
    monkeypatch.setattr("hpcgen.blocks.inputs.wheels.Wheels.wanted", lambda inputs, fetcher: [])
    held = {item.sha256 for item in wanted(lock, CATALOG, tmp_path, own=False)}
    assert options.get("sha256", "e" * 64) in held
    found = {each["name"]: each for each in json.loads(cyclonedx(lock, [], CATALOG))["components"]}
    assert found[name]["version"] == options.get("commit", "a" * 12)


def test_programs_are_linked_with_the_standards_interface_where_the_hosts_mpi_has_that(tmp_path: Path) -> None:
    catalog, here = site(tmp_path, mpi=MPICH, engine="apptainer")
    plan = make_plan(catalog, here, stack(**ARCHIVE, commands=["mpicc x.c"], mpi=True))
    kit = make_kit(plan, catalog).files
    assert kit["files/application/mpicc"].executable and 'exec mpicc_abi "$@"' in kit["files/application/mpicc"].text
    assert 'export PATH="/opt/hpcgen/build/application-mpi:$PATH"' in kit[SCRIPT].text
    assert "files/application/mpicc" not in files(planned(**ARCHIVE, mpi=True))
