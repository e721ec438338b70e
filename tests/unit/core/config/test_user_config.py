"""The user's own config file: where it is, what is wrong with it, what it changes, and how licences get into it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from hpcgen.core.config.user_config import accept, load_user_config, user_config_path, with_entries
from hpcgen.core.errors import InputError
from tests.conftest import Command


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a config file that is not there yet."""
    path = tmp_path / "config.yaml"
    monkeypatch.setenv("HPCGEN_CONFIG", str(path))
    return path


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert user_config_path({}) == Path("/home/ada/.config/hpcgen/config.yaml")
    assert user_config_path({"XDG_CONFIG_HOME": "/etc/ada"}) == Path("/etc/ada/hpcgen/config.yaml")
    assert user_config_path({"XDG_CONFIG_HOME": "relative"}) == Path("/home/ada/.config/hpcgen/config.yaml")
    assert user_config_path({"HPCGEN_CONFIG": "/c.yaml", "XDG_CONFIG_HOME": "/x"}) == Path("/c.yaml")
    assert user_config_path({"HPCGEN_CONFIG": ""}) is None


def test_no_file_and_a_file_of_comments_say_nothing(config: Path) -> None:
    assert load_user_config().accounts == {}
    config.write_text("# accounts:\n#   supermuc: pn12ab\n\n")
    assert load_user_config().accounts == {}


def test_paths_may_begin_at_home(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    config.write_text("image_directories: {supermuc: ~/images}\nrecords: ~/records\ncollections: [~/mine, /opt/ours]\n")
    known = load_user_config()
    assert known.image_directories == {"supermuc": "/home/ada/images"}
    assert known.records == "/home/ada/records"
    assert known.collections == ["/home/ada/mine", "/opt/ours"]


def test_every_mistake_is_told_at_its_place(config: Path, hpcgen: Command) -> None:
    config.write_text("acounts:\n  supermuc: pn12ab\nimage_directories:\n  lumi-g: images\n")
    done = hpcgen("plan", "--site", "supermuc", "--stack", "mpi-hello", env={"HPCGEN_CONFIG": str(config)})
    assert done.returncode == 3
    assert "config.yaml:1:1: `acounts` is not known" in done.stderr
    assert "did you mean account" in done.stderr
    assert "config.yaml:4:11: `lumi-g` must be an absolute path" in done.stderr


def test_a_file_that_cannot_be_read_is_told(config: Path) -> None:
    config.mkdir()
    with pytest.raises(InputError, match="this is a directory"):
        load_user_config()


def rendered(hpcgen: Command, *words: str, **more: str) -> str:
    done = hpcgen("render", "--site", "supermuc", "--stack", "mpi-hello", *words, "--json", env=more)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["job.slurm"]["text"])


def test_account_and_images_of_the_user_and_the_command_that_says_them(config: Path, hpcgen: Command) -> None:
    config.write_text("accounts: {supermuc: pn12ab}\nimage_directories: {supermuc: /dss/ada/images}\n")
    job = rendered(hpcgen, HPCGEN_CONFIG=str(config))
    assert "#SBATCH --account=pn12ab" in job
    assert "/dss/ada/images/mpi-hello" in job
    command = next(line for line in job.splitlines() if line.startswith("# made by hpcgen "))
    words = shlex.split(command.split(": ", 1)[1])
    # Somebody else, without that file, gets the same script from the command in its header.
    assert rendered(hpcgen, *words[6:]) == job


def test_what_is_on_the_command_line_wins(config: Path, hpcgen: Command) -> None:
    config.write_text("accounts: {supermuc: pn12ab}\nimage_directories: {supermuc: /dss/ada/images}\n")
    job = rendered(hpcgen, "--account", "other", "--image-directory", "/scratch/x", HPCGEN_CONFIG=str(config))
    assert "--account=other" in job
    assert "pn12ab" not in job
    assert "/scratch/x/mpi-hello" in job
    assert "/dss/ada" not in job


def test_a_folder_of_images_must_be_a_plain_path(hpcgen: Command) -> None:
    done = hpcgen("render", "--site", "supermuc", "--stack", "mpi-hello", "--image-directory", "a b")
    assert done.returncode == 3
    assert "the folder of images" in done.stderr


def test_collections_come_after_those_of_the_environment(config: Path, tmp_path: Path, hpcgen: Command) -> None:
    profile = "name: ours\nextends: supermuc\ntitle: {}\n"
    for name in ("environment", "file"):
        (tmp_path / name / "site_profiles").mkdir(parents=True)
        (tmp_path / name / "site_profiles" / "ours.yaml").write_text(profile.format(name))
    config.write_text(f"collections: [{tmp_path}/file]\n")
    env = {"HPCGEN_CONFIG": str(config)}
    assert json.loads(hpcgen("show", "site", "ours", "--json", env=env).stdout)["title"] == "file"
    env["HPCGEN_COLLECTIONS"] = str(tmp_path / "environment")
    assert json.loads(hpcgen("show", "site", "ours", "--json", env=env).stdout)["title"] == "environment"


