"""What people get when a file's text does not fit its record."""

from __future__ import annotations

import datetime
import enum
import json
import textwrap
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from hpcgen.core.config.decoding import convert, schema
from hpcgen.core.config.yamlfile import Document, loads
from hpcgen.core.errors import InputError, Position
from hpcgen.core.support import quoting

Name = Annotated[str, Meta(pattern=quoting.NAME_PATTERN, description="a short lower-case name", examples=["cpu"])]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Mpi(Record):
    family: Literal["intel", "mpich", "openmpi"]
    version: str
    path: Annotated[str, Meta(pattern="^/")] | None = None


class Partition(Record):
    ranks_per_node: Annotated[int, Meta(ge=1, description="MPI ranks on each node")]
    memory: Annotated[float, Meta(gt=0, le=4096)] = 1.0
    gpu: bool = False


class Disk(Record, tag_field="kind", tag="disk"):
    size: int


class Tape(Record, tag_field="kind", tag="tape"):
    speed: int = 1


class Site(Record):
    name: Name
    mpi: Mpi | None = None
    partitions: dict[Name, Partition] = {}
    modules: tuple[str, ...] = ()
    labels: Annotated[list[Name], Meta(min_length=1, max_length=3)] | None = None
    pair: tuple[int, str] | None = None
    binds: list[str] | str | None = None
    store: Disk | Tape | None = None
    limit: int | bool | None = None
    checked: datetime.date | None = None
    colour: Colour | None = None
    motd: Annotated[str, Meta(max_length=5)] = ""
    nodes: Annotated[int, Meta(ge=1, le=8)] | None = None
    chunk: Annotated[int, Meta(multiple_of=4)] | None = None
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.nodes == 7:
            raise ValueError("7 nodes do not make a whole rack")


class Rack(Record):
    first: int
    last: int

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise ValueError("`last` comes before `first`")


class Hall(Record):
    racks: dict[str, list[Rack]]


def problems(body: str, type_: type[Any] = Site) -> list[str]:
    with pytest.raises(InputError) as caught:
        convert(loads(textwrap.dedent(body), "f.yaml"), type_)
    return [str(problem) for problem in caught.value.problems]


def problem(body: str) -> str:
    (only,) = problems(body)
    return only


def test_nobody_has_to_quote_a_version_or_unquote_a_count() -> None:
    site = convert(
        loads(
            textwrap.dedent("""\
                name: 2021
                mpi: {family: intel, version: 2021.10}
                partitions:
                  12: {ranks_per_node: '48', memory: 1.50, gpu: true}
                  test: {ranks_per_node: 4, memory: 3}
                modules: [gcc/12, 11, 2.10, on, no]
                pair: [3, 4]
                checked: 2026-01-31
                colour: blue
                extra: {a: 1, b: true, c: null}
                """),
            "f.yaml",
        ),
        Site,
    )
    assert site == Site(
        name="2021",
        mpi=Mpi(family="intel", version="2021.10"),
        partitions={
            "12": Partition(ranks_per_node=48, memory=1.5, gpu=True),
            "test": Partition(ranks_per_node=4, memory=3.0),
        },
        modules=("gcc/12", "11", "2.10", "on", "no"),
        pair=(3, "4"),
        checked=datetime.date(2026, 1, 31),
        colour=Colour.BLUE,
        extra={"a": "1", "b": True, "c": None},
    )


