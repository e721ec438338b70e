"""`hpcgen check` on blocks and whole collections: all mistakes at once, and no block takes the command down."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.cli import block_trial
from hpcgen.core.errors import InputError
from tests.conftest import ROOT, Command

BLOCK = """\
from hpcgen.blocks.base import Block, need
from hpcgen.blocks.steps import Packages, Runtime, command, run


class Mumps(Block):
    '''MUMPS.  Source: https://mumps-solver.org'''

    name = "mumps"
    needs = (need("mpi"),)

    METHOD
"""
NEEDS = "one of this block's needs: mpi, mpich"
MORE = "mumps.py:12:9: the steps of _more() are never yielded, so they never run\n  remedy: write yield from before it"
BUILD = "def build(self, ctx):\n        "


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is tried in the process of the test: a tenth of the time, for the tests of what is said of it."""

    def trial(path: Path, collections: list[Path]) -> None:
        block_trial._problems(path, Catalog(collections)).raise_as(InputError)

    monkeypatch.setattr(block_trial, "trial", trial)


def check(hpcgen: Command, collection: Path, method: str, table: str = '  "1.0": {}\n') -> tuple[int, str]:
    """Exit code and messages of a check of one block."""
    file = collection / "building_blocks" / "mumps.py"
    file.write_text(BLOCK.replace("METHOD", method))
    if table:
        file.with_suffix(".yaml").write_text(f"block: mumps\nreleases:\n{table}")
    done = hpcgen("--trust-collections", "check", str(file))
    assert "bug in hpcgen" not in done.stderr
    return done.returncode, done.stderr


MISTAKES = [
    (BUILD + "yield run('x', 'a && b')", "mumps.py:12 in build(): a command of step 'x' has && outside quotes: a && b"),
    (BUILD + "yield run('x', 'a; b')", "has ; outside quotes"),
    (BUILD + "yield run('x', 'a | b')", "remedy: use pipe(first, second)"),
    (BUILD + "yield run('x', 'a || true')", "has || outside quotes"),
    (BUILD + "yield run('x', command('sh', '-c', 'a | b'))", "has | outside quotes"),
    (
        BUILD + "run('x', 'true')\n        yield run('y', 'true')",
        "mumps.py:12:9: this step is created but never yielded",
    ),
    (BUILD + "run('x', 'true')", "build() gives no result"),
    (
        BUILD + "step = run('x', 'true')\n        yield run('y', 'true')",
        "build(): the step 'x' is created but never yielded",
    ),
    (
        BUILD + "self._more()\n        yield run('y', 'true')\n\n    def _more(self):\n        yield run('x', 'true')",
        MORE,
    ),
    (BUILD + "yield run('x', command('make', '||', 'true'))", "a command of step 'x' has '||' as a word"),
    (
        BUILD + "yield run('x', ctx.use('mpii').prefix)",
        "mumps.py:12 in build(): KeyError: 'mpii'\n  expected: " + NEEDS,
    ),
    (BUILD + "yield run('x', *ctx.fetch(ctx.archive()))", "KeyError: 'source'\n  expected: one of the archives"),
    (BUILD + "yield run('x', ctx.release.values['a'])", "mumps.py:12 in build(): KeyError: 'a'\n  remedy: correct"),
    (
        "def test(self, ctx):\n        return 'true'",
        "mumps.py:11 in test(): test() gives 'true'\n  expected: a list of Test",
    ),
    ("def test(self, ctx):\n        return ['true']", "test() gives 'true' in its list\n  expected: Tests alone"),
    ("def environment(self, ctx):\n        return {'A': 'b'}", "gives {'A': 'b'}\n  expected: Environment(...)"),
    ("def runtime(self, ctx):\n        return Runtime(copies='/opt')", "copies is given as a text: '/opt'"),
    ("def packages(self, ctx):\n        return Packages(run={'apt': 'gcc', 'dnf': ['gcc']})", "given as a text: 'gcc'"),
    ("def packages(self, ctx):\n        return Packages(run={'apt': ['gcc']})", "only: rockylinux has dnf"),
    (
        "def packages(self, ctx):\n        it = {'apt': ['gcc']}\n        return Packages(run=it)",
        "packages for apt only",
    ),
    ("def packages(self, ctx):\n        return Packages(build={'dnf': ['gcc']})", "packages for dnf only"),
    ("def biuld(self, ctx):\n        yield run('x', 'true')", "mumps.py:11:1: a block has no method biuld()"),
    ("def biuld(self, ctx):\n        yield run('x', 'true')", "did you mean build?"),
    ("needs = (need('pyhton'),)", "it needs 'pyhton', which is not a block\n  remedy: did you mean python or pytorch?"),
    ("needs = (need('mpi', '=>4'),)", "'=>4' is not a version range"),
    ("provides = ('mpi',)", "it provides mpi, and virtuals.yaml does not list it"),
    ("__doc__ = ''", "Mumps has no docstring"),
    ("x = 1 +", "mumps.py:11: "),
    ("raise KeyError('x')", "mumps.py:11: "),
    ("name = 'other'", "has no block named 'mumps'"),
]
ENDS = [
    ("import os; os._exit(3)", "mumps.py: its code ended the process with status 3"),
    ("import sys; sys.exit('enough')", "its code ended the process with status 1: enough"),
    ("import os; os.kill(os.getpid(), 11)", "its code ended the process with SIGSEGV"),
]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("method", "said"), MISTAKES)
def test_a_mistake_in_a_block_is_found(hpcgen: Command, collection: Path, method: str, said: str) -> None:
    code, messages = check(hpcgen, collection, method)
    assert code == 3
    assert said in messages


