"""Specs of a spack.yaml: its lists and matrices written out, and what a spec says of one machine taken out.

Source: lib/spack/spack/environment/list.py and spec_parser.py of spack/spack at v1.1.0; Spack's documentation,
"Environments" and "Spec Syntax".
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from hpcgen.core.model.project import FileNote
from hpcgen.core.secret_rules import LEAVE_OUT, public, secret_in
from hpcgen.core.support.units import some
from hpcgen.readers.data_files import YamlFile

MPI_PACKAGES = (
    *("cray-mpich", "cray-mvapich2", "fujitsu-mpi", "hpcx-mpi", "intel-mpi", "intel-oneapi-mpi", "mpi", "mpi-serial"),
    *("mpich", "mpilander", "mpt", "msmpi", "mvapich", "mvapich2", "mvapich-plus", "nmad", "openmpi", "spectrum-mpi"),
)
"""``mpi`` and what provides it. Source: spack/spack-packages at v2025.11.0, with ``intel-mpi``, which it had before;
charmpp and nvhpc, which are more than an MPI, are not among them."""
NAME = r"[a-z0-9][a-z0-9_-]{0,99}"
COMPILED = "packages are compiled by the distribution's GCC"
At = Sequence[str | int]

_MOST = 1000
"""Specs that a file may come to, all its matrices written out."""
_LONGEST = 1000
_SPEC = re.compile(rf"[A-Za-z0-9_.,:=@%^~+*/\"'\[\] -]{{1,{_LONGEST}}}")
_VALUE = r"\s*=+\s*(?:\"[^\"]*\"|'[^']*'|[^\s^%]+)"
_OF_MACHINE = re.compile(rf"(?<!\S)(?:target|arch|architecture|os|operating_system|platform){_VALUE}")
_OF_GPU = re.compile(rf"(?<!\S)(?:cuda_arch|amdgpu_target){_VALUE}")
_GCC_VERSION = re.compile(r"(?P<kept>%%?\s*(?:\[[^]]*\]\s*)?(?:[a-z,]+=)?gcc)@[^\s^%~+]+")
_COMPILER = re.compile(r"%%?\s*(?:\[[^]]*\]\s*)?(?:[a-z,]+=)?([A-Za-z0-9][A-Za-z0-9_-]*)")
_DEPENDENCY = re.compile(r"\^(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)")
"""The mark before each dependency of a spec, outside quotation marks."""
_NODE = re.compile(rf"\s*(?:\[[^]]*\]\s*)?(?:[a-z,]+=)?(?:builtin\.)?({NAME})")


class ListedSpec(NamedTuple):
    """A spec as a file comes to it, and the path of the list's item that it is from."""

    text: str
    at: At


class SpecLists:
    """The lists that ``definitions`` of a file name, written out; mistakes become those of the file."""

    def __init__(self, file: YamlFile, said: Any) -> None:
        self.file = file
        self._lists: dict[str, list[str]] = {}
        self._left = _MOST
        if not isinstance(said, list | None):
            file.wrong(
                "`definitions` is not a list", ["spack", "definitions"], "a list such as [{tools: [cmake, ninja]}]"
            )
            return
        for number, each in enumerate(said or []):
            self._define(each, ["spack", "definitions", number])

    def _define(self, said: Any, at: At) -> None:
        names = [name for name in said if name != "when"] if isinstance(said, dict) else []
        if len(names) != 1 or not isinstance(said[names[0]], list):
            return self.file.wrong("this defines no list", at, "a name and its list, such as {tools: [cmake, ninja]}")
        condition = holds(str(said["when"])) if "when" in said else True
        if condition is None:
            text = f"the condition {public(str(said['when']), 80)!r} asks for more than the platform"
            return self.file.wrong(text, [*at, "when"], remedy="remove `when`, and the list where it does not hold")
        # Some lists are for other programs than Spack: what they have is looked at where a spec names them.
        texts = [text for each in said[names[0]] for text in self._item(each, at)] if condition else []
        self._lists.setdefault(str(names[0]), []).extend(texts)
        return None

    def specs(self, items: Sequence[Any], at: At) -> list[ListedSpec]:
        """What a list of specs comes to."""
        return [
            ListedSpec(text, [*at, number])
            for number, each in enumerate(items)
            for text in self._item(each, [*at, number])
        ]

    def _item(self, said: Any, at: At) -> list[str]:
        found: list[str] = []
        if isinstance(said, dict):
            found = self._matrix(said, at)
        elif not isinstance(said, str | int | float):
            self.file.wrong("a spec is not text", at, "a spec such as hdf5@1.14+mpi")
        elif not (name := str(said).strip()).startswith("$"):
            found = [name]
        else:
            sigil = name[1] if name[1:2] in ("^", "%") else ""
            wanted = name[1 + len(sigil) :]
            if wanted not in self._lists:
                remedy = f"defined before: {some(list(self._lists))}" if self._lists else "write each spec into `specs`"
                self.file.wrong(f"{public(name, 60)!r} names no list of `definitions`", at, remedy=remedy)
            found = [f"{sigil}{each}" for each in self._lists.get(wanted, [])]
        self._left -= len(found)
        if self._left < 0:
            self.file.wrong(f"the file comes to more than {_MOST} specs", at, remedy="write down what is needed")
            return []
        if any(len(each) > _LONGEST for each in found):
            self.file.wrong("a spec is too long", at, f"at most {_LONGEST} letters")
            return []
        return found

    def _matrix(self, said: dict[str, Any], at: At) -> list[str]:
        rows = said.get("matrix")
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            self.file.wrong("this is neither a spec nor a matrix", at, "{matrix: [[hdf5, fftw], [+mpi, ~mpi]]}")
            return []
        for key in said:
            if key != "matrix":
                remedy = "write out the specs that are wanted"
                self.file.wrong(f"`{public(str(key), 60)}` of a matrix is not read", [*at, key], remedy=remedy)
        columns = [[text for each in row for text in self._item(each, at)] for row in rows]
        combined = itertools.islice(itertools.product(*columns), self._left + 1) if rows and self._left >= 0 else ()
        return [_together(each) for each in combined]