def test_every_mistake_at_once_each_at_its_place() -> None:
    assert problems("""\
        nmae: x
        mpi:
          family: intle
          path: opt
        partitions:
          Bad Name: {ranks_per_node: four}
          cpu:
            ranks_per_node: 0
            memory: 5000
            gpu: yes
            gpus: 4
        modules:
          - a
          - true
          - [b]
        """) == [
        "f.yaml:1:1: `name` is missing\n  expected: a short lower-case name, such as cpu\n  remedy: add `name: …`",
        "f.yaml:1:1: `nmae` is not known\n  remedy: did you mean name?",
        "f.yaml:3:3: `version` is missing in `mpi`\n  expected: a string\n  remedy: add `version: …`",
        "f.yaml:3:11: `family` must be one of intel, mpich, openmpi, not 'intle'\n  remedy: did you mean intel?",
        "f.yaml:4:9: `path` must be a string that matches ^/, not 'opt'",
        "f.yaml:6:3: `Bad Name` cannot be a key in `partitions`: it must be a short lower-case name\n"
        "  expected: such as cpu",
        "f.yaml:6:30: `ranks_per_node` must be a whole number of at least 1, not 'four'\n"
        "  expected: MPI ranks on each node",
        "f.yaml:8:21: `ranks_per_node` must be a whole number of at least 1, not '0'\n"
        "  expected: MPI ranks on each node",
        "f.yaml:9:13: `memory` must be a number more than 0 and at most 4096, not '5000'",
        "f.yaml:10:10: `gpu` must be true or false, not 'yes'\n  remedy: write true",
        "f.yaml:11:5: `gpus` is not known in `cpu`\n  remedy: did you mean gpu?",
        'f.yaml:14:5: `modules[1]` must be a string, not true\n  remedy: write it in quotes: "true"',
        "f.yaml:15:5: `modules[2]` must be a string, not a list of 1",
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("name:", "1:6: `name` is empty; expected a short lower-case name\n"
                  "  expected: such as cpu\n"
                  "  remedy: give it a value, or remove the line"),
        ('name: "a\\n"', "1:7: `name` must be a short lower-case name, not 'a\\n'\n"
                         "  expected: such as cpu"),
        ("mpi: intel", "2:6: `mpi` must be a mapping, that is, indented `key: value` lines, not 'intel'\n"
            "  expected: the keys family, version, path"),
        ("mpi: [intel]",
         "2:6: `mpi` must be a mapping, that is, indented `key: value` lines, not a list of 1\n"
            "  expected: the keys family, version, path"),
        ("mpi: {family: intel, version: }",
         "2:31: `version` is empty; expected a string\n  remedy: give it a value, or remove the line"),
        ("partitions: 4",
         "2:13: `partitions` must be a mapping, that is, indented `key: value` lines, not '4'"),
        ("modules: gcc", "2:10: `modules` must be a list, not 'gcc'\n  remedy: write it as a list: [gcc]"),
        ("labels: []", "2:9: `labels` must have 1 to 3 entries, not 0\n  remedy: add the missing entries"),
        ("labels: [a, b, c, d]", "2:9: `labels` must have 1 to 3 entries, not 4\n  remedy: take some out"),
        ("pair: [1]", "2:7: `pair` must be a list of 2, not a list of 1"),
        ("pair: [x, y]", "2:8: `pair[0]` must be a whole number, not 'x'"),
        ("binds: {a: b}", "2:8: `binds` must be a list or a string, not a mapping"),
        ("binds: [a, {b: c}]", "2:12: `binds[1]` must be a string, not a mapping"),
        ("binds: false", '2:8: `binds` must be a string, not false\n  remedy: write it in quotes: "false"'),
        ("store: {size: 1}", "2:8: `kind` is missing in `store`\n  expected: one of disk, tape\n"
                             "  remedy: add `kind: …`"),
        ("store: {kind: dsik}", "2:15: `kind` cannot be 'dsik'\n  expected: one of disk, tape\n"
                                "  remedy: did you mean disk?"),
        ("store: {kind: disk, size: big}", "2:27: `size` must be a whole number, not 'big'"),
        ("limit: none", "2:8: `limit` must be a whole number or true or false, not 'none'"),
        ("checked: yesterday", "2:10: `checked` must be a date such as 2026-01-31, not 'yesterday'"),
        ("colour: green", "2:9: `colour` must be one of red, blue, not 'green'"),
        ("motd: good morning", "2:7: `motd` must be a string of at most 5 characters, not 'good morning'"),
        ("nodes: 9", "2:8: `nodes` must be a whole number from 1 to 8, not '9'"),
        ("nodes: 4 nodes", "2:8: `nodes` must be a whole number from 1 to 8, not '4 nodes'\n"
                           "  remedy: write only the number, without a unit or separators"),
        ("nodes: 1.5", "2:8: `nodes` must be a whole number from 1 to 8, not '1.5'"),
        ("chunk: 6", "2:8: `chunk` must be a whole number that is a multiple of 4, not '6'"),
        ("nodes: 7", "1:1: 7 nodes do not make a whole rack"),
        ("motd: " + "x" * 100, f"2:7: `motd` must be a string of at most 5 characters, not '{'x' * 57}...'"),
    ],
)  # fmt: skip
def test_one_mistake(line: str, said: str) -> None:
    body = line if line.startswith("name:") else f"name: x\n{line}"
    assert problem(body) == f"f.yaml:{said}"


