"""The one place where text is made safe for a shell, a Dockerfile, a definition file or a job script.

What cannot be written safely is refused with an :class:`~hpcgen.core.errors.InputError`, never altered.
Each function takes ``what``, the name of the value in that message, where it cannot know it itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from hpcgen.core.errors import InputError
from hpcgen.core.support.traced import Subject, together, traced

# For the records' fields, in the regular expressions that Python and JSON Schema have in common.
# The last part is there because Python's `$` alone lets a line break through at the end.
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$(?!\n)"
VERSION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$(?!\n)"
PATH_PATTERN = r"^/[A-Za-z0-9._/+@%:,=-]*$(?!\n)"
URL_PATTERN = r"^https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/+@%:,=&?#-]*)?$(?!\n)"
ENV_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)"

_ENV_NAME = re.compile(ENV_NAME_PATTERN)
_LABEL_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_PLAIN_ARGUMENT = re.compile(r"[A-Za-z0-9._~:/@%+,*-]+")
_DIRECTIVE = r"[A-Za-z0-9._/+@%:,=&|*^~!()\[\]-]+"


def plain(value: str, what: str = "the value") -> str:
    """``value`` itself, if every character of it can be printed on one line.

    InputError: it has a line break, a control or an invisible character.
    """
    if value.isprintable():
        return value
    bad = next(character for character in value if not character.isprintable())
    name = {"\n": "a line break", "\r": "a line break", "\t": "a tab", "\0": "a NUL"}.get(
        bad, f"the character U+{ord(bad):04X}"
    )
    raise InputError(f"{what} contains {name}", expected="printable text on one line", remedy="remove it")


def sh(word: str, what: str = "the word") -> str:
    """``word`` as one word of a POSIX shell, quoted where it must be. InputError: as :func:`plain`."""
    return shlex.quote(plain(word, what))


def command(*words: str) -> str:
    """One simple command from words, each quoted for the shell where it needs to be."""
    return " ".join(sh(word) for word in words)


def sh_assign(name: str, value: str) -> str:
    """``NAME=value`` for a POSIX shell; put ``export`` before it where programs need it.

    InputError: ``name`` is no variable name; as :func:`plain`.
    """
    _check_env_name(name)
    return f"{name}={shlex.quote(plain(value, f'the value of {name}'))}"


def tcl(word: str, what: str = "the word") -> str:
    """``word`` as one word of Tcl, as modulefiles are written in. InputError: as :func:`plain`."""
    # Of letters and digits alone a backslash makes something else.
    return re.sub(r"[^\w./:@%+,=-]", lambda sign: f"\\{sign[0]}", plain(word, what)) or "{}"


def lua(word: str, what: str = "the word") -> str:
    """``word`` as a string of Lua, as Lmod's modulefiles are written in. InputError: as :func:`plain`."""
    inside = plain(word, what).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inside}"'


def docker_env(name: str, value: str) -> str:
    r"""One ``ENV`` instruction that BuildKit, buildah and ch-image (0.31 and later) read alike.

    InputError: ``name`` is no variable name; as :func:`plain`; a ``$`` or ``\`` in ``value``, which ch-image cannot
    read back as they were.
    """
    _check_env_name(name)
    return _instruction("ENV", name, value)


def docker_variables(values: Mapping[str, str]) -> str:
    """``ENV`` for all variables, in one instruction as far as ch-image reads that.

    InputError: as :func:`docker_env`.
    """
    single = {name: docker_env(name, value).removeprefix("ENV ") for name, value in values.items()}
    bare = {name: f"{name}={value}" for name, value in values.items() if _PLAIN_ARGUMENT.fullmatch(value)}
    of = {name: Subject("variable", name) for name in values}
    alone = [traced(f"ENV {text}", of[name]) for name, text in single.items() if not text.startswith(f"{name}=")]
    joined = [traced(bare.get(name, text), of[name]) for name, text in single.items() if text.startswith(f"{name}=")]
    first = [together(["ENV ", together(joined, " \\\n    ")])] if joined else []
    return together([*first, *alone], "\n")


def docker_labels(values: Mapping[str, str]) -> str:
    """One ``LABEL`` instruction for all; InputError as :func:`docker_label`."""
    single = [
        traced(docker_label(key, value).removeprefix("LABEL "), Subject("label", key)) for key, value in values.items()
    ]
    return together(["LABEL ", together(single, " \\\n      ")])


def docker_arg(name: str, value: str) -> str:
    r"""One ``ARG`` instruction with its default; as :func:`docker_env`.

    Without quotes where none are needed: in an ``ARG``, ch-image (0.31 and 0.45 seen) takes them as part of the value.

    InputError: as :func:`docker_env`.
    """
    _check_env_name(name)
    if _PLAIN_ARGUMENT.fullmatch(value):
        return f"ARG {name}={value}"
    return _instruction("ARG", name, value)


def docker_label(key: str, value: str) -> str:
    """One ``LABEL`` instruction; as :func:`docker_env`.

    InputError: ``key`` is not of letters, digits, ``.``, ``_``, ``/`` and ``-``; as :func:`docker_env`.
    """
    if not _LABEL_KEY.fullmatch(key):
        raise InputError(
            f"{_quoted(key)} cannot be a label's name",
            expected="letters, digits, '.', '_', '/' and '-', such as org.example.title",
        )
    return _instruction("LABEL", key, value)


