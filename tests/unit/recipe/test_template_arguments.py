"""``{{ name }}`` in what a profile, a stack, a lock or a block says: no definition file has it, and no word is lost."""

from __future__ import annotations

import re
import shlex
import subprocess

import msgspec
import pytest

from hpcgen.blocks.steps import command, run
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.plan import Plan
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.formats import FORMATS, format_for
from hpcgen.recipe.stages import Assembly
from tests.helpers.locks import CATALOG, lock

PAYLOAD = "{{ name }} {{{other}}}"
COMMAND = f"hpcgen render --site {shlex.quote(f'{PAYLOAD}.yaml')} --stack mpi-hello -- echo {shlex.quote(PAYLOAD)}"
replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def made() -> tuple[Plan, Assembly]:
    """A plan and its assembly with the payload wherever text of others reaches a recipe."""
    plan = replace(lock("mpi-hello").plan, command=COMMAND, hpcgen=PAYLOAD)
    found = assemble(plan, CATALOG)
    steps = [*found.builder.steps, (f"ours {PAYLOAD}", run(f"about {PAYLOAD}", command("true")))]
    stages = {
        "builder": replace(found.builder, steps=steps, arguments={"OURS": PAYLOAD}),
        "final": replace(found.final, environment={**found.final.environment, "OURS": PAYLOAD}),
    }
    notes = [*found.base_notes, f"a note of {PAYLOAD}"]
    labels = {**found.labels, "org.opencontainers.image.description": f"About {PAYLOAD}"}
    return plan, replace(found, **stages, labels=labels, base_notes=notes)


def test_no_definition_file_has_one(made: tuple[Plan, Assembly]) -> None:
    text = format_for("singularity").recipe(*made).text
    assert "{{" not in text
    assert "org.opencontainers.image.description About { { name }} { { {other}}}" in text
    # What a shell reads is the same to it: the command at the top, variables, what a step says as it begins.
    [told] = re.findall(r"^# made by hpcgen .*?: (hpcgen render .*)$", text, re.MULTILINE)
    assert shlex.split(told) == shlex.split(COMMAND)
    exports = re.findall(r"^    export (OURS=.*)$", text, re.MULTILINE)
    assert len(exports) == 3 and {shlex.split(each)[0] for each in exports} == {f"OURS={PAYLOAD}"}
    [echo] = re.findall(r"^ *(echo .*ours .*)$", text, re.MULTILINE)
    said = subprocess.run(["sh", "-c", echo], capture_output=True, text=True).stdout
    assert said.endswith(f": ours {PAYLOAD}: about {PAYLOAD}\n")


@pytest.mark.parametrize("name", FORMATS.names())
def test_in_every_format_it_stays_in_its_line(made: tuple[Plan, Assembly], name: str) -> None:
    plan, assembly = made
    text = format_for(name).recipe(plan, assembly).text
    lines = [line for line in text.splitlines() if "made by hpcgen" in line or "a note of" in line]
    assert len(lines) == 2 and all(line.startswith("# ") for line in lines)


def test_a_blocks_own_command_cannot_be_rewritten_and_is_refused(made: tuple[Plan, Assembly]) -> None:
    plan, assembly = made
    steps = [*assembly.builder.steps, ("ours", run("print", 'echo "{{ name }}"'))]
    own = replace(assembly, builder=replace(assembly.builder, steps=steps))
    with pytest.raises(PolicyError, match="a definition file cannot hold") as raised:
        format_for("singularity").recipe(plan, own)
    assert 'echo "{{ name }}"' in str(raised.value)
    good = replace(assembly, builder=replace(assembly.builder, steps=[("ours", run("print", "echo '{''{ name }}'"))]))
    assert "{{" not in format_for("singularity").recipe(plan, good).text
