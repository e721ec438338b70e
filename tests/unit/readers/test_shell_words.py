"""Shell scripts as words: quotes, comments, here-documents, variables, and what is damaged or without end."""

from __future__ import annotations

import time

import pytest

from hpcgen.readers.shell_script import Script
from hpcgen.readers.shell_values import Values
from hpcgen.readers.shell_words import UnclosedError, commands_in, on_one_line


def started(*lines: str) -> list[str]:
    return [" ".join(each.words) for each in Script("job.sh").read("\n".join(lines)).launched]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("a#b", ["a#b"]),
        ("'a b'c", ["a bc"]),
        ("$TWO", ["x", "y"]),
        ('"$TWO"', ["x y"]),
        ("pre${N}post", ["pre4post"]),
        ("${M:-3}", ["3"]),
        ('"${M:-$N}"', ["4"]),
        ("${EMPTY:-d}", ["d"]),
        ("${EMPTY-d}", []),
        ("${N:+yes}", ["yes"]),
        ('"${LIST[@]}"', ["p q", "r"]),
        ("${LIST[@]}", ["p", "q", "r"]),
        ("${LIST[1]}", ["r"]),
        ("$((N * 8 / 2))", ["16"]),
        ("$((M * 2))", ["$((M * 2))"]),
        ('"$@"', []),
        ("${@:2}", []),
        ("$1", ["$1"]),
        ("'$N'", ["\\$N"]),
        ('"\\$N"', ["\\$N"]),
        ("$'a\\tb'", ["a\tb"]),
        ("$(date +%s)", ["$(date +%s)"]),
        ("${UNKNOWN##*/}", ["${UNKNOWN##*/}"]),
    ],
)
def test_words_become_what_a_shell_makes_of_them(raw: str, words: list[str]) -> None:
    values = Values()
    values.plain.update(TWO="x y", N="4", EMPTY="")
    values.lists["LIST"] = ["p q", "r"]
    assert values.words(raw) == words


def test_what_looks_like_a_command_and_is_none() -> None:
    assert started(
        "cat <<EOF > x  # text",
        "srun ./no it's none",
        "EOF",
        "cat <<-'E'",
        "\tsrun ./no",
        "\tE",
        "# srun ./no",
        "case $1 in",
        "  srun) echo;;",
        "esac",
        "echo 'srun",
        "srun ./no'",
        "srun ./yes a#b # srun ./no",
    ) == ["./yes a#b"]


def test_lines_go_on_with_and_without_a_blank() -> None:
    assert started("srun ./a --x\\", "y \\", "  --z", "srun ./b") == ["./a --xy --z", "./b"]


def test_arrays_defaults_and_functions_are_put_in() -> None:
    assert started(
        "ARGS=(",
        "  --lr 1e-3  # don't",
        '  --name "a b"',
        ")",
        "ARGS+=(--more)",
        'go() { srun ./a "${ARGS[@]}" --seed $1; }',
        "go ${SEED:-3}",
    ) == ["./a --lr 1e-3 --name a b --more --seed 3"]


def test_a_condition_that_nothing_from_outside_meets_is_left_out() -> None:
    lines = 'if [ "${DEBUG:-0}" -eq 1 ]; then', "  X=slow", "  srun ./a --debug", "else", "  srun ./a $X", "fi"
    assert started("X=fast", *lines) == ["./a fast"]
    found = Script("x").read("N=4\nif [ -f here ]; then N=8; fi\nsrun ./a $N").launched
    assert [(each.words, each.doubts) for each in found] == [(["./a", "4"], ["N"])]


def test_loops_are_gone_through_and_variables_of_theirs_with_them() -> None:
    assert started("for s in a b; do", "  out=$s.txt", "  srun ./x -o $out", "done") == ["./x -o a.txt", "./x -o b.txt"]
    assert started("for i in {1..3}; do srun ./x $i; done") == ["./x 1", "./x 2", "./x 3"]
    assert started("for i in {1..30}; do srun ./x $i; done") == ["./x $i"]


