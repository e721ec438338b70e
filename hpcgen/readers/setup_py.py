"""setup.py: what a project needs and its commands, from the syntax tree. Nothing is run, so what is computed is told.

Keywords: https://setuptools.pypa.io/en/latest/references/keywords.html
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.model.own_project import CompiledModules, FileWord, ProjectTable
from hpcgen.core.model.project import FileNote, PackageFile, PackageRequirement
from hpcgen.core.support.package_names import normal_name
from hpcgen.readers.folder import PartlyReadError, ProjectFolder
from hpcgen.readers.pip_text import EXPECTED, Fault, git_requirement, is_git, is_range, refused_name, requirement
from hpcgen.readers.requirements_txt import read_requirements

_DEEPEST = 12
"""Names that stand for names."""
TARGET = re.compile(r"\s*([\w.-]+)\s*=\s*([A-Za-z_][\w.]*:[A-Za-z_][\w.]*)\s*(?:\[[^\]]*\])?\s*")
"""A command and the function that it calls."""

_EXTENSION = re.compile(r"\w*Extension|extension|cythonize")
"""What describes a module that is compiled, of setuptools, Cython, pybind11 and PyTorch."""


class SetupWord(NamedTuple):
    """A text of the file and its place."""

    text: str
    where: Position


def read_setup_py(folder: ProjectFolder, path: str) -> PackageFile:
    """What the call of ``setup`` asks for; PartlyReadError with all that is wrong with it.

    Lists of texts are read, by names too, and files of requirements that are opened for them.
    """
    found = _Setup(folder, path)
    return packages_of(
        Asked(
            folder,
            path,
            list(found.listed("install_requires")),
            {name: list(found.texts(node)) for name, node in found.named("extras_require")},
            found.word("python_requires"),
            found.notes,
            found.files,
        )
    )


def read_setup_table(folder: ProjectFolder, path: str) -> ProjectTable:
    """The project's name, its line for people and its commands."""
    found = _Setup(folder, path)
    commands = [
        each for name, node in found.named("entry_points") if name == "console_scripts" for each in found.texts(node)
    ]
    said = {key: FileWord(word.text, word.where) for key in ("name", "description") if (word := found.word(key))}
    return ProjectTable(said.get("name"), said.get("description"), scripts_of(commands))


def read_compiled_modules(folder: ProjectFolder, path: str) -> CompiledModules | None:
    """What the call of ``setup`` compiles, as far as the file says it; None where it compiles nothing."""
    return _Setup(folder, path).compiled()


def scripts_of(words: list[SetupWord]) -> dict[str, FileWord]:
    """Commands as entry points name them: ``train = package.module:main``."""
    lines = [SetupWord(line, each.where) for each in words for line in each.text.splitlines()]
    matches = [(match, each.where) for each in lines if (match := TARGET.fullmatch(each.text))]
    return {match[1]: FileWord(match[2], where) for match, where in matches}


class Asked(NamedTuple):
    """What a setup.py or a setup.cfg asks for, still as text; ``files``: lists of requirements that it reads."""

    folder: ProjectFolder
    path: str
    wanted: list[SetupWord]
    extras: dict[str, list[SetupWord]]
    python: SetupWord | None
    notes: list[FileNote]
    files: list[SetupWord]


