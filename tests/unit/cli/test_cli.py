"""The command: results on stdout, messages on stderr, exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, Command

LEVELS = ("hpcgen: warning:", "hpcgen: note:")


def test_recipe_goes_to_stdout_and_notes_to_stderr(hpcgen: Command) -> None:
    done = hpcgen("render", "--site", "supermuc", "--stack", "mpi-hello")
    assert done.returncode == 0
    assert done.stdout.startswith("#!/bin/bash\n")
    assert "hpcgen: note:" not in done.stdout
    assert "not verified" not in done.stderr
    whole = hpcgen("render", "--site", "supermuc", "--stack", "mpi-hello", "--notes")
    assert "hpcgen: note: not verified in the profile of supermuc" in whole.stderr
    assert whole.stdout == done.stdout


def test_a_process_of_its_own_says_all_and_ends_with_the_same_code(hpcgen: Command, hpcgen_process: Command) -> None:
    for words in (("list", "blocks"), ("render", "--site", "nowhere", "--stack", "mpi-hello"), ("nothing",)):
        here, there = hpcgen(*words), hpcgen_process(*words)
        assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)


def test_what_render_says_fits_a_screen_with_the_warnings_first(hpcgen: Command) -> None:
    for site in ("supermuc", "lumi-g", "hlrs-testbed", "workstation"):
        said = hpcgen("render", "--site", site, "--stack", "tf-horovod", "-o", "kit", "--allow-unsupported").stderr
        lines = said.splitlines()
        assert len(lines) < 12 and max(map(len, lines)) < 300, said
        warnings = [line.startswith("hpcgen: warning:") for line in lines if line.startswith(LEVELS)]
        assert warnings == sorted(warnings, reverse=True), said


def test_details_of_a_plan_are_one_word_until_they_are_asked_for(hpcgen: Command) -> None:
    asked = ["--site", "alps", "--stack", "pytorch"]
    done, whole = hpcgen("plan", *asked), hpcgen("plan", *asked, "--notes")
    assert "next (--why: all reasons, --notes: all notes):" in done.stdout and "--notes" not in whole.stdout
    # This machine may be of another architecture than the site's.
    notes = [line for line in done.stderr.splitlines() if line.startswith("hpcgen: note: ")]
    assert all(
        "note: this machine is " in line or line.endswith(" facts of the profile unverified (--notes)")
        for line in notes
    )
    unknown = hpcgen("plan", "--site", "leonardo", "--stack", "pytorch", "--notes").stderr
    assert "hpcgen: note: the profile lacks facts to check GPU driver" in unknown
    assert "hpcgen: note: not verified in the profile of alps: " in whole.stderr
    by_block = "hpcgen: note: The build accepts the Intel End User License Agreement"
    assert by_block in hpcgen("plan", "--site", "supermuc", "--stack", "mpi-hello", "--notes").stderr


def test_notes_that_matter_are_shown_unasked(hpcgen: Command) -> None:
    done = hpcgen("plan", "--site", "workstation", "--stack", "pytorch")
    memory, first, *rest = done.stderr.splitlines()
    assert memory.startswith("hpcgen: note: huge_pages by default for PyTorch on CPUs: ")
    assert first.startswith("hpcgen: note: torch.compile will fail")
    assert rest == ["hpcgen: note: 6 facts of the profile unverified (--notes)"]


def test_what_takes_hours_to_build_is_said_before_anybody_builds_it(hpcgen: Command) -> None:
    said = "hpcgen: note: tensorflow 2.15.1 is compiled from source: hours, tens of GB of disk"
    plain = ["--site", "supermuc", "--stack", "tf-horovod"]
    asked = [*plain, "--set", "tensorflow.install=source"]
    for words in (["plan", *asked], ["render", *asked], ["render", *asked, "-o", "kit"], ["plan", *asked, "--notes"]):
        assert hpcgen(*words).stderr.count(said) == 1, words
    assert "compiled from source" not in hpcgen("plan", *plain, "--notes").stderr


def test_a_note_on_releases_names_the_command_that_shows_them(hpcgen: Command) -> None:
    said = hpcgen("plan", "--site", "supermuc", "--stack", "mpi-hello", "--notes").stderr
    command = said.split("not verified in the release tables: intel_mpi 2019.6.166 (see hpcgen ")[1].split(")")[0]
    assert "2019.6.166" in hpcgen(*command.split()).stdout


def test_plan_notes_what_render_notes(hpcgen: Command) -> None:
    words = ["--site", "supermuc", "--stack", "tf-horovod", "--notes"]
    planned, rendered = (hpcgen(verb, *words).stderr for verb in ("plan", "render"))
    # What only the day makes of the profile's facts is said by the plan alone.
    planned = re.sub(r"hpcgen: note: (may be out of date|from memory, not verified): .*\n", "", planned)
    assert planned == rendered.replace("hpcgen: building requires the kit's other files, too: render with -o DIR\n", "")


def test_the_older_spellings_of_show_and_schema_still_work(hpcgen: Command) -> None:
    for now, then in (
        (("show", "site", "workstation"), ("site", "show", "workstation")),
        (("show", "site", "lumi-g", "--origin", "--json"), ("site", "show", "lumi-g", "--origin", "--json")),
        (("schema", "site"), ("site", "schema")),
    ):
        assert hpcgen(*now).stdout == hpcgen(*then).stdout != ""
    assert "schema" not in hpcgen("site", "--help").stdout


def test_the_header_names_the_command_that_makes_the_file_again(hpcgen: Command) -> None:
    words = ["render", "--site", "supermuc", "--stack", "mpi-hello", "--set", "gnu.fortran=true", "--nodes", "20"]
    first = hpcgen(*words).stdout
    line = next(line for line in first.splitlines() if line.startswith("# made by hpcgen"))
    assert hpcgen(*line.split(": hpcgen ")[1].split()).stdout == first


def test_kit_has_all_its_files_and_says_so_on_stderr(hpcgen: Command, tmp_path: Path) -> None:
    done = hpcgen("render", "--site", "hlrs-testbed", "--stack", "mpi-hello", "--time", "36h", "-o", "kit")
    assert (done.returncode, done.stdout) == (0, "")
    names = {p.name for p in (tmp_path / "kit").iterdir()}
    assert names == {
        "Singularity.def",
        "build.sh",
        "files",
        "job.pbs",
        "preflight.sh",
        "recipe.json",
        "selftest.sh",
        "plan.json",
        "hpcgen.lock",
    }
    assert "walltime=36:00:00" in (tmp_path / "kit" / "job.pbs").read_text()
    assert (tmp_path / "kit" / "build.sh").stat().st_mode & 0o111


def test_plan_as_json_is_the_whole_plan(hpcgen: Command) -> None:
    plan = json.loads(hpcgen("plan", "--site", "hlrs-testbed", "--stack", "tf-horovod", "--json").stdout)
    versions = {block["name"]: block["version"] for block in plan["blocks"]}
    assert versions["cuda"].startswith("10.1")
    assert versions["tensorflow"].startswith("2.3")
    assert all(block["reasons"] for block in plan["blocks"])


def test_list_show_schema_and_completion(hpcgen: Command) -> None:
    assert "supermuc" in hpcgen("list", "sites").stdout
    assert "tf-horovod" in hpcgen("list", "stacks").stdout
    assert "charliecloud      builds and starts images of the format charliecloud" in hpcgen("list", "engines").stdout
    lists = json.loads(hpcgen("list", "--json").stdout)
    assert [each["what"] for each in lists] == ["sites", "stacks", "blocks", "engines", "build records"]
    for each in lists[:-1]:
        assert hpcgen(*each["command"].split()[1:]).stdout.count("\n") == each["count"] + 1
    assert "hpcgen list stacks" in hpcgen("list").stdout
    shown = json.loads(hpcgen("show", "block", "tensorflow", "--json").stdout)
    assert "install" in shown["options"]
    assert "2.15.1" in shown["releases"]
    assert json.loads(hpcgen("schema", "site").stdout)["title"] == "Site"
    completed = hpcgen(
        env={"_HPCGEN_COMPLETE": "bash_complete", "COMP_WORDS": "hpcgen render --site su", "COMP_CWORD": "3"}
    )
    assert "supermuc" in completed.stdout


def as_editors_read_it(value: Any) -> Any:
    """YAML 1.2's numbers, which hpcgen itself keeps as text until a field wants a number."""
    if isinstance(value, dict):
        return {key: as_editors_read_it(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_editors_read_it(item) for item in value]
    for kind in (int, float):
        try:
            return kind(value) if isinstance(value, str) else value
        except ValueError:
            continue
    return value


def test_published_schema_accepts_every_profile_and_recipe(hpcgen: Command) -> None:
    import jsonschema

    from hpcgen.catalog.catalog import Catalog

    catalog = Catalog()
    for kind, read in (("site", catalog.site_document), ("stack", catalog.stack_document)):
        validator = jsonschema.Draft202012Validator(json.loads(hpcgen("schema", kind).stdout))
        for name in catalog.names(kind):
            data = as_editors_read_it(read(name).data)
            if data.get("abstract") is not True:
                assert [error.message for error in validator.iter_errors(data)] == [], name


def test_unknown_command_and_wrong_usage_exit_with_2(hpcgen: Command) -> None:
    assert hpcgen("frobnicate").returncode == 2
    assert hpcgen("render", "--site", "supermuc").returncode == 2
    assert "did you mean render?" in hpcgen("rendr").stderr


def test_options_of_a_block_are_told_in_plain_words(hpcgen: Command) -> None:
    told = hpcgen("show", "block", "tensorflow").stdout
    assert "install: one of hub, intel, pip, source; default pip" in told
    assert "mkl: true or false; left open" in told
    assert "jobs: a whole number of at least 0; default 0" in told
    # In YAML a long line is folded.
    assert "copt: a list, each a compiler flag, such as -mprefer-vector-width=512; default []" in " ".join(told.split())
    words = "frameworks: a list, each one of "
    assert words in hpcgen("show", "block", "horovod").stdout
    needs = json.loads(hpcgen("show", "block", "onnxruntime", "--json").stdout)["needs"]
    assert len(needs) == len(set(needs)) > 5


def test_a_reader_that_goes_away_is_no_error_to_talk_about() -> None:
    command = f"{sys.executable} -m hpcgen show block cudnn --all | head -n 1"
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_version(hpcgen: Command) -> None:
    from hpcgen._version import __version__

    assert hpcgen("--version").stdout == f"hpcgen {__version__}\n"


def test_site_and_stack_may_be_files_of_any_name(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "my site.yaml").write_text("name: lab\nextends: workstation\ntitle: our lab\n")
    recipe = (ROOT / "recipes" / "mpi-hello.yaml").read_text("utf-8")
    (tmp_path / "draft.yaml").write_text(recipe)
    done = hpcgen("render", "--site", "my site.yaml", "--stack", "draft.yaml")
    assert done.returncode == 0, done.stderr
    assert "# mpi-hello for lab, partition main: " in done.stdout
    assert "hpcgen render --site 'my site.yaml' --stack draft.yaml" in done.stdout
    (tmp_path / "my site.yaml").write_text("name: lab\nextends: workstation\ntitel: our lab\n")
    assert "my site.yaml:3:1" in hpcgen("render", "--site", "my site.yaml", "--stack", "draft.yaml").stderr
