"""Whatever text people give: it arrives as it was, or is refused."""

from __future__ import annotations

import ast
import re
import subprocess

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hpcgen.core.errors import InputError
from hpcgen.core.support import quoting

# Text that `plain` lets through, with what is special somewhere made likely.
PRINTABLE = st.text(
    st.one_of(
        st.sampled_from([*list(" \"'\\$`{}()=#!*?~&|;<>-:/@%"), "ü", "β"]),
        st.characters(exclude_categories=("C", "Z")),
    )
).filter(str.isprintable)
ENV_VALUES = PRINTABLE.filter(lambda value: "$" not in value and "\\" not in value)


def by_the_shell(script: str) -> str:
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    return done.stdout.decode()


def message(failing: object) -> str:
    with pytest.raises(InputError) as caught:
        failing()  # type: ignore[operator]
    return str(caught.value)


@settings(max_examples=200, deadline=None)
@example("")
@example("-n")
@example("it's $HOME `id` \\")
@given(PRINTABLE)
def test_a_word_reaches_the_program_as_it_is(word: str) -> None:
    assert by_the_shell(f"printf %s {quoting.sh(word)}") == word


@settings(max_examples=200, deadline=None)
@given(PRINTABLE)
def test_an_assigned_value_reaches_the_variable_as_it_is(value: str) -> None:
    assert by_the_shell(f'set -eu; {quoting.sh_assign("X", value)}; printf %s "$X"') == value


@pytest.mark.parametrize("function", [quoting.sh, quoting.plain])
@pytest.mark.parametrize(
    ("bad", "name"),
    [
        ("a\nb", "a line break"),
        ("a\rb", "a line break"),
        ("a\tb", "a tab"),
        ("a\0b", "a NUL"),
        ("a\x1b[31m", "the character U+001B"),
        ("a\u202eb", "the character U+202E"),
        ("a\u2028b", "the character U+2028"),
        ("a\udc80b", "the character U+DC80"),
    ],
)
def test_control_characters_are_refused(function: object, bad: str, name: str) -> None:
    assert message(lambda: function(bad, "the name")) == (  # type: ignore[operator]
        f"the name contains {name}\n  expected: printable text on one line\n  remedy: remove it"
    )


@pytest.mark.parametrize("write", [quoting.docker_env, quoting.docker_label, quoting.sh_assign])
def test_values_with_control_characters_are_refused_by_name(write: object) -> None:
    assert message(lambda: write("FLAGS", "a\nb")) == (  # type: ignore[operator]
        "the value of FLAGS contains a line break\n  expected: printable text on one line\n  remedy: remove it"
    )


def buildkit_reads(line: str) -> dict[str, str]:
    """One ENV or LABEL line by BuildKit's rules (buildah has the same): NAME="value" or NAME "value"."""
    found = re.fullmatch(r'(?:ENV|LABEL) ([^ ="]+)[= ]"((?:[^"\\]|\\.)*)"', line)
    assert found, line
    assert not re.search(r"(?<!\\)\$(?!\{)", found[2].replace("\\\\", "")), "a reference that was not asked for"
    return {found[1]: re.sub(r'\\(["\\$])', r"\1", found[2])}


def chimage_reads(line: str) -> dict[str, str]:
    """One ENV line by ch-image's grammar (0.31, lib/charliecloud/image.py), in the order in which it chooses.

    WORD is any run without blanks and `=`, quotes included; what is quoted is a Python string.
    """
    rest = line.split(" ", 1)[1]
    word = r"[^ \t\n=]+"
    if re.fullmatch(rf"{word}={word}([ \t]+{word}={word})*", rest):
        pairs = [pair.split("=") for pair in re.split(r"[ \t]+", rest)]
    elif found := re.fullmatch(rf'({word})=("(?:[^"\\]|\\.)*")', rest):
        pairs = [[found[1], found[2]]]
    else:
        pairs = [re.split(r"[ \t]+", rest, maxsplit=1)]
    read = {}
    for name, quoted in pairs:
        if not quoted.startswith('"') and (not quoted.endswith('"') or quoted.endswith('\\"')):
            quoted = f'"{quoted}"'
        assert quoted[-2:] != '\\"'
        read[name] = ast.literal_eval(quoted)
    return read


@example("-O2 -march=native")
@example("x b=c d=e")
@example('" a="')
@given(ENV_VALUES)
def test_all_builders_read_an_env_line_alike(value: str) -> None:
    line = quoting.docker_env("NAME", value)
    assert "\n" not in line
    assert buildkit_reads(line) == {"NAME": value}
    assert chimage_reads(line) == {"NAME": value}


@example("-O2 -march=native")
@given(ENV_VALUES)
def test_all_builders_read_a_label_line_alike(value: str) -> None:
    line = quoting.docker_label("org.example.title", value)
    assert buildkit_reads(line) == chimage_reads(line) == {"org.example.title": value}


