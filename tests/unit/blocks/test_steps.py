"""A step hides no failure: not of a part of a pipe, and not of the block that makes it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpcgen.blocks.steps import Packages, StepError, pipe, run
from tests.conftest import Command


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize(
    ("commands", "succeeds", "printed"),
    [
        (["cat /nonexistent", "cat"], False, ""),
        (["echo a", "false", "cat"], False, ""),
        (["echo a", "grep b"], False, ""),
        (["echo a", "cat"], True, "a\n"),
        (["printf 'a\\nb\\n'", "sed 's|a|x;y|'", "cat > out"], True, ""),
        (["printf 'b\\na\\n'", "sort", "sed s/a/c/"], True, "c\nb\n"),
    ],
)
def test_a_pipe_fails_when_any_part_fails(
    shell: str, commands: list[str], succeeds: bool, printed: str, tmp_path: Path
) -> None:
    script = f"{pipe(*commands)} && echo went on"
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode == 0) is succeeds
    if succeeds:
        assert done.stdout == f"{printed}went on\n"
    else:
        assert "went on" not in done.stdout


@pytest.mark.parametrize("line", ["cat /nonexistent | tee x", "make || true", "cd a && make", "sh -c 'a; b'"])
def test_a_step_of_several_commands_on_a_line_is_refused(line: str) -> None:
    with pytest.raises(StepError, match=r"a command of step 'try' has .* outside quotes"):
        run("try", line)
    with pytest.raises(StepError, match="a command of a pipe has"):
        pipe(line, "cat")


def test_a_pipe_is_one_command_of_a_step() -> None:
    step = run("patch", pipe("zcat x.gz", "patch -p1"), "make")
    assert len(step.commands) == 2


def test_packages_are_a_list() -> None:
    with pytest.raises(
        StepError, match=r"packages for apt are given as a text: 'gcc make'\n  expected: .*'gcc', 'make'"
    ):
        Packages(build={"apt": "gcc make"})  # type: ignore[dict-item]


BLOCK = """\
from hpcgen.blocks.base import Block, need
from hpcgen.blocks.steps import Packages, run


class Petsc(Block):
    '''PETSc.'''

    name = "petsc"
    needs = (need("mpi"),)

    METHOD
"""
MISTAKES = [
    (
        "def build(self, ctx):\n        yield run('x', 'true')\n        ctx.use('mpii')",
        "petsc.py:13 in build(): KeyError: 'mpii'",
    ),
    ("def build(self, ctx):\n        return 1 / 0", "petsc.py:12 in build(): ZeroDivisionError: division by zero"),
    ("def build(self, ctx):\n        run('x', 'true')", "petsc.py:11 in build(): build() gives no result"),
    ("def build(self, ctx):\n        yield 'make'", "build() yields 'make', which is not a step"),
    ("def build(self, ctx):\n        yield run('x', 'a | b')", "petsc.py:12 in build(): a command of step 'x' has |"),
    (
        "def packages(self, ctx):\n        return Packages(run={'apt': 'gcc'})",
        "petsc.py:12 in packages(): packages for",
    ),
    ("def test(self, ctx):\n        return ctx.release.archives['x']", "petsc.py:12 in test(): KeyError: 'x'"),
    ("@classmethod\n    def preference(cls, facts):\n        return facts.nothing", "in preference(): AttributeError:"),
    ("@classmethod\n    def defaults(cls, facts):\n        return facts['x']", "in defaults(): TypeError:"),
    ("needs = (need('mpi', when=lambda s: s.x),)", "petsc.py:11 in <lambda>(): AttributeError:"),
    ("x = {}['y']", "petsc.py:11: "),
    ("def build(self, ctx:", "petsc.py:11: "),
]


@pytest.mark.parametrize(("method", "said"), MISTAKES)
def test_what_goes_wrong_in_a_block_is_told_as_the_blocks(
    hpcgen: Command, collection: Path, method: str, said: str
) -> None:
    blocks = collection / "building_blocks"
    (blocks / "petsc.py").write_text(BLOCK.replace("METHOD", method))
    (blocks / "petsc.yaml").write_text('block: petsc\nreleases:\n  "1.0": {}\n')
    (blocks / "virtuals.yaml").write_text("virtuals: {solver: [petsc]}\n")
    stack = collection / "recipes" / "s.yaml"
    stack.write_text("name: s\ntitle: t\nblocks: {mpi: {}, solver: {}}\nrun: {command: [run]}\n")
    done = hpcgen("--collection", str(collection), "render", "--site", "workstation", "--stack", "s")
    assert done.returncode == 3, done.stderr
    assert said in done.stderr
    assert "bug in hpcgen" not in done.stderr


def test_the_place_is_in_the_blocks_own_file_also_where_a_class_that_it_extends_calls_it(
    hpcgen: Command, collection: Path
) -> None:
    file = collection / "building_blocks" / "petsc.py"
    file.write_text(
        BLOCK.replace("(Block)", "(AutotoolsBlock)")
        .replace("import Block,", "import")
        .replace("METHOD", "def settings(self, ctx):\n        return ctx.release.values['x']")
        .replace("from hpcgen", "from hpcgen.blocks.autotools import AutotoolsBlock\nfrom hpcgen", 1)
    )
    row = "archives: {source: {url: https://example.org/p.tar.gz, sha256: " + "0" * 64 + "}}"
    file.with_suffix(".yaml").write_text(f'block: petsc\nreleases:\n  "1.0": {{{row}}}\n')
    words = ["--collection", str(collection), "render", "--site", "workstation", "--stack", "mpi-hello"]
    done = hpcgen(*words, "--add", "petsc")
    assert done.returncode == 3
    assert "petsc.py:13 in settings(): KeyError: 'x'" in done.stderr