def _together(parts: Sequence[str]) -> str:
    """The spec that all parts hold for: what is said of dependencies comes last."""
    split = [_DEPENDENCY.split(each) for each in parts]
    own = " ".join(first.strip() for first, *_ in split if first.strip())
    return " ^".join([own, *(each.strip() for _, *others in split for each in others)])


def holds(condition: str) -> bool | None:
    """Whether a list's ``when`` holds on Linux; None where it asks for more than the platform."""
    try:
        return _truth(ast.parse(condition.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _truth(said: ast.expr) -> bool | None:
    if isinstance(said, ast.UnaryOp) and isinstance(said.op, ast.Not):
        inner = _truth(said.operand)
        return None if inner is None else not inner
    if isinstance(said, ast.BoolOp):
        parts = [_truth(each) for each in said.values]
        decided = any if isinstance(said.op, ast.Or) else all
        return None if None in parts else decided(parts)
    if not isinstance(said, ast.Compare) or len(said.ops) != 1:
        return None
    left, right = _word(said.left), _word(said.comparators[0])
    if left is None or right is None:
        return None
    return {ast.Eq: left == right, ast.NotEq: left != right, ast.In: left in right, ast.NotIn: left not in right}.get(
        type(said.ops[0])
    )


def _word(said: ast.expr) -> str | None:
    if isinstance(said, ast.Name) and said.id == "platform":
        return "linux"
    return said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else None


def checked(file: YamlFile, spec: str, at: At, named: bool) -> bool:
    """Whether a spec, or a part of one, may decide what is built; what it may not say is a mistake of the file."""
    said = public(spec, 120)
    count = len(file.problems)
    if secret := secret_in(spec):
        file.wrong(f"a spec contains {secret}, which would be in the image", at, remedy=LEAVE_OUT)
    elif not _SPEC.fullmatch(spec) or "://" in spec or (named and not _NODE.match(spec)):
        expected = "a package, with version, variants and dependencies: hdf5@1.14+mpi ^zlib-ng"
        file.wrong(f"{said!r} is not a spec of Spack", at, expected)
    elif re.search(r"(?<!\S)dev_path\s*=", spec):
        file.wrong(f"{said!r} is built from a folder of your own", at, remedy="compile it in `build` of the stack")
    elif re.search(r"(^|\s|\^)/[a-z0-9]+", spec):
        file.wrong(f"{said!r} names an installation by its hash", at, remedy="name the package and its version")
    elif other := sorted({each[1] for each in _COMPILER.finditer(spec)} - {"gcc"}):
        remedy = f"remove %{other[0]}: {COMPILED}"
        file.wrong(f"{said!r} names the compiler {other[0]}", at, "%gcc, or no compiler", remedy)
    return len(file.problems) == count


class OwnSpec(NamedTuple):
    """What of a spec counts for every machine; empty where nothing does. ``mpi``: an MPI that it named."""

    text: str
    mpi: str = ""


def for_any_machine(file: YamlFile, spec: str, at: At, named: bool, notes: list[FileNote]) -> OwnSpec:
    """A spec, or a part of one, without the machine that it was written for; each part that is left out is noted."""

    def leave(part: str, why: str) -> None:
        note = FileNote(f"`{public(part.strip(), 100)}` is left out: {why}", file.place(*at))
        if note not in notes:
            notes.append(note)

    mpi = ""
    kept = []
    for number, node in enumerate(_DEPENDENCY.split(spec)):
        match = _NODE.match(node) if named or number else None
        name = match[1] if match is not None else ""
        if name in MPI_PACKAGES and (number == 0 or name != "mpi"):
            mpi = mpi or name
            leave(spec if number == 0 else f"^{node}", "the image's own MPI is taken")
            if number == 0:
                return OwnSpec("", mpi)
        elif number == 0 and name == "gcc":
            leave(spec, COMPILED)
            return OwnSpec("")
        else:
            kept.append(node)
    text = "^".join(kept)
    for pattern, why in _MACHINE_PARTS:
        for found in pattern.finditer(text):
            leave(found[0], why)
        text = pattern.sub(lambda found: found.groupdict().get("kept", ""), text)
    return OwnSpec(re.sub(r" +(?= |$)", "", text).strip(), mpi)


_MACHINE_PARTS = (
    (_OF_MACHINE, "packages are built for the base and for the CPU of the partition"),
    (_OF_GPU, "packages are built for the GPU of the partition"),
    (_GCC_VERSION, COMPILED),
)
