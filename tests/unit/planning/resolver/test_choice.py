"""What is chosen first, in which form, and what is not looked at to choose it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Literal

import pytest

import hpcgen
from hpcgen.blocks.base import Block, BlockOptions, Need, need
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.release import Release, ReleaseWay
from tests.helpers.random_questions import SITE


class Parts(BlockOptions, frozen=True):
    """A toolkit of which others may need a part."""

    compiler: Literal["yes", "no"] = "yes"
    manual: Literal["yes", "no"] = "yes"


LIBRARIES = {"compiler": "no", "manual": "no"}


def block(name: str, rows: Mapping[str, Release] | None = None, *needs: Need, **more: Any) -> type[Block]:
    """A class for a made-up block; one row without any condition if ``rows`` is None."""
    return type(name, (Block,), {"name": name, "needs": needs, "releases": rows or {"1": Release()}, **more})


def planned(stack: list[str], *blocks: type[Block], **more: Any) -> dict[str, PlannedBlock]:
    catalog = Catalog([], blocks)
    it = {"name": "it", "title": "t", "blocks": {name: {} for name in stack}, "run": {"command": ["it"], "mpi": False}}
    site = hpcgen.load_site({**SITE, **more.pop("site", {})})
    plan = hpcgen.plan(site, hpcgen.load_stack(it, catalog=catalog), catalog=catalog, **more)
    return {each.name: each for each in plan.blocks}


def test_what_some_distribution_lacks_in_some_version_is_chosen_before_the_rest() -> None:
    """Though its name comes later."""
    found = planned(
        ["all"],
        block("all", None, need("apart"), need("bound")),
        block("apart", {"1": Release(), "2": Release(accepts={"bound": "==1"})}, need("bound")),
        block("bound", {"1": Release(), "2": Release(on={"ubuntu": ">=20.04"})}),
    )
    assert (found["bound"].version, found["apart"].version) == ("2", "1")


def test_the_newest_comes_first_though_an_older_one_names_the_distribution() -> None:
    found = planned(["tool"], block("tool", {"1": Release(on={"ubuntu": ">=20.04"}), "2": Release()}))
    assert found["tool"].version == "2"


def test_what_leaves_a_part_out_is_passed_over_for_a_form_that_leaves_out_less() -> None:
    """The release has a manual in any case, so of both parts only the compiler can be left out, as another one does."""
    found = planned(
        ["all"],
        block("all", None, need("toolkit", enough=LIBRARIES), need("user")),
        block("toolkit", {"1": Release(only={"manual": ["yes"]})}, Options=Parts),
        block("user", None, need("toolkit", enough={"compiler": "no"})),
    )
    assert found["toolkit"].options == {"compiler": "no", "manual": "yes"}


SOURCE_TOO = classmethod(lambda cls, facts: {"install": ("source",)})


class Install(BlockOptions, frozen=True):
    """How it is had."""

    install: Literal["wheel", "source"] = "wheel"


def tool() -> type[Block]:
    """A block of which only the middle release has a wheel; of its source it needs a compiler."""
    rows = {
        "1": Release(only={"install": ["source"]}),
        "2": Release(only={"install": ["wheel", "source"]}),
        "3": Release(ways=[ReleaseWay(only={"install": ["source"]})]),
    }
    compiled = need("compiler", when=lambda situation: situation.options.install == "source")
    return block("tool", rows, compiled, Options=Install, alternatives=SOURCE_TOO)


@pytest.mark.parametrize(
    ("settings", "version", "install"),
    [
        ([], "2", "wheel"),
        (["tool.version=1"], "1", "source"),
        (["tool.version=>=3"], "3", "source"),
        (["tool.install=source"], "3", "source"),
    ],
)
def test_a_default_gives_way_to_a_release_that_another_value_has(
    settings: list[str], version: str, install: str
) -> None:
    """Also where another block asks for that release; and what it then needs comes with it."""
    found = planned(["tool"], tool(), block("compiler"), settings=settings)
    assert (found["tool"].version, found["tool"].options["install"]) == (version, install)
    assert ("compiler" in found) == (install == "source")


def test_a_default_gives_way_for_another_block_and_what_the_user_set_never_does() -> None:
    user = block("user", {"1": Release(accepts={"tool": "==1"})}, need("tool"))
    assert planned(["user"], tool(), user, block("compiler"))["tool"].options["install"] == "source"
    with pytest.raises(ConflictError, match=r"tool\.install=wheel"):
        planned(["user", "tool"], tool(), user, block("compiler"), settings=["tool.install=wheel"])


@pytest.mark.parametrize("stack", [["libraries", "no_compiler"], ["no_compiler", "libraries"]])
def test_a_block_that_stands_for_two_virtuals_is_there_in_the_smallest_form_that_serves_both(stack: list[str]) -> None:
    found = planned(
        stack,
        block("libraries", None, need("one", enough=LIBRARIES)),
        block("no_compiler", None, need("other", enough={"compiler": "no"})),
        block("toolkit", None, Options=Parts, provides=("one", "other")),
    )
    assert found["toolkit"].options == {"compiler": "no", "manual": "yes"}


def test_a_block_that_stands_for_two_virtuals_is_there_in_a_version_that_serves_both() -> None:
    found = planned(
        ["all"],
        block("all", None, need("one"), need("other", "==1")),
        block("toolkit", {"1": Release(), "2": Release()}, provides=("one", "other")),
    )
    assert found["toolkit"].version == "1"


def test_a_newer_version_that_needs_another_version_of_what_is_chosen_says_so() -> None:
    found = planned(
        ["all"],
        block("all", None, need("lib", "==1"), need("tool")),
        block("lib", {"1": Release(), "2": Release()}),
        block("tool", {"1": Release(), "2": Release(accepts={"lib": "==2"})}, need("lib")),
    )
    assert str(found["tool"].reasons[-1]) == "not 2: it needs lib ==2, and lib 1 is here"


def test_a_newer_version_that_leaves_nothing_for_what_was_chosen_before_names_that() -> None:
    found = planned(
        ["lib", "app"],
        block("lib", {"1": Release(), "2": Release()}),
        block("between", {n: Release(accepts={"lib": f"=={n}"}) for n in ("1", "2")}, need("lib")),
        block(
            "app", {"1": Release(accepts={"between": "==2"}), "2": Release(accepts={"between": "==1"})}, need("between")
        ),
    )
    assert str(found["app"].reasons[-1]) == (
        "not 2: it does not fit together with the rest: app 2 asks for between ==1; between 1 asks for lib ==1; lib 2"
    )


@pytest.mark.parametrize(("site", "stack"), [("supermuc", "tf-horovod"), ("workstation", "mpi-hello")])
def test_an_ordinary_question_loads_no_solver(site: str, stack: str) -> None:
    code = f"import hpcgen, sys; hpcgen.plan({site!r}, {stack!r}); print('pysolvers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_release_that_is_no_default_is_taken_only_where_it_is_asked_for_or_nothing_else_fits() -> None:
    breaks = Release(not_default="it deadlocks with the plugin")
    library = block("library", {"1": Release(), "2": breaks})
    found = planned(["library"], library)["library"]
    assert found.version == "1"
    assert str(found.reasons[-1]) == "not 2: not a default (it deadlocks with the plugin)"
    assert planned(["library"], library, settings={"library.version": ">=2"})["library"].version == "2"
    program = block("program", None, need("library", ">=2"))
    assert planned(["program"], library, program)["library"].version == "2"


def test_a_release_that_is_no_default_comes_after_what_another_distribution_has() -> None:
    rows = {"1": Release(on={"debian": "==12"}), "2": Release(on={"ubuntu": ">=20.04"}, not_default="too new")}
    assert planned(["tool"], block("tool", rows))["tool"].version == "1"


def test_a_compiler_that_is_named_for_an_option_leaves_the_base_as_it_is() -> None:
    """A site may have images of that one alone; with a version it decides."""

    def base_of(gnu: dict[str, Any] | None) -> tuple[str, str]:
        blocks = {"mpi": {}, **({"gnu": gnu} if gnu is not None else {})}
        it = {"name": "it", "title": "t", "blocks": blocks, "run": {"command": ["it"]}}
        site = hpcgen.load_site({**SITE, "image": {"distribution": "debian"}})
        found = hpcgen.plan(site, hpcgen.load_stack(it)).blocks
        return found[0].label, next(each.version for each in found if each.name == "gnu")

    plain = base_of(None)
    assert base_of({"options": {"fortran": True}}) == plain
    assert base_of({"version": "13"}) != plain