def test_records_lie_where_the_file_says(config: Path, hpcgen: Command) -> None:
    config.write_text("records: /var/empty/records\n")
    assert "/var/empty/records" in hpcgen("records", env={"HPCGEN_CONFIG": str(config)}).stderr


def test_the_schema_of_the_file(hpcgen: Command) -> None:
    assert json.loads(hpcgen("schema", "config").stdout)["title"] == "UserConfig"


# licences


def test_accepted_licences_are_written_and_read_back(config: Path) -> None:
    assert accept("licences", ["cudnn", "intel-simplified"], "2026-11-21") == config
    assert load_user_config().licences == {"cudnn": "2026-11-21", "intel-simplified": "2026-11-21"}
    accept("licences", ["cudnn", "tensorrt"], "2027-01-01")
    assert load_user_config().licences["cudnn"] == "2026-11-21"
    assert load_user_config().licences["tensorrt"] == "2027-01-01"


BEFORE = [
    "accounts:\n  supermuc: pn12ab  # mine\n",
    "licences:\n    # read them all\n    mine: 2026-01-01  # yes\n# the end\naccounts: {supermuc: pn12ab}\n",
    "accounts: {supermuc: pn12ab}\nlicences:\n  mine: 2026-01-01",
    "# nothing yet\n",
    "",
]


@pytest.mark.parametrize("before", BEFORE)
def test_everything_else_in_the_file_stays_as_it_is(config: Path, before: str) -> None:
    config.write_text(before)
    was = load_user_config()
    accept("licences", ["cudnn"], "2026-11-21")
    after = config.read_text()
    assert [line for line in before.splitlines() if line not in after.splitlines()] == []
    assert load_user_config().licences == {**was.licences, "cudnn": "2026-11-21"}
    assert load_user_config().accounts == was.accounts


def test_what_no_line_can_be_added_to_is_left_alone(config: Path) -> None:
    config.write_text("licences: {mine: 2026-01-01}\n")
    with pytest.raises(InputError, match="no line can be added to `licences`") as error:
        accept("licences", ["cudnn"], "2026-11-21")
    assert "write there: cudnn: 2026-11-21" in str(error.value)
    assert config.read_text() == "licences: {mine: 2026-01-01}\n"
    assert with_entries("licences: {}\n", "licences", {"cudnn": "2026-11-21"}) is None


def test_a_link_to_the_file_stays_a_link(config: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").write_text("accounts: {supermuc: pn12ab}\n")
    config.symlink_to("dotfiles")
    accept("licences", ["cudnn"], "2026-11-21")
    assert config.is_symlink()
    assert "cudnn: 2026-11-21" in (tmp_path / "dotfiles").read_text()


def test_an_image_of_somebody_else_is_charged_to_the_users_own_account(
    config: Path, tmp_path: Path, hpcgen: Command
) -> None:
    image = tmp_path / "image"
    kit = image / "opt" / "hpcgen" / "kit"
    (image / "ch").mkdir(parents=True)
    kit.parent.mkdir(parents=True)
    done = hpcgen("render", "--site", "supermuc", "--stack", "mpi-hello", "--account", "theirs", "-o", str(kit))
    assert done.returncode == 0, done.stderr
    assert "#SBATCH --account=theirs" in hpcgen("job", str(image)).stdout
    config.write_text("accounts: {supermuc: mine}\n")
    env = {"HPCGEN_CONFIG": str(config)}
    job = hpcgen("job", str(image), env=env).stdout
    assert "#SBATCH --account=mine" in job
    assert "--account mine" in job
    assert "#SBATCH --account=other" in hpcgen("job", str(image), "--account", "other", env=env).stdout


def test_nothing_of_the_file_gets_into_a_lock_that_is_shared(config: Path) -> None:
    import click

    from hpcgen.catalog.catalog import Catalog
    from hpcgen.cli.common import plan_from
    from hpcgen.cli.options import PlanOptions

    config.write_text("accounts: {supermuc: pn12ab}\nimage_directories: {supermuc: /dss/ada/images}\n")
    options = PlanOptions(site="supermuc", stack="mpi-hello")
    context = click.Context(click.Command("any"), obj=[])
    plans = {verb: plan_from(context, Catalog(), options, verb) for verb in ("lock", "render")}
    assert (plans["lock"].job.account, plans["render"].job.account) == ("", "pn12ab")
    assert plans["lock"].site.containers.image_directory is None
    assert plans["render"].site.containers.image_directory == "/dss/ada/images"