def test_a_part_of_a_file() -> None:
    document = loads("partitions:\n  cpu: {ranks_per_node: 4}\n  gpu: {ranks_per_node: x}\n", "f.yaml")
    assert convert(document, Partition, ("partitions", "cpu")) == Partition(ranks_per_node=4)
    with pytest.raises(InputError) as caught:
        convert(document, Partition, ("partitions", "gpu"))
    assert [problem.where for problem in caught.value.problems] == [Position("f.yaml", 3, 25)]
    with pytest.raises(InputError) as caught:
        convert(document, Partition, ("partitions", "tpu", "x"))
    assert str(caught.value).startswith("f.yaml:2:3: `tpu` is missing in `partitions`\n  remedy: add it; ")


def test_a_records_own_check_is_told_at_the_record_that_made_it() -> None:
    assert problems(
        """\
        racks:
          a:
            - {first: 1, last: 2}
            - {first: 5, last: 4}
          b:
            - {first: 3, last: 1}
            - {first: x, last: 1}
        """,
        Hall,
    ) == [
        "f.yaml:4:7: `last` comes before `first`",
        "f.yaml:6:7: `last` comes before `first`",
        "f.yaml:7:15: `first` must be a whole number, not 'x'",
    ]


def test_a_kind_that_is_not_known_here_is_told_in_msgspecs_words() -> None:
    class Odd(Record):
        ok: int
        when: list[datetime.timedelta]

    assert problems("ok: 1\nwhen:\n  - PT1H\n  - soon\n", Odd) == ["f.yaml:4:5: Invalid ISO8601 duration"]


def test_what_the_walk_cannot_see_into_is_not_lost() -> None:
    class Loose(TypedDict):
        a: dict[str, list[int]]

    class Tight(TypedDict):
        a: list[int]

    # of a mapping's value msgspec does not tell the key, so the place is the mapping
    assert problems("z: 1\na:\n  b: [1, x]\n", Loose) == ["f.yaml:3:3: Expected `int`, got `str`"]
    assert problems("a:\n  - 1\n  - x\n", Tight) == ["f.yaml:3:5: Expected `int`, got `str`"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.sampled_from(["a", "4", "2.5", "intel", "disk", "2026-01-31", "B b", ""]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        *Site.__struct_fields__,
                        *Mpi.__struct_fields__,
                        "kind",
                        "size",
                        "oops",
                        "ranks_per_node",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=12,
    ).filter(lambda data: isinstance(data, dict) and bool(data))
)
def test_whatever_stands_in_a_file_it_is_taken_or_every_problem_has_a_place(data: dict[str, Any]) -> None:
    body = json.dumps(data)
    document = loads(body, "f.yaml")
    assert document.data == data
    try:
        msgspec.convert(data, Site, strict=False)
    except msgspec.ValidationError:
        with pytest.raises(InputError) as caught:
            convert(document, Site)
        for found in caught.value.problems:
            assert isinstance(found.where, Position)
            assert " - at `$" not in found.message
            assert "Expected `" not in found.message, "msgspec's words, though the walk should know better"
    else:
        assert isinstance(convert(document, Site), Site)


def test_the_published_schema_takes_what_is_taken_and_names_itself() -> None:
    import jsonschema

    published = schema(Site)
    jsonschema.Draft202012Validator.check_schema(published)
    assert published["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert published["title"] == "Site"
    validator = jsonschema.Draft202012Validator(published)
    body = "name: x\nmpi: {family: intel, version: 2021.10}\nmodules: [11, gcc]\nmotd: 12\n"
    assert isinstance(convert(loads(body, "f.yaml"), Site), Site)
    # an editor reads the numbers as numbers
    validator.validate(yaml.safe_load(body))
    for wrong in (
        "name: x\nmodules: 4",
        "name: x\nnmae: y",
        "mpi: {}",
        "name: X",
        "name: x\nmpi: {family: other}",
    ):
        assert not validator.is_valid(yaml.safe_load(wrong)), wrong


def test_the_fast_path_leaves_the_place_to_those_who_ask() -> None:
    class Places(Document):
        def position(self, *args: Any, **kwargs: Any) -> Position:
            raise AssertionError("a right file needs no positions")

    right = loads("name: x", "f.yaml")
    assert convert(Places(right.data, "f.yaml", "name: x"), Site) == Site(name="x")