@pytest.mark.parametrize(("method", "said"), [*ENDS, MISTAKES[0], MISTAKES[-2]])
def test_a_block_is_tried_in_a_process_of_its_own(hpcgen: Command, collection: Path, method: str, said: str) -> None:
    code, messages = check(hpcgen, collection, method)
    assert code == 3
    assert said in messages


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("method", "said"),
    [
        (
            BUILD + "run('x', 'true')\n        yield run('y', 'true')",
            "in build(): the step 'x' is created but never yielded",
        ),
        (
            BUILD + "yield run('x', ctx.use('mpii').prefix)",
            "mumps.py:12 in build(): KeyError: 'mpii'\n  expected: " + NEEDS,
        ),
        (
            BUILD + "yield run('x', 'make || true')",
            "mumps.py:12 in build(): a command of step 'x' has || outside quotes",
        ),
        ("def test(self, ctx):\n        return 'true'", "mumps.py:11 in test(): test() gives 'true'"),
        (
            "def packages(self, ctx):\n        return Packages(run={'dnf': ['gcc']})",
            "packages for dnf only: ubuntu has apt",
        ),
    ],
)
@pytest.mark.parametrize("command", ["plan", "render"])
def test_a_plan_tells_it_too(hpcgen: Command, collection: Path, command: str, method: str, said: str) -> None:
    """Without a check before it, and as the block's mistake."""
    check(hpcgen, collection, method)
    (collection / "recipes" / "tool.yaml").write_text(
        "name: tool\ntitle: x\nblocks: {mumps: {}}\nrun: {command: [sh]}\n"
    )
    words = [command, "--site", "workstation", "--stack", "tool", *(["-o", "kit"] if command == "render" else [])]
    done = hpcgen("--collection", str(collection), *words)
    assert (done.returncode, said in done.stderr) == (3, True), done.stderr


def test_a_step_that_another_stands_for_is_none_too_many(hpcgen: Command, collection: Path) -> None:
    again = "step = run('x', 'true')\n        yield run('x', *step.commands, 'true')"
    assert check(hpcgen, collection, BUILD + again)[0] == 0


def test_a_block_without_a_release_table_is_told_so(hpcgen: Command, collection: Path) -> None:
    code, messages = check(hpcgen, collection, "", table="")
    assert code == 3
    assert "mumps has no release table\n  expected: building_blocks/mumps.yaml" in messages


