"""A plan that adds to a finished image: only what is added is built, and what does not suit is said."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError, InputError, PolicyError
from hpcgen.core.model.fields import FormatName
from hpcgen.core.model.plan import ExtendedImage, Plan
from hpcgen.kit.kit import Kit, make_kit, plan_text, read_plan
from hpcgen.planning.extending import extended_plan
from hpcgen.planning.planner import make_plan
from hpcgen.planning.question import added_words
from hpcgen.recipe.assemble import assemble

CATALOG = Catalog()
PACKAGES = "python_packages"


@pytest.fixture(scope="module")
def finished() -> Plan:
    """An image with MPI for Python and two more packages."""
    site, stack = CATALOG.site("workstation"), CATALOG.stack("mpi-python")
    settings = [f"{PACKAGES}.packages=h5py==3.11.0,numpy==2.1.3", "os_packages.packages=git"]
    added = [PACKAGES, "os_packages"]
    return make_plan(CATALOG, site, stack, settings=settings, added=added, allow_unsupported=True)


def base_of(plan: Plan, name: str = "localhost/mpi:here") -> ExtendedImage:
    content = assemble(plan, CATALOG).labels["io.hpcgen.content"]
    return ExtendedImage(image=name, content=content, blocks=plan.blocks, copied=plan.copied)


def extended(plan: Plan, *words: str, settings: tuple[str, ...] = (), format: FormatName | None = None) -> Plan:
    more = {"settings": settings, "format": format, "allow_unsupported": True}
    return extended_plan(plan, base_of(plan), added_words(words), CATALOG, **more)  # type: ignore[arg-type]


def kit(plan: Plan) -> Kit:
    return make_kit(plan, CATALOG)


def test_only_what_is_added_is_built_in_one_stage_from_the_image(finished: Plan) -> None:
    plan = extended(finished, "pip:zarr==2.18.3", "apt:bc")
    recipe = kit(plan).recipe
    assert recipe.count("\nFROM ") == 1 and "\nFROM localhost/mpi:here\n" in recipe
    assert "--no-install-recommends bc &&" in recipe and "configure" not in recipe and "COPY --from" not in recipe
    assert f"mv /opt/hpcgen/kit /opt/hpcgen/extended/{base_of(finished).content[:12]}" in recipe
    assert recipe.index("pip list --format=freeze") < recipe.index("pip install")
    assert "ARG PIP_CONSTRAINT=" in recipe and "ENV PIP_CONSTRAINT" not in recipe
    last = recipe.rpartition("\nCOPY ")[2].partition("\n")[0].split()
    assert last[0] == "Dockerfile" and last[-1] == "/opt/hpcgen/kit/"
    assert recipe.index("COPY files/ /opt/hpcgen/kit/files/") < recipe.index("selftest.sh --build")


def test_the_plan_is_that_of_the_whole_with_what_it_was_added_to(finished: Plan) -> None:
    plan = extended(finished, "pip:zarr==2.18.3")
    before = {block.name: block for block in finished.blocks}
    assert {block.name for block in plan.blocks} == before.keys()
    changed = [block for block in plan.blocks if block != before[block.name]]
    assert [block.options["packages"] for block in changed] == [["h5py==3.11.0", "numpy==2.1.3", "zarr==2.18.3"]]
    assert plan.job == finished.job and plan.settings == finished.settings and plan.partition == finished.partition
    assert plan.stack.blocks[PACKAGES].options["packages"] == changed[0].options["packages"]
    assert read_plan(msgspec.json.decode(plan_text(plan)), "plan.json") == plan
    tests = kit(plan).files["selftest.sh"].text
    assert "zarr" in tests and "h5py" in tests and "mpi4py" in tests


def test_the_hash_is_another_and_does_not_depend_on_what_the_image_is_called(finished: Plan) -> None:
    plan = extended(finished, "apt:bc")
    assert plan.extends is not None
    renamed = msgspec.structs.replace(plan.extends, image="other")
    built = msgspec.structs.replace(plan.extends, digest=f"sha256:{'1' * 64}")
    hashes = [
        assemble(each, CATALOG).labels["io.hpcgen.content"]
        for each in (plan, *(msgspec.structs.replace(plan, extends=new) for new in (renamed, built)))
    ]
    assert hashes[0] == hashes[1] and len({*hashes, plan.extends.content}) == 3


def test_an_extended_image_is_extended_again(finished: Plan) -> None:
    once = extended(finished, "apt:bc")
    twice = extended(once, "apt:file")
    assert twice.extends is not None and twice.extends.content == base_of(once).content
    assert "--no-install-recommends file &&" in kit(twice).recipe


@pytest.mark.parametrize(
    ("format", "start"),
    [
        ("singularity", "BootStrap: localimage\nFrom: localhost/mpi:here\n"),
        ("charliecloud", "\nFROM localhost/mpi:here\n"),
    ],
)
def test_every_format_starts_from_the_image(finished: Plan, format: FormatName, start: str) -> None:
    recipe = kit(extended(finished, "pip:zarr==2.18.3", format=format)).recipe
    assert start in recipe and "pip install" in recipe and "builder" not in recipe


def test_files_of_this_machine_are_copied_and_those_of_the_image_are_not_asked_for(
    finished: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("data", "more"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(name)
    once = extended(finished, "copy:data=/opt/data")
    assert kit(once).copied.keys() == {"copy/opt/data/x"}
    catalog = Catalog()
    trees = {each.to: CATALOG.copied.tree(once, each) for each in once.copied}
    catalog.copied.places.append(lambda copy: trees.get(copy.to))
    (tmp_path / "data" / "x").unlink()
    twice = extended_plan(once, base_of(once), added_words([f"copy:{tmp_path}/more=/opt/more"]), catalog)
    made = make_kit(twice, catalog)
    assert made.copied.keys() == {"copy/opt/more/x"}
    assert "COPY copy/opt/more/ /opt/more/" in made.recipe and "copy/opt/data" not in made.recipe
    assert "opt/data/x" in made.files["copy.list"].text and "opt/more/x" in made.files["copy.list"].text
    with pytest.raises(InputError, match="has both /opt/data and /opt/data/x"):
        extended(once, "copy:more=/opt/data/x")


@pytest.mark.parametrize(
    ("words", "settings", "kind", "said"),
    [
        (["pip:numpy==1.26.4"], (), ConflictError, r"numpy==1.26.4 is requested, but the image has numpy==2.1.3"),
        (["pip:NumPy==1.26.4", "pip:h5py==3.9.0"], (), ConflictError, r"(?s)NumPy==1.26.4.*h5py==3.9.0"),
        (["pip:mpi4py==3.1.6"], (), ConflictError, r"(?s)mpi4py.*3.1.6.*install=source, and here that is wheel"),
        (["apt:git"], (), InputError, "already in the image"),
        (["pip:h5py==3.11.0", "mpi4py"], (), InputError, "already in the image"),
        (
            ["hpl"],
            (),
            PolicyError,
            r"(?s)openblas .*asks for the OS packages gfortran-13.*hpl .* cannot be added to a finished image",
        ),
        (["pip:numpy>=2"], (), HpcgenError, "numpy>=2"),
        (["nothing"], (), HpcgenError, "no block is called 'nothing'"),
        (["apt:bc"], ("mpi.provider=openmpi",), InputError, "mpi is in the image already, and stays as it is"),
        (["apt:bc"], ("mpi4py.version=3.1.6",), InputError, "mpi4py is in the image already"),
    ],
)
def test_what_does_not_suit_is_said(
    finished: Plan, words: list[str], settings: tuple[str, ...], kind: type[HpcgenError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        kit(extended(finished, *words, settings=settings))


def test_words_that_say_nothing_are_told_at_once(finished: Plan, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        added_words(["copy:x", "copy:x=/etc/y", "copy:=/opt/y"])
    assert len(caught.value.problems) == 3
    with pytest.raises(InputError) as caught:
        extended(finished, "pip:", "conda:x")
    assert len(caught.value.problems) == 2
    found = added_words(["numactl", "pip:a==1", "pip:a==1", f"copy:{tmp_path}/c=/opt/c"])
    assert found.others == ("numactl", "pip:a==1") and found.packages("pip") == ["a==1"]
    assert [(each.folder, each.entry.from_, each.entry.to) for each in found.copies] == [(tmp_path, "c", "/opt/c")]


def test_a_format_that_the_site_refuses_has_a_remedy_without_the_option_that_extend_lacks() -> None:
    plan = make_plan(CATALOG, CATALOG.site("lumi-g"), CATALOG.stack("mpi-hello"), allow_unsupported=True)
    with pytest.raises(PolicyError) as caught:
        extended_plan(plan, base_of(plan), added_words(["apt:bc"]), CATALOG, format="charliecloud")
    said = str(caught.value)
    assert "hpcgen convert" in said and "--format" not in said


def test_the_network_may_be_that_of_another_site(finished: Plan) -> None:
    pip = "https://pypi.example.org/simple"
    other = msgspec.structs.replace(finished.site.network.mirrors, pip=pip)
    network = msgspec.structs.replace(finished.site.network, mirrors=other)
    words = added_words(["pip:zarr==2.18.3"])
    plan = extended_plan(finished, base_of(finished), words, CATALOG, network=network, allow_unsupported=True)
    assert pip in kit(plan).files["files/site/pip.conf"].text
    assert plan.site.name == finished.site.name and plan.job == finished.job