def test_a_text_for_a_shell_is_the_program_in_it() -> None:
    assert started('srun bash -c "export RANK=\\$SLURM_PROCID && cd x; python a.py $UNKNOWN"') == [
        "python a.py $UNKNOWN"
    ]
    kept = Script("x").read('srun bash -c "\n  source env.sh\n  python a.py\n"').launched
    assert kept[0].words == ["bash", "-c", "source env.sh; python a.py"]
    assert started("CMD='python a.py --n 2'", "eval $CMD", "$CMD") == ["python a.py --n 2"] * 2
    assert started("cat > s.sh <<EOF", "python a.py $1", "EOF", "srun bash s.sh") == ["python a.py $1"]
    of_lumi = ("cat << EOF > select_gpu", "export ROCR_VISIBLE_DEVICES=\\$SLURM_LOCALID", "exec \\$*", "EOF")
    assert started(*of_lumi, "chmod +x ./select_gpu", "srun ./select_gpu ./warpx inputs") == ["./warpx inputs"]


def test_what_is_never_closed_ends_the_reading_and_is_told() -> None:
    script = Script("job.sh").read("srun ./a\necho 'srun ./b\nsrun ./c\n")
    assert [each.words for each in script.launched] == [["./a"]]
    assert script.unclosed is not None and script.unclosed.line == 2


HOSTILE = {
    "many lines": "srun ./a $X 'b' \"c\"\n" * 100_000,
    "quotes": "\"'" * 20_000,
    "dollars": "$" * 200_000,
    "subshells": "$(" * 100_000,
    "defaults": "${A:-" * 100_000,
    "brackets": "(" * 200_000,
    "braces": "{ " * 50_000,
    "loops": "for i in 1 2 3 4 5 6 7 8; do " * 800 + "srun ./a",
    "loops below each other": "for i in 1 2 3 4 5 6 7 8\ndo\n" * 2000 + "srun ./a",
    "conditions": "if [ a = a ]; then " * 5000 + "srun ./a",
    "a function of itself": "f() { f a; f b; srun ./a; }\nf\n",
    "functions": "".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }}\n" for n in range(200)) + "f0",
    "growing": "A=aaaaaaaa\n" + "A=$A$A$A$A\n" * 300 + "srun ./a $A",
    "growing lists": "A=(a b c d)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 50 + 'srun ./a "${A[@]}"',
    "NUL": "srun ./a \0 \0'\0\n" * 5000,
    "documents": "cat <<A\n" * 5000,
    "backslashes": "srun ./a \\\n" * 50_000,
    "blanks of other kinds": "srun\u2028./a\x0b\x0c\x85 b\n" * 1000,
    "eval": "A='eval $A'\n" + "eval $A\n" * 100,
    "arithmetic": "A=9\n" + "A=$((A*A))\n" * 1000 + "srun ./a $A",
    "shells": 'srun bash -c "' * 1000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_scripts_are_read_in_bounded_time(text: str) -> None:
    begun = time.process_time()
    found = Script("job.sh").read(text)
    assert time.process_time() - begun < 5
    assert all(len(each.words) <= 2000 for each in found.launched)


def test_commands_before_a_damaged_one_are_given() -> None:
    given = []
    with pytest.raises(UnclosedError):
        for each in commands_in("a b\nc 'd"):
            given.append(each.words)
    assert given == [["a", "b"]]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "\n  source set.sh\n  ${PROFILE} python train.py ${args}\n",
            "source set.sh; ${PROFILE} python train.py ${args}",
        ),
        ("if [ -e a ]; then\n  b > c\nelse\n  d # why\nfi\n", "if [ -e a ]; then b > c; else d; fi"),
        ("a &&\n  b \\\n  c", "a && b c"),
        ("a & b | c", "a & b | c"),
        ("for i in 1 2\ndo\n  a $i\ndone", "for i in 1 2; do a $i; done"),
        ("(a\nb)", ""),
        ("cat <<END\ntext\nEND\n", ""),
        ("echo 'two\nlines'", ""),
        ("echo 'open", ""),
    ],
)
def test_a_script_on_one_line_does_the_same(text: str, line: str) -> None:
    assert on_one_line(text) == line