def test_a_block_that_never_ends_is_ended(hpcgen: Command, collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_trial, "LIMIT_S", 1.0)
    code, messages = check(hpcgen, collection, BUILD + "while True: pass")
    assert code == 3
    assert "mumps.py: its code did not end within 1 seconds" in messages


def test_what_a_block_prints_is_no_result(hpcgen: Command, collection: Path) -> None:
    code, messages = check(hpcgen, collection, "print('[]')\n    " + BUILD + "yield run('x', 'a | b')")
    assert code == 3
    assert "has | outside quotes" in messages


def test_a_right_block_is_right(hpcgen: Command, collection: Path) -> None:
    method = "def packages(self, ctx):\n        return Packages(run={'apt': ['a'], 'dnf': ['b']})\n\n    "
    code, messages = check(hpcgen, collection, method + BUILD + "yield run('x', command('sh', '-c', 'make'))")
    assert (code, messages.count("error")) == (0, 0), messages


def test_a_collection_is_checked_as_a_whole(hpcgen: Command, collection: Path) -> None:
    check(hpcgen, collection, BUILD + "yield run('x', 'a | b')", table='  "1.0": {licence: free}\n')
    (collection / "site_profiles" / "mine.yaml").write_text("name: mine\nextends: workstation\nfabrik: {}\n")
    (collection / "site_profiles" / "other.yaml").write_text("name: other\nextends: mine\n")
    (collection / "recipes" / "s.yaml").write_text(
        "name: s\ntitle: t\nblocks: {mumps: {options: {x: 1}}}\nrun: {command: [run]}\n"
    )
    (collection / "engines").mkdir()
    (collection / "engines" / "own.py").write_text("class Own:\n    name = 'another'\n")
    done = hpcgen("--trust-collections", "check", str(collection))
    assert done.returncode == 3
    for said in (
        "mine.yaml:3:1: `fabrik` is not known",
        "s.yaml:3:31: block mumps has no option 'x'",
        "mumps.yaml:3:20: 'free' is not an SPDX licence expression",
        "mumps.py:12 in build()",
        "has no engine named 'own'",
    ):
        assert done.stderr.count(said) == 1, done.stderr


def test_a_folder_without_anything_to_check_is_an_error(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = hpcgen("check", "empty")
    assert done.returncode == 3
    assert "empty: nothing to check in this folder" in done.stderr


@pytest.mark.usefixtures("here")
def test_what_is_shipped_keeps_the_rules(hpcgen: Command) -> None:
    done = hpcgen("check")
    assert done.returncode == 0, done.stderr
    right = [
        Path(line.removeprefix("hpcgen: ").removesuffix(": ok"))
        for line in done.stderr.splitlines()
        if line.endswith(": ok")
    ]
    checked = {path.relative_to(ROOT) for path in right}
    # Each profile, stack, table and block, of which there are files.
    for folder, ending in (
        ("site_profiles", "yaml"),
        ("recipes", "yaml"),
        ("building_blocks", "yaml"),
        ("building_blocks", "py"),
    ):
        there = {path.relative_to(ROOT) for path in (ROOT / folder).glob(f"[!_.]*.{ending}")}
        assert there and there <= checked, folder


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("measurements/a.jsonl", '{"workload": {"name": "a"}}\n', "a.jsonl:1"),
        ("measurements/a.yaml", "series: [{workload: a}]\nworkloads: {}\n", "a.yaml:1:10"),
        ("request.yaml", "kind: ai_training\nframework: pytroch\n", "request.yaml:2:12"),
        ("recipes/own.yaml", "name: own\ntitle: t\nextends: tf\nsuits: [{kinds: [hpc], framework: petcs}]\n", "4:"),
    ],
)
def test_measurements_requests_and_what_stacks_suit_are_checked(
    hpcgen: Command, collection: Path, file: str, text: str, said: str
) -> None:
    path = collection / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    done = hpcgen("--trust-collections", "check", str(path))
    assert done.returncode
    assert said in done.stderr
