"""A step that fails in the middle of a block fails the build, in every format and with every engine here."""

from __future__ import annotations

from pathlib import Path

import pytest
from bare import without_servers, write_bare_base
from container_tools import BaseImage, Buildah, ChImage, Sid
from test_rendered_kits import BASE_IN_SID, site_profile

BLOCK = '''\
from hpcgen.blocks.base import Block
from hpcgen.blocks.steps import Runtime, run


class Broken(Block):
    """A block whose second of three commands fails."""

    name = "broken"

    def build(self, ctx):
        # On a busy machine buildah 1.28 loses what is written right before the end.
        yield run("first", "mkdir -p /opt/broken", "echo first-step-ran", "sleep 1", {failing!r}, "echo step-went-on")
        yield run("second", "echo next-step-ran")

    def runtime(self, ctx):
        # Builders leave out a stage that nothing is copied from.
        return Runtime(copies=("/opt/broken",))
'''
FAILING = ["false", "cd /nowhere"]
STACK = "name: broken\ntitle: fails\nblocks: {broken: {}}\nrun: {command: [sh], mpi: false}\n"


@pytest.fixture(params=FAILING)
def broken(
    request: pytest.FixtureRequest, tmp_path: Path, machine_facts: dict[str, object], base_image: BaseImage
) -> Path:
    """A collection with this machine's profile and a stack of the broken block."""
    import json

    for folder in ("site_profiles", "recipes", "building_blocks"):
        (tmp_path / "c" / folder).mkdir(parents=True)
    collection = tmp_path / "c"
    (collection / "building_blocks" / "broken.py").write_text(BLOCK.replace("{failing!r}", repr(request.param)))
    (collection / "building_blocks" / "broken.yaml").write_text('block: broken\nreleases: {"1": {}}\n')
    (collection / "recipes" / "broken.yaml").write_text(STACK)
    write_bare_base(collection)
    profile = without_servers(site_profile(machine_facts, base_image))
    (collection / "site_profiles" / "here.yaml").write_text(json.dumps(profile))
    return collection


def kit(collection: Path, format: str) -> Path:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.support.writing import write_kit
    from hpcgen.kit.kit import make_kit
    from hpcgen.planning.planner import make_plan

    catalog = Catalog([collection])
    plan = make_plan(catalog, catalog.site("here"), catalog.stack("broken"), format=format)  # type: ignore[arg-type]
    folder = collection / f"kit-{format}"
    write_kit(folder, make_kit(plan, catalog).files)
    return folder


def check(output: str, code: int) -> None:
    assert code != 0, output
    lines = [line.strip() for line in output.splitlines()]
    assert "first-step-ran" in lines, output
    assert "step-went-on" not in lines, output
    assert "next-step-ran" not in lines, output


def test_charliecloud(broken: Path, ch_image: ChImage, tmp_path: Path) -> None:
    options = {"HPCGEN_BUILD_OPTIONS": "--no-cache"}
    image = tmp_path / "image"
    done = ch_image.run(["bash", kit(broken, "charliecloud") / "build.sh", image], env=options, check=False)
    check(done.stdout, done.returncode)
    assert not image.exists()


def test_buildah(broken: Path, buildah: Buildah) -> None:
    options = {"HPCGEN_ENGINE": "buildah", "HPCGEN_BUILD_OPTIONS": "--isolation chroot"}
    done = buildah.run(["bash", kit(broken, "docker") / "build.sh", "localhost/broken"], env=options, check=False)
    check(done.stdout, done.returncode)


def test_apptainer(broken: Path, sid: Sid, base_image: BaseImage) -> None:
    folder = sid.folder(kit(broken, "singularity"))
    binds = [(folder, "/kit"), (base_image.archive.parent, BASE_IN_SID)]
    certificates = Path("/usr/local/share/ca-certificates")
    binds.append((certificates, str(certificates)))
    options = {"HPCGEN_BUILD_OPTIONS": "--sandbox"}
    done = sid.run(["bash", "build.sh", "image.sif"], binds=binds, cwd="/kit", env=options, check=False)
    check(done.stdout, done.returncode)
    assert not (folder / "image.sif").exists()
