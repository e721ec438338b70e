"""A format is one class and one file: those of hpcgen, and one that a collection brings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.kit.folder import make_context, read_kit
from hpcgen.kit.kit import known_files
from hpcgen.recipe.formats import FORMATS, engines_reading
from tests.conftest import Command

LISTING = '''"""A recipe as a plain list of its commands, which podman is said to read."""

from hpcgen.recipe.formats.base import Format, Written


class Listing(Format):
    name = "listing"
    recipe_file = engine_file = "Steps"
    certificate_folder = ""
    read_by = ("podman",)
    setup = {"ubuntu-24.04": "sudo install-lister", "debian:12": "install-lister"}
    unprivileged = {"LISTER": "unprivileged"}

    def recipe(self, plan, assembly):
        steps = [*assembly.builder.steps, *assembly.final.steps]
        text = "".join(f"{label}\\t{line}\\n" for label, step in steps for line in step.commands)
        return Written(text, [[], []])

    def build_script(self, plan, assembly):
        return f"#!/bin/sh\\necho {plan.stack.name}\\n"
'''
ASKED = ("--site", "workstation", "--stack", "mpi-hello")


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """A collection whose only file is the class of a format."""
    folder = tmp_path / "site-software"
    (folder / "formats").mkdir(parents=True)
    (folder / "formats" / "listing.py").write_text(LISTING)
    return folder


@pytest.fixture
def kit(hpcgen: Command, collection: Path, tmp_path: Path) -> Path:
    done = hpcgen("--collection", str(collection), "render", *ASKED, "--format", "listing", "-o", "kit")
    assert done.returncode == 0, done.stderr
    return tmp_path / "kit"


def test_a_collection_brings_a_format_in_one_file(kit: Path, collection: Path) -> None:
    plan = json.loads((kit / "plan.json").read_text())
    assert (plan["format"], plan["engine"]) == ("listing", "podman")
    assert "--format listing" in plan["command"]
    assert "\ndistribution\t" in (kit / "Steps").read_text()
    assert (kit / "build.sh").read_text() == "#!/bin/sh\necho mpi-hello\n"
    assert not (kit / "Dockerfile").exists()
    Catalog([collection])
    assert "Steps" in known_files() and "Steps" in {path.name for path in kit.iterdir()}
    assert engines_reading("listing") == ["podman"]


def test_its_kit_is_read_back_and_gets_the_context_that_it_says(kit: Path, collection: Path, tmp_path: Path) -> None:
    Catalog([collection])
    found = read_kit(kit)
    assert found.recipe == (kit / "Steps").read_text()
    make_context(found, tmp_path / "context")
    names = {path.relative_to(tmp_path / "context").as_posix() for path in (tmp_path / "context").rglob("*")}
    assert {"Steps", "files/tests/rank_test.c"} < names and "certificates" not in names
    assert (tmp_path / "context" / "Steps").read_text() == found.recipe


def test_pipelines_make_their_machines_ready_for_it(hpcgen: Command, collection: Path, tmp_path: Path) -> None:
    member = "{site: workstation, stack: mpi-hello, format: listing}"
    (tmp_path / "fleet.yaml").write_text(f"collections: [{collection.name}]\nmembers:\n  - {member}\n")
    told = {}
    for words in (["github"], ["gitlab"], ["gitlab", "--jobs"]):
        done = hpcgen("--trust-collections", "ci", *words, "--fleet", "fleet.yaml")
        assert done.returncode == 0, done.stderr
        told["".join(words)] = done.stdout
    assert "HPCGEN_SETUP_CHARLIECLOUD and HPCGEN_SETUP_LISTING are command" in told["github"]
    assert "HPCGEN_SETUP_LISTING: ${{ vars.HPCGEN_SETUP_LISTING || 'sudo install-lister' }}" in told["github"]
    assert "HPCGEN_SETUP_LISTING: install-lister" in told["gitlab"]
    assert "LISTER: unprivileged" in told["gitlab--jobs"] and "BUILDAH" not in told["gitlab--jobs"]


def test_a_kit_in_another_format_leaves_no_recipe_of_it_behind(kit: Path, hpcgen: Command, collection: Path) -> None:
    done = hpcgen("--collection", str(collection), "render", *ASKED, "-o", str(kit))
    assert done.returncode == 0, done.stderr
    assert not (kit / "Steps").exists()


def test_the_schema_of_fleets_knows_it(hpcgen: Command, collection: Path) -> None:
    assert '"listing"' in hpcgen("--collection", str(collection), "schema", "fleet").stdout
    assert '"listing"' not in hpcgen("schema", "fleet").stdout


def test_an_unknown_format_leads_to_the_nearest(hpcgen: Command, tmp_path: Path) -> None:
    done = hpcgen("render", *ASKED, "--format", "dokcer")
    assert (done.returncode, "no format is called 'dokcer'" in done.stderr) == (4, True)
    assert "--format" in done.stderr and "did you mean docker" in done.stderr
    (tmp_path / "fleet.yaml").write_text(
        "members: [{stack: mpi-hello, site: workstation, format: sigularity}, {stack: mpi-hello, site: supermuc}]\n"
    )
    done = hpcgen("fleet")
    assert "fleet.yaml:1:" in done.stderr and "did you mean singularity" in done.stderr


@pytest.mark.parametrize("name", FORMATS.built_in)
def test_a_class_is_called_as_the_registry_calls_it(name: str) -> None:
    assert FORMATS.find(name).name == name


@pytest.mark.parametrize("site", ["supermuc", "workstation"])
def test_a_program_among_the_text_files_stays_one(site: str) -> None:
    """build.sh copies the kit's files with modes of its own, whatever the kit's folder has been through."""
    import hpcgen
    from hpcgen.blocks.base import Block, Context
    from hpcgen.blocks.steps import Run, TextFile, run

    class Tool(Block):
        """A program.  Source: https://example.org"""

        name = "tool"
        releases = {"1": {}}

        def build(self, ctx: Context) -> list[Run]:
            return [run("tool", TextFile("files/tests/tool", "/opt/tool/bin/tool", "#!/bin/sh\n", executable=True))]

    stack = {"name": "it", "title": "t", "blocks": {"tool": {}}, "run": {"command": ["tool"], "mpi": False}}
    catalog = Catalog([], [Tool])
    plan = hpcgen.plan(hpcgen.load_site(site), hpcgen.load_stack(stack, catalog=catalog), catalog=catalog)
    script = hpcgen.render(plan, catalog=catalog).files["build.sh"].text
    assert "*.sh | job.* | files/tests/tool) mode=755 ;;" in script
