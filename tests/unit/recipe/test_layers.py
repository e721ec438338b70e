"""Which steps share a layer of an image, and how many instructions and layers whole recipes have."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hpcgen.backends.engines.steps import dockerfile_steps
from hpcgen.blocks.steps import Image, StepError, TextFile, run
from hpcgen.kit.folder import read_kit
from hpcgen.recipe.assemble import content_hash
from hpcgen.recipe.formats.base import layers, sections
from hpcgen.recipe.stages import Stage

GOLDEN = Path(__file__).parents[2] / "golden"
FILE = TextFile("files/tests/step.py", "/opt/later/step.py", "")
STEPS = [
    ("gnu 12", run("choose", "ln -s gcc-12 gcc", joins="next")),
    ("mpi 4", run("fetch", "curl mpi")),
    ("mpi 4", run("compile", "cd mpi", "make")),
    ("mpi 4", run("install", "make install", joins="previous")),
    ("later 1", run("program", FILE)),
    ("hpcgen", run("remove", "rm -rf build", joins="previous")),
]


def test_steps_share_a_layer_with_what_they_belong_to() -> None:
    """What is fetched and what is compiled stay apart; a removal joins commands, not the files after them."""
    found = layers(STEPS)
    assert [[step.about for _, step in layer.steps] for layer in found] == [
        ["choose", "fetch"],
        ["compile", "install", "remove"],
        ["program"],
    ]


def test_a_layer_is_told_by_the_step_that_takes_the_time() -> None:
    """A failing build names its block first, and whatever else could have failed there."""
    first, second, _ = layers(STEPS)
    assert (first.label, first.about) == ("mpi 4", "fetch; gnu 12: choose")
    assert (second.label, second.about) == ("mpi 4", "compile, install")
    assert [about for about, _ in sections(STEPS)] == [
        "gnu 12: choose; mpi 4: fetch",
        "mpi 4: compile, install; hpcgen: remove",
        "later 1: program",
    ]


def test_a_step_that_leads_into_the_next_stays_in_its_folder() -> None:
    with pytest.raises(StepError, match="joins the next one and changes the folder"):
        run("configure", "cd source", "./configure", joins="next")


def test_the_plan_hash_does_not_hang_on_layers() -> None:
    apart = [(label, msgspec.structs.replace(step, joins="")) for label, step in STEPS]
    one, other = (Stage("builder", Image("debian:12"), steps=steps) for steps in (STEPS, apart))
    one.own, other.copies, one.copies = ["/app"], ["/app", "/opt/python"], ["/app", "/opt/python"]
    assert content_hash([one]) == content_hash([other])


@pytest.mark.parametrize(
    ("kit", "instructions", "layers"),
    [
        ("workstation/mpi-hello", [9, 12], 8),
        ("workstation/onnxruntime", [7, 11], 7),
        ("workstation/tf-horovod", [18, 14], 10),
        ("supermuc/mpi-hello", [10, 12], 8),
        ("supermuc/onnxruntime", [7, 11], 7),
        ("supermuc/tf-horovod", [25, 14], 10),
    ],
)
def test_recipes_have_few_instructions(kit: str, instructions: list[int], layers: int) -> None:
    """Each is a step of the engine, which costs seconds: at most so many in each stage, and layers of the image."""
    recipe = dockerfile_steps(read_kit(GOLDEN / kit).recipe)
    assert [found <= most for found, most in zip(recipe.instructions, instructions, strict=True)] == [True, True]
    assert recipe.steps[-1].layer - 1 <= layers
