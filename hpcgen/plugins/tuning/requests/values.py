"""How values of MODAK's requests are read. Each reader takes the value and the whole file, and gives a
:class:`RequestValue`.

A value that cannot be right is an InputError; its place is known to the caller.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from hpcgen.core.errors import InputError, nearest
from hpcgen.core.support.quoting import sh
from hpcgen.core.support.units import number, walltime_text
from hpcgen.plugins.tuning.requests.mail import read_events


class RequestValue(msgspec.Struct, frozen=True):
    """What a value says.

    fields: of hpcgen's request, by their dotted path.
    but: what of it is not honoured, or read in a way that the user should know.
    remedy: what to do about that.
    """

    fields: Mapping[str, Any] = {}
    but: str = ""
    remedy: str = ""


Reader = Callable[[Any, Mapping[str, Any]], RequestValue]

LIBRARIES = {
    "openmpi": "openmpi",
    "mpich": "mpich",
    "mvapich": "mvapich",
    "mvapich2": "mvapich2",
    "intel": "intel_mpi",
    "intelmpi": "intel_mpi",
    "impi": "intel_mpi",
}
FRAMEWORKS = ("tensorflow", "pytorch", "keras", "cntk", "mxnet")


def as_it_is(field: str) -> Reader:
    """The value is that of a field of hpcgen's request."""
    return lambda value, _file: RequestValue({field: value.strip() if isinstance(value, str) else value})


def lower(field: str) -> Reader:
    """A word, in capitals or not."""
    return lambda value, _file: RequestValue({field: value.strip().lower() if isinstance(value, str) else value})


def word(choices: Mapping[str, RequestValue]) -> Reader:
    """One of a few words, in capitals or not."""

    def read(value: Any, _file: Mapping[str, Any]) -> RequestValue:
        return choices[_known(value, list(choices))]

    return read


def switch(on: RequestValue, off: RequestValue) -> Reader:
    """true or false."""

    def read(value: Any, _file: Mapping[str, Any]) -> RequestValue:
        if not isinstance(value, bool):
            raise InputError(f"it must be true or false, not {value!r}", expected="true or false, without quotes")
        return on if value else off

    return read


def unread(why: str, remedy: str = "") -> Reader:
    """It is not honoured."""
    return lambda value, _file: RequestValue({}, why, remedy) if value is not False else RequestValue()


_ISO = re.compile(r"P(?:(\d{1,3})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,7})(?:\.0*)?S)?)?", re.ASCII)
_CLOCK = re.compile(r"(?:(\d{1,3})(?: |-| days?,? ))?(?:(\d{1,4}):)?([0-5]?\d):([0-5]\d)(?:\.0*)?", re.ASCII)
_SECONDS = re.compile(r"(\d{1,9})(?:\.0*)?", re.ASCII)


def wall_time(value: Any, _file: Mapping[str, Any]) -> RequestValue:
    """``36:00:00``, ``1 day, 12:00:00``, ISO 8601's ``P1DT12H`` or seconds; hours are not turned into days."""
    text = str(value).strip()
    seconds = 0
    if found := _ISO.fullmatch(text) or _CLOCK.fullmatch(text):
        days, hours, minutes, rest = (int(each or 0) for each in found.groups())
        seconds = ((days * 24 + hours) * 60 + minutes) * 60 + rest
    elif found := _SECONDS.fullmatch(text):
        seconds = int(found[1])
    if seconds < 1:
        raise InputError(f"{text!r} is not a time limit", expected="36:00:00, 1 day, 12:00:00, P1DT12H or seconds")
    got = walltime_text(seconds)
    short = f"{text} is read as {got} (hours:minutes:seconds)" if text.count(":") == 1 else ""
    return RequestValue({"limits.walltime": got}, short)


_SIZE = re.compile(r"(\d{1,16}(?:\.\d{1,6})?) ?([kKMGTP]?)(i?)[bB]?", re.ASCII)
GIGABYTE = 1024**3
"""Profiles count memory so (``MemTotal`` in steps of 1024)."""


