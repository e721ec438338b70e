"""Collections that a file names: their Python runs once the user said so, and not before."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from hpcgen.core.config.user_config import accept, load_user_config
from tests.conftest import Command
from tests.helpers.own_collection import BLOCK, own_collection
from tests.helpers.terminal import on_a_terminal

REFUSED = "fleet.yaml names the collection ours; its Python code would run here as you"


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """What the block of a fleet's collection leaves when it is loaded."""
    mark = tmp_path / "it-ran"
    own_collection(tmp_path / "ours", {"building_blocks/ours_tool.py": f"{BLOCK}\nopen({str(mark)!r}, 'w').close()\n"})
    member = "{site: lab, stack: ours-stack, settings: [base.provider=debian]}"
    (tmp_path / "fleet.yaml").write_text(f"collections: [ours]\nmembers: [{member}]\n")
    return mark


@pytest.mark.parametrize(
    "words",
    [
        ["fleet"],
        ["build", "--all", "--dry-run"],
        ["ci", "github"],
        ["ci", "gitlab", "--jobs"],
        ["fleet", "publish", "--dry-run"],
        ["check", "fleet.yaml"],
    ],
)
def test_a_fleets_collection_does_not_run_unasked(hpcgen: Command, ran: Path, words: list[str]) -> None:
    done = hpcgen(*words)
    assert (done.returncode, REFUSED in done.stderr) == (3 if words[0] == "check" else 6, True), done.stderr
    assert (
        f"hpcgen --trust-collections …, or in your config file: trusted_collections: {{{ran.parent}/ours" in done.stderr
    )
    assert not ran.exists()


@pytest.mark.parametrize("how", ["option", "environment", "config", "--collection", "$HPCGEN_COLLECTIONS"])
def test_the_user_may_say_so_in_several_ways(hpcgen: Command, ran: Path, how: str) -> None:
    folder = ran.parent
    before, env = [], {}
    if how == "option":
        before = ["--trust-collections"]
    elif how == "environment":
        env["HPCGEN_TRUST_COLLECTIONS"] = "1"
    elif how == "config":
        (folder / "config.yaml").write_text(f"trusted_collections: {{{folder}/ours: 2026-11-22}}\n")
        env["HPCGEN_CONFIG"] = str(folder / "config.yaml")
    elif how == "--collection":
        before = ["--collection", "ours"]
    else:
        env["HPCGEN_COLLECTIONS"] = str(folder / "ours")
    done = hpcgen(*before, "fleet", env=env)
    assert (done.returncode, "ours-stack-lab" in done.stdout) == (0, True), done.stderr
    assert ran.exists()


@pytest.mark.parametrize(
    "where", [["ours"], ["ours/building_blocks"], ["ours/building_blocks/ours_tool.py"], ["ours/recipes", "ours"]]
)
def test_a_collection_that_is_checked_does_not_run_unasked(hpcgen: Command, ran: Path, where: list[str]) -> None:
    folder = ran.parent
    done = hpcgen("check", *where)
    assert done.returncode == 6, done.stderr
    assert "hpcgen check names the collection" in done.stderr and "hpcgen --trust-collections …" in done.stderr
    assert not ran.exists()
    (folder / "config.yaml").write_text(f"trusted_collections: {{{folder}/ours: 2026-11-22}}\n")
    for before, env in (
        (["--trust-collections"], {}),
        (["--collection", "ours"], {}),
        ([], {"HPCGEN_COLLECTIONS": str(folder / "ours")}),
        ([], {"HPCGEN_CONFIG": str(folder / "config.yaml")}),
    ):
        done = hpcgen(*before, "check", *where, env=env)
        assert done.returncode == 0, done.stderr


def test_the_collection_of_the_present_folder_is_asked_for_too(hpcgen: Command, ran: Path) -> None:
    shutil.copytree(ran.parent / "ours", ran.parent, dirs_exist_ok=True)
    done = hpcgen("check", ".")
    assert done.returncode == 6 and not ran.exists(), done.stderr


def test_files_of_a_collection_that_are_data_are_checked_without_a_word(hpcgen: Command, ran: Path) -> None:
    (ran.parent / "ours" / "site_profiles").mkdir(exist_ok=True)
    (ran.parent / "ours" / "site_profiles" / "our-lab.yaml").write_text("name: our-lab\nextends: workstation\n")
    done = hpcgen("check", "ours/site_profiles/our-lab.yaml")
    assert done.returncode == 0 and not ran.exists(), done.stderr


def test_another_folder_is_another_matter_and_data_alone_none(hpcgen: Command, ran: Path) -> None:
    folder = ran.parent
    (folder / "config.yaml").write_text(f"trusted_collections: {{{folder}/theirs: 2026-11-22}}\n")
    assert REFUSED in hpcgen("fleet", env={"HPCGEN_CONFIG": str(folder / "config.yaml")}).stderr
    (folder / "ours" / "building_blocks" / "ours_tool.py").unlink()
    (folder / "ours" / "recipes" / "plain.yaml").write_text(
        "name: plain\ntitle: Plain\nblocks: {mpi: {}}\nrun: {command: [x]}\n"
    )
    (folder / "fleet.yaml").write_text("collections: [ours]\nmembers: [{site: lab, stack: plain}]\n")
    done = hpcgen("fleet")
    assert done.returncode == 0, done.stderr


def test_it_is_asked_for_once_on_a_terminal(ran: Path) -> None:
    folder = ran.parent
    words = [sys.executable, "-m", "hpcgen", "fleet"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HPCGEN_")}
    env = {**clean, "HPCGEN_CONFIG": str(folder / "config.yaml"), "HPCGEN_ENTRY_POINTS": "0"}
    asked = on_a_terminal(words, "n\n", env, folder)
    assert "Do you trust it?" in asked and REFUSED in " ".join(asked.split())
    assert not ran.exists() and not (folder / "config.yaml").exists()
    assert "saved in" in on_a_terminal(words, "y\n", env, folder)
    assert ran.exists()
    assert "Do you trust it?" not in on_a_terminal(words, "", env, folder)


def test_what_is_trusted_is_kept_beside_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("# mine\nlicences:\n  cudnn: 2026-11-20\n")
    monkeypatch.setenv("HPCGEN_CONFIG", str(config))
    accept("trusted_collections", ["/data/ours", f"sha256:{'a' * 64}"], "2026-11-22")
    accept("trusted_collections", ["/data/theirs"], "2026-11-23")
    assert list(load_user_config().trusted_collections) == ["/data/ours", f"sha256:{'a' * 64}", "/data/theirs"]
    assert config.read_text().startswith("# mine\nlicences:\n  cudnn: 2026-11-20\n")


def test_a_pipeline_that_is_written_trusts_the_collections_beside_it(hpcgen: Command, ran: Path) -> None:
    for service in ("github", "gitlab"):
        done = hpcgen("--trust-collections", "ci", service)
        assert 'HPCGEN_TRUST_COLLECTIONS: "1"' in done.stdout or "HPCGEN_TRUST_COLLECTIONS: '1'" in done.stdout
    (ran.parent / "fleet.yaml").write_text("members: [{site: workstation, stack: mpi-hello}]\n")
    assert "HPCGEN_TRUST_COLLECTIONS" not in hpcgen("ci", "gitlab").stdout