def test_lines_as_people_see_them() -> None:
    assert quoting.docker_env("A", "1") == 'ENV A="1"'
    # ch-image would keep the quotes of an ARG as part of its value.
    assert quoting.docker_arg("https_proxy", "http://proxy.example.org:3128") == (
        "ARG https_proxy=http://proxy.example.org:3128"
    )
    assert quoting.docker_arg("no_proxy", "localhost,*.example.org,10.0.0.0/8") == (
        "ARG no_proxy=localhost,*.example.org,10.0.0.0/8"
    )
    assert quoting.docker_arg("A", "two words") == 'ARG A="two words"'
    assert quoting.docker_env("CFLAGS", "-O2 -march=native") == 'ENV CFLAGS "-O2 -march=native"'
    assert quoting.docker_label("a.b", 'say "x"') == 'LABEL a.b="say \\"x\\""'
    assert quoting.sh_assign("A", "it's") == "A='it'\"'\"'s'"


def test_what_builders_do_not_read_alike_is_refused() -> None:
    expected = (
        "\n  expected: a value that every builder reads in the same way\n"
        "  remedy: write the value of the variable itself, or set it in a script"
    )
    assert message(lambda: quoting.docker_env("X", "a$HOME")) == "the value of X, 'a$HOME', contains a $" + expected
    assert message(lambda: quoting.docker_label("x", "5$")) == "the value of x, '5$', contains a $" + expected
    assert message(lambda: quoting.docker_env("X", "a\\")) == (
        "the value of X, 'a\\', contains a backslash\n  expected: a value that every builder reads in the same way\n"
        "  remedy: remove the backslash, or set the variable in a script"
    )


@pytest.mark.parametrize("name", ["", "1A", "A B", "A=B", "A-B", "Ä", "A\n", "A;id"])
def test_names_that_no_variable_can_have(name: str) -> None:
    for write in (quoting.sh_assign, quoting.docker_env):
        assert message(lambda write=write: write(name, "x")) == (
            f"{name!r} cannot be the name of an environment variable\n"
            "  expected: letters, digits and '_', not starting with a digit"
        )


@pytest.mark.parametrize("key", ["", "a b", "a=b", ".a", 'a"', "a\n"])
def test_names_that_no_label_can_have(key: str) -> None:
    assert message(lambda: quoting.docker_label(key, "x")).startswith(f"{key!r} cannot be a label's name\n")


@pytest.mark.parametrize(
    "value",
    ["%x.%j.out", "01:30:00", "./logs/%A_%a", "gpu:a100:4", "a&b|c", "1-10%2", "select=2:ncpus=8", "me@x.de"],
)
def test_what_a_header_line_can_hold(value: str) -> None:
    assert quoting.directive(value) == value


@pytest.mark.parametrize(
    "value", ["", "a b", "a\tb", "a\n", "a\n#SBATCH -p x", "'a'", '"a"', "`id`", "$(id)", "$A", "a#b"]
)
def test_what_a_header_line_cannot_hold(value: str) -> None:
    assert message(lambda: quoting.directive(value, "the account")) == (
        f"the account {value!r} cannot be written in a job script's header\n"
        "  expected: letters, digits and . _ / + @ % : , = & | * ^ ~ ! ( ) [ ] - only, no spaces, quotes or $"
    )


def test_paths() -> None:
    assert quoting.safe_path("/opt/intel/oneapi/mpi/2021.17/lib@x%y:z,a=b+c-d") == (
        "/opt/intel/oneapi/mpi/2021.17/lib@x%y:z,a=b+c-d"
    )
    assert message(lambda: quoting.safe_path("opt/x", "mpi.path")) == (
        "mpi.path 'opt/x' cannot be used\n"
        "  expected: an absolute path of letters, digits and . _ / + @ % : , = -\n"
        "  remedy: start it with /"
    )
    for bad in ("", "/a b", "/a\n", "/a$B", "/a'b", "/ä", "/a;b", "~/a", "/a*"):
        with pytest.raises(InputError):
            quoting.safe_path(bad)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("NAME_PATTERN", ["a", "tf-horovod", "intel_mpi.2", "7zip"], ["", "A", "-a", "a b", "a/b", "a" * 65]),
        (
            "VERSION_PATTERN",
            ["12", "2.15.1", "2021", "1.0rc1", "1.0+cpu", "v2"],
            ["", ".1", "1 2", "1;2", "1/2"],
        ),
        ("PATH_PATTERN", ["/", "/opt/x"], ["", "opt", "/a b", "/a$b"]),
        (
            "URL_PATTERN",
            ["https://example.org", "https://example.org:8080/a/b-1.0.tar.gz?x=1&y=%20"],
            [
                "",
                "http://example.org/a",
                "https://",
                "https://a/b c",
                "https://a/$x",
                "https://a@b/c",
                "ftp://a",
            ],
        ),
        ("ENV_NAME_PATTERN", ["A", "_a1"], ["", "1A", "A B", "A-B"]),
    ],
)
def test_patterns_as_a_record_uses_them(pattern: str, good: list[str], bad: list[str]) -> None:
    from typing import Annotated

    field = Annotated[str, msgspec.Meta(pattern=getattr(quoting, pattern))]
    for word in good:
        assert msgspec.convert(word, field) == word
    for word in [*bad, *(f"{word}\n" for word in good)]:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(word, field)