def gigabytes(text: str) -> float:
    """``10 MB``, ``512GiB`` or bytes, in GB of 1024³ bytes; InputError if it is no size."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise InputError(f"{text!r} is not a size of memory", expected="a number with a unit, such as 512GiB or 10 MB")
    step = 1024 if found[3] else 1000
    power = " KMGTP".index((found[2] or " ").upper())
    return round(float(found[1]) * float(step**power) / GIGABYTE, 6)


def memory(field: str, how: str) -> Reader:
    """A size of memory; ``how`` says of what it is read to be."""

    def read(value: Any, _file: Mapping[str, Any]) -> RequestValue:
        size = gigabytes(str(value))
        return RequestValue({field: size}, f"it is read as {number(size) if size >= 0.1 else f'{size:g}'} GB {how}")

    return read


_VARIABLE = re.compile(r"\$\{?\w+\}?|[$`]\(?")


def command(field: str) -> Reader:
    """Words of a command line. Nothing in them is expanded, rendered or run."""

    def read(value: Any, _file: Mapping[str, Any]) -> RequestValue:
        try:
            words = shlex.split(str(value).replace("\\\n", " "), comments=False)
        except ValueError as failure:
            raise InputError(f"it is not a command line: {str(failure).lower()}", remedy="close the quote") from None
        found = list(dict.fromkeys(_VARIABLE.findall(str(value))))
        if not found:
            return RequestValue({field: words})
        why = f"hpcgen starts programs without a shell, so {' and '.join(found)} stays as it is written"
        return RequestValue({field: words}, why, "write the value itself, or start a script that sets it")

    return read


_NAMED = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)


def _of_shell(file: Mapping[str, Any]) -> str:
    """The program with its arguments, if variables are all that a shell would expand in it; else ""."""
    job = file.get("job")
    program = job.get("application") if isinstance(job, dict) else None
    said = [program.get(name) for name in ("executable", "arguments")] if isinstance(program, dict) else []
    text = " ".join(each for each in said if isinstance(each, str))
    rest = _NAMED.sub("", text)
    return text if rest != text and not re.search(r"[$`'\"]", rest) else ""


def executable(value: Any, file: Mapping[str, Any]) -> RequestValue:
    """The program; where it or an argument has variables, a shell of the image expands these, and nothing else."""
    text = _of_shell(file)
    if not text:
        return command("run.command")(value, file)
    words = []
    for word in text.replace("\\\n", " ").split():
        ends = [0, *(end for found in _NAMED.finditer(word) for end in found.span()), len(word)]
        parts = [word[start:end] for start, end in pairwise(ends)]
        names = ["".join(found.groups("")) for found in _NAMED.finditer(word)]
        words.append(
            "".join(f'"${{{names[at // 2]}}}"' if at % 2 else part and sh(part) for at, part in enumerate(parts))
        )
    return RequestValue({"run.command": ["/bin/sh", "-c", f"exec {' '.join(words)}"]})


def arguments(value: Any, file: Mapping[str, Any]) -> RequestValue:
    """The arguments, unless :func:`executable` has them."""
    return RequestValue() if _of_shell(file) else command("run.arguments")(value, file)


def dependency(value: Any, _file: Mapping[str, Any]) -> RequestValue:
    """``afterok:ID``, before which Torque's option has ``depend=``."""
    return RequestValue({"job.after": str(value).strip().removeprefix("depend=")})


def copied_variables(value: Any, file: Mapping[str, Any]) -> RequestValue:
    """Names of variables, with commas between them."""
    if file.get("job", {}).get("job_options", {}).get("copy_environment") is True:
        return RequestValue({}, "`copy_environment` copies these and all others", "remove one of the two")
    return RequestValue({"job.environment": [each.strip() for each in str(value).split(",") if each.strip()]})


def lines(field: str) -> Reader:
    """Lines of shell."""
    return lambda value, _file: RequestValue({field: str(value).replace("\r\n", "\n").rstrip("\n")})


def prefetch(value: Any, _file: Mapping[str, Any]) -> RequestValue:
    """How many batches are loaded ahead, or whether."""
    if value is True:
        return RequestValue({}, "the amount of prefetching is not given", "write a number")
    return RequestValue({"workload.data.prefetch": 0 if value is False else value})