def directive(value: str, what: str = "the value") -> str:
    """``value`` itself, if it can stand in a ``#SBATCH`` or ``#PBS`` line, which has no quoting.

    InputError: it is empty or has anything but letters, digits and ``. _ / + @ % : , = & | * ^ ~ ! ( ) [ ] -``.
    """
    if re.fullmatch(_DIRECTIVE, value):
        return value
    raise InputError(
        f"{what} {_quoted(value)} cannot be written in a job script's header",
        expected="letters, digits and . _ / + @ % : , = & | * ^ ~ ! ( ) [ ] - only, no spaces, quotes or $",
    )


def safe_path(value: str, what: str = "the path") -> str:
    """``value`` itself, if it is an absolute path that needs no quoting anywhere.

    InputError: it is not absolute, or has other characters than letters, digits and ``. _ / + @ % : , = -``.
    """
    if re.search(PATH_PATTERN, value):
        return value
    raise InputError(
        f"{what} {_quoted(value)} cannot be used",
        expected="an absolute path of letters, digits and . _ / + @ % : , = -",
        remedy="" if value.startswith("/") else "start it with /",
    )


def _instruction(keyword: str, name: str, value: str) -> str:
    plain(value, f"the value of {name}")
    if "\\" in value:
        # ch-image 0.31 stops at a value that ends in one, and at the next variable after any other one.
        raise InputError(
            f"the value of {name}, {_quoted(value)}, contains a backslash",
            expected="a value that every builder reads in the same way",
            remedy="remove the backslash, or set the variable in a script",
        )
    if "$" in value:
        # A `\$` keeps its backslash in ch-image, a bare `$` is a reference in the others.
        raise InputError(
            f"the value of {name}, {_quoted(value)}, contains a $",
            expected="a value that every builder reads in the same way",
            remedy="write the value of the variable itself, or set it in a script",
        )
    quoted = value.replace('"', r"\"")
    # ch-image reads `K="-O2 -march=native"` as two variables, `K` = `"-O2` and `-march` = `native"`,
    # because its grammar allows both readings. `K "..."` has only one, the same for all builders.
    separator = " " if re.search(r"\s", value) and "=" in value else "="
    return f'{keyword} {name}{separator}"{quoted}"'


def _check_env_name(name: str) -> None:
    if not _ENV_NAME.search(name):
        raise InputError(
            f"{_quoted(name)} cannot be the name of an environment variable",
            expected="letters, digits and '_', not starting with a digit",
        )


def _quoted(value: str) -> str:
    """``value`` for a message: its control characters escaped, not sent to the terminal."""
    return f"'{value}'" if value.isprintable() and "'" not in value else repr(value)


# Words of a command line: text, or a piece of shell that stands for something known only when the job runs.


class Shell(str):
    """A word that is shell already, such as ``"$image"``. Made by this package alone, never from a profile."""

    __slots__ = ()


IMAGE = Shell('"$image"')
FOLDER = Shell('"$folder"')


_VARIABLE = r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))"


def variables_in(path: str, what: str = "the path") -> list[str]:
    """The variables in a path of the user's: ``$NAME`` and ``${NAME}``, and HOME for a ``~/`` that it begins with.

    InputError: a ``$`` that begins no variable's name, or a ``~`` that is not the user's own home.
    """
    if "$" in re.sub(_VARIABLE, "", path) or (path.startswith("~") and path[1:2] not in ("", "/")):
        raise InputError(
            f"{what} {_quoted(path)} cannot be expanded",
            expected="$NAME, ${NAME}, or ~/ at the beginning",
            remedy="write the path itself",
        )
    home = ["HOME"] if path.startswith("~") else []
    return list(dict.fromkeys([*home, *(found[1] or found[2] for found in re.finditer(_VARIABLE, path))]))


def with_values(path: str, values: Mapping[str, str]) -> str:
    """The path with values for its variables."""
    home = path.replace("~", values["HOME"], 1) if path.startswith("~") else path
    return re.sub(_VARIABLE, lambda found: values[found[1] or found[2]], home)


def expanded(path: str) -> str:
    """A path of the user's as a word: shell with the values that its variables have where it runs, else itself."""
    if not variables_in(path):
        return path
    rest = path
    parts: list[str] = []
    if path.startswith("~"):
        parts, rest = [Shell('"$HOME"')], path[1:]
    at = 0
    for found in re.finditer(_VARIABLE, rest):
        parts += [rest[at : found.start()], Shell(f'"${found[1] or found[2]}"')]
        at = found.end()
    return joined(*filter(None, [*parts, rest[at:]]))


def quoted(word: str) -> str:
    """A word as it stands in a script; InputError for line breaks and control characters."""
    return str(word) if isinstance(word, Shell) else sh(word)


def line(words: Iterable[str]) -> str:
    """Words as one line of shell."""
    return " ".join(quoted(word) for word in words)


def joined(*parts: str) -> Shell:
    """One word from several parts, such as a bind's two sides."""
    return Shell("".join(quoted(part) for part in parts))