def packages_of(asked: Asked) -> PackageFile:
    """The packages; PartlyReadError with every line that is no requirement."""
    problems, notes = Problems(), list(asked.notes)
    refused: list[FileNote] = []

    def listed(words: list[SetupWord], extra: str = "") -> Iterator[PackageRequirement]:
        for text, where in words:
            try:
                yield git_requirement(text, where) if is_git(text) else requirement(text, where)
            except Fault as fault:
                if extra:
                    # Nobody has asked for it.
                    notes.append(FileNote(text=f"left out of the extra {extra}: {fault.message}", where=where))
                else:
                    problems.add(fault.message, asked.folder.at(where), EXPECTED, fault.remedy)
                    refused.append(FileNote(text=refused_name(text), where=where))

    wanted = list(listed(asked.wanted))
    for file in asked.files:
        with problems.caught():
            try:
                inner = read_requirements(asked.folder, file.text)
            except PartlyReadError as error:
                problems += error.problems
                inner = error.file
            wanted += inner.requirements
            notes += inner.notes
            refused += inner.refused
    python = asked.python if asked.python is not None and is_range(asked.python.text) else None
    groups = {normal_name(name): list(listed(words, name)) for name, words in sorted(asked.extras.items())}
    found = PackageFile(
        file=asked.path,
        kind="setup",
        requirements=wanted,
        groups=groups,
        group_names=sorted(groups),
        requires_python=python.text if python is not None else "",
        python_where=python.where if python is not None else None,
        notes=notes,
        refused=refused,
        read=dict(asked.folder.read),
    )
    if problems:
        raise PartlyReadError(problems, found)
    return found