def cache(value: Any, _file: Mapping[str, Any]) -> RequestValue:
    """Whether the data is kept in memory; a number of no unit stands for yes."""
    if isinstance(value, bool):
        return RequestValue({"workload.data.cache": value})
    if not re.fullmatch(r"\d{1,9}", str(value)):
        raise InputError(f"it must be true, false or a number, not {value!r}", expected="true or false")
    yes = str(value).strip("0") != ""
    return RequestValue(
        {"workload.data.cache": yes}, f"{value} has no unit and is read as {'true' if yes else 'false'}"
    )


def notifications(value: Any, _file: Mapping[str, Any]) -> RequestValue:
    """Torque's letters or Slurm's words."""
    events, left_out = read_events(str(value))
    why = f"hpcgen has no notification for {', '.join(left_out)}" if left_out else ""
    return RequestValue({"job.notify": events}, why)


def error_file(value: Any, file: Mapping[str, Any]) -> RequestValue:
    """Used unless the file says that both kinds of output go to one."""
    options = file.get("job", {}).get("job_options", {})
    if options.get("combine_stdout_stderr") is True:
        why = "`combine_stdout_stderr` sends errors to the output file"
        return RequestValue({}, why, "write `combine_stdout_stderr: false` to have both files")
    return RequestValue({"job.error": value})


def parallelisation(value: Any, _file: Mapping[str, Any]) -> RequestValue:
    """By what the program is parallel: a word, or a list of one."""
    one = value[0] if isinstance(value, list) and len(value) == 1 else value
    how = _known(one, ["mpi", "openmp", "opencc", "opencl"])
    return RequestValue({"run.mpi": how == "mpi"})


def started(value: Any, file: Mapping[str, Any]) -> RequestValue:
    """Whether ranks are started; the kind too, where there is no section ``optimisation`` that says it."""
    kind = _known(value, ["mpi", "hpc", "python"])
    wish = optimisation_of(file)
    fields: dict[str, Any] = {} if wish.get("app_type") else {"kind": kind}
    configs = [each.get("config") for each in wish.values() if isinstance(each, dict)]
    if not any(isinstance(each, dict) and each.get("parallelisation") for each in configs):
        fields["run.mpi"] = kind != "python"
    return RequestValue(fields)


def app_name(value: Any, _file: Mapping[str, Any]) -> RequestValue:
    """A framework or an MPI, as two of the examples call it."""
    name = _known(value, [*FRAMEWORKS, *LIBRARIES])
    return RequestValue({"framework": name} if name in FRAMEWORKS else {"mpi.library": LIBRARIES[name]})


def library(value: Any, _file: Mapping[str, Any]) -> RequestValue:
    """An MPI."""
    return RequestValue({"mpi.library": LIBRARIES[_known(value, list(LIBRARIES))]})


def app_version(value: Any, file: Mapping[str, Any]) -> RequestValue:
    """The version of what ``app_name`` names."""
    optimisation = optimisation_of(file)
    named = str(optimisation.get("app_name", "")).lower()
    return RequestValue({"version" if named in FRAMEWORKS else "mpi.version": value})


def optimisation_of(file: Mapping[str, Any]) -> Mapping[str, Any]:
    """The section of that name, at the top or below ``job``."""
    job = file.get("job")
    for place in (file, job if isinstance(job, dict) else {}):
        for name in ("optimisation", "optimization"):
            if isinstance(place.get(name), dict):
                found: Mapping[str, Any] = place[name]
                return found
    return {}


def _known(value: Any, words: Sequence[str]) -> str:
    text = value.strip().lower() if isinstance(value, str) else ""
    if text not in words:
        expected = f"one of {', '.join(words)}"
        several = "write one of them" if "/" in text else ""
        raise InputError(f"it cannot be {value!r}", expected=expected, remedy=several or nearest(text, words))
    return text


OF_A_FIELD: Mapping[str, Callable[..., Reader]] = {
    each.__name__: each for each in (as_it_is, command, lines, lower, memory)
}
READERS: Mapping[str, Reader] = {
    each.__name__: each
    for each in (
        app_name,
        app_version,
        arguments,
        cache,
        copied_variables,
        dependency,
        error_file,
        executable,
        library,
        notifications,
        parallelisation,
        prefetch,
        started,
        wall_time,
    )
}
"""By the names that the table of fields has them by; those of a field are given it first."""
