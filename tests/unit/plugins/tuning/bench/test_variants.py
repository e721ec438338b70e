"""What may vary: every combination, and refusals that say what would be right."""

from __future__ import annotations

import pytest

from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.bench.variants import Variant, parse_variants


def test_every_combination_and_the_first_of_each_first() -> None:
    found = parse_variants(["threads=2,1", "compiler=none,xla", "env.KMP_BLOCKTIME=0,1"])
    assert len(found) == 8
    assert found[0] == Variant(threads=2, compiler="none", environment={"KMP_BLOCKTIME": "0"})
    assert str(found[-1]) == "threads=1 compiler=xla env.KMP_BLOCKTIME=1"


def test_layouts_vary_ranks_and_threads_together() -> None:
    assert parse_variants(["env.A=1", "env.B=2"], ["2x1", "1x2"]) == [
        Variant(ranks=2, threads=1, environment={"A": "1", "B": "2"}),
        Variant(ranks=1, threads=2, environment={"A": "1", "B": "2"}),
    ]
    assert str(parse_variants([], ["2x8"])[0]) == "layout=2x8"


def test_without_anything_there_is_one_and_no_combination_twice() -> None:
    assert parse_variants() == [Variant()]
    assert str(Variant()) == "as the job is"
    assert len(parse_variants(["threads=1,1,2"])) == 2


@pytest.mark.parametrize(
    ("vary", "layouts", "said"),
    [
        (["thread=1"], [], "did you mean threads?"),
        (["threads=0"], [], "threads cannot be '0'"),
        (["threads=two"], [], "threads cannot be 'two'"),
        (["compiler=torchcompile"], [], "did you mean torch.compile?"),
        (["allocator=gcmalloc"], [], "tcmalloc"),
        (["precision=fp31"], [], "precision cannot be 'fp31'"),
        (["threads"], [], "NAME=VALUE,VALUE"),
        (["threads=1", "threads=2"], [], "put them into one"),
        (["threads=1"], ["1x2"], "varies twice"),
        (["env.LD_PRELOAD=/x.so"], [], "--vary allocator="),
        (["env.A B=1"], [], "an environment variable's name"),
        (["env.A=1\n2"], [], "a line break"),
        ([], ["2*8"], "such as 2x8"),
        ([], ["0x8"], "'0x8' is not a layout"),
    ],
)
def test_refusals(vary: list[str], layouts: list[str], said: str) -> None:
    with pytest.raises(InputError, match=r"--vary|--layout") as raised:
        parse_variants(vary, layouts)
    assert said in str(raised.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(InputError) as raised:
        parse_variants(["compiler=gcc,none,xl", "batches=3"], ["x"])
    assert len(raised.value.problems) == 4