class _Setup:
    """The call of ``setup`` in a file, and what the file binds names to."""

    def __init__(self, folder: ProjectFolder, path: str) -> None:
        self.folder, self.path = folder, path
        self.notes: list[FileNote] = []
        self.files: list[SetupWord] = []
        self._bound: dict[str, ast.AST] = {}
        self._functions: dict[str, ast.AST] = {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(folder.text(path))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as failure:
            line = getattr(failure, "lineno", None) or 1
            raise InputError(
                "not valid Python",
                Position(folder.shown(path), line, 1),
                remedy="write its requirements into requirements.txt",
            ) from None
        self._nodes = list(ast.walk(tree))
        self._bind(tree.body)
        calls = [each for each in self._nodes if isinstance(each, ast.Call) and _called(each) == "setup"]
        said = [each for call in calls[-1:] for each in call.keywords]
        self._keywords: dict[str, ast.AST] = {each.arg: each.value for each in said if each.arg}
        for each in said:
            self._keywords |= dict(self._pairs(each.value)) if each.arg is None else {}

    def _bind(self, body: list[ast.stmt]) -> None:
        for each in body:
            if isinstance(each, ast.Assign):
                self._bound |= {target.id: each.value for target in each.targets if isinstance(target, ast.Name)}
            elif isinstance(each, (ast.With, ast.Try, ast.If)):
                before = {*self._bound}
                self._bind(each.body)
                if isinstance(each, ast.With):
                    # What is read from a file that stands at its head.
                    self._bound |= dict.fromkeys({*self._bound} - before, each)
            elif isinstance(each, ast.FunctionDef):
                self._functions[each.name] = each

    def compiled(self) -> CompiledModules | None:
        """The calls that describe compiled modules, by the name of the module or of the first file."""
        if "ext_modules" not in self._keywords:
            return None
        calls = [each for each in self._nodes if isinstance(each, ast.Call) and _EXTENSION.fullmatch(_called(each))]
        # What Cython translates are such calls, too, or paths.
        calls = [each for each in calls if _called(each) != "cythonize"] or calls
        modules = [(FileWord(self._module(call), self._at(call)), _called(call)) for call in calls]
        if not modules:
            return None
        imports = {}
        for node in self._nodes:
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else names
            imports.update({name.partition(".")[0]: self._at(node) for name in names if name})
        named = any("CUDAExtension" in (getattr(each, "id", ""), getattr(each, "attr", "")) for each in self._nodes)
        cuda = next((word for word, called in modules if called in ("CUDAExtension", "extension") and named), None)
        return CompiledModules(
            [word for word, _ in modules], [FileWord(name, where) for name, where in imports.items()], cuda
        )

    def _module(self, call: ast.Call) -> str:
        """What it is called, or the first text of the call."""
        named = next((each.value for each in call.keywords if each.arg == "name"), None)
        nodes = [node for part in filter(None, (named, *call.args)) for node in ast.walk(self._follow(part))]
        return next((text for node in nodes if (text := self._text(node)) and text.isprintable()), "modules")[:80]

    def word(self, key: str) -> SetupWord | None:
        """A keyword that is a text."""
        found = self._follow(self._keywords.get(key))
        if isinstance(found, ast.Constant) and isinstance(found.value, str) and found.value.isprintable():
            return SetupWord(found.value, self._at(found))
        return None

    def named(self, key: str) -> list[tuple[str, ast.AST]]:
        """A keyword that is a mapping with texts as keys; entry points are a text with headers too."""
        return self._pairs(self._keywords.get(key))

    def _pairs(self, node: ast.AST | None) -> list[tuple[str, ast.AST]]:
        found = self._follow(node)
        if isinstance(found, ast.Dict):
            rows = zip(found.keys, found.values, strict=True)
            return [
                (key.value, value)
                for key, value in rows
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ]
        return []

    def listed(self, key: str) -> Iterator[SetupWord]:
        """A keyword that is a list of texts."""
        if key in self._keywords:
            yield from self.texts(self._keywords[key])

    def texts(self, node: ast.AST, depth: int = 0) -> Iterator[SetupWord]:
        """The texts of a list; files that it is read from are kept apart, and the rest is told."""
        found = self._follow(node)
        if isinstance(found, (ast.List, ast.Tuple, ast.Set)) and depth < _DEEPEST:
            for each in found.elts:
                yield from self.texts(each.value if isinstance(each, ast.Starred) else each, depth + 1)
        elif isinstance(found, ast.BinOp) and isinstance(found.op, ast.Add) and depth < _DEEPEST:
            yield from self.texts(found.left, depth + 1)
            yield from self.texts(found.right, depth + 1)
        elif text := self._text(found):
            yield SetupWord(text, self._at(found))
        elif files := self._opened(found):
            self.files += [each for each in files if each.text not in [known.text for known in self.files]]
        else:
            text = f"{ast.unparse(found)[:80]!a} is computed when setup.py runs, so what it adds is not known"
            self.notes.append(FileNote(text=text, where=self._at(found)))

    def _text(self, node: ast.AST) -> str:
        """A text, also one with names of texts in it; empty for anything else."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if not isinstance(node, ast.JoinedStr):
            return ""
        parts = [
            self._text(self._follow(getattr(each, "value", None)) if isinstance(each, ast.FormattedValue) else each)
            for each in node.values
        ]
        return "".join(parts) if all(parts) else ""

    def _follow(self, node: ast.AST | None) -> ast.AST:
        """What a name stands for."""
        for _ in range(_DEEPEST):
            if not isinstance(node, ast.Name) or node.id not in self._bound:
                break
            node = self._bound[node.id]
        return node if node is not None else ast.Constant(None)

    def _opened(self, node: ast.AST) -> list[SetupWord]:
        """Lists of requirements of the folder that an expression names, or a function of the file that it calls."""
        functions = [self._functions.get(_called(each)) for each in ast.walk(node) if isinstance(each, ast.Call)]
        names = [self._bound.get(each.id) for each in ast.walk(node) if isinstance(each, ast.Name)]
        inside = [each for part in (node, *functions, *names) if part is not None for each in ast.walk(part)]
        texts = [(each.value, each) for each in inside if isinstance(each, ast.Constant)]
        paths = {
            text: each for text, each in texts if isinstance(text, str) and re.fullmatch(r"[\w./-]+\.(txt|in)", text)
        }
        found = [SetupWord(self.folder.beside(self.path, path), self._at(each)) for path, each in paths.items()]
        return [each for each in found if self.folder.holds(each.text)]

    def _at(self, node: ast.AST) -> Position:
        return Position(self.path, getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1)


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


_PLACED = re.compile(r"[\"']([A-Za-z_]\w*(?:\.\w+)+)[\"']\s*:\s*[\"'](?:\./)?(\w[\w/-]*)/?[\"']")


def placed_packages(folder: ProjectFolder, path: str) -> list[tuple[str, str]]:
    """Packages below others that lie in another folder (``package_dir``): the folder of their name, and where they are.

    InputError: it is no text.
    """
    return [(match[1].replace(".", "/"), match[2]) for match in _PLACED.finditer(folder.text(path))]
