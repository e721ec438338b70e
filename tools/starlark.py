"""Reads Bazel's workspace files without running them: enough of Starlark to see which repositories they declare.

Starlark is a small Python, so Python's own parser reads it. What is not known here (the machine, environment
variables, repositories whose source is not at hand) is :data:`UNKNOWN`; where a condition is not known, both ways are
gone. So what is found is never less than what Bazel would find in the same files.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from starlark_values import (  # type: ignore[import-not-found, unused-ignore]
    DICT_METHODS,
    LIST_METHODS,
    STRING_METHODS,
    UNKNOWN,
    External,
    File,
    Function,
    Rule,
    Struct,
    Unknown,
    deep,
    known,
    place_of,
)

MAX_DEPTH = 60
MAX_STEPS = 2_000_000
_BUILTINS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (len, range, int, dict, list, tuple, sorted, zip, enumerate, any, all, bool, repr, min, max)
}


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


Declared = Callable[[str, str, Any, list[Any], dict[str, Any]], bool]


class Reader:
    """Reads files and tells of what they declare.

    Parameters
    ----------
    folders: repository → its unpacked source; the main one is called "".
    declared: asked at every call with place, name, function, arguments by position and by name, before it is gone
        into; True if that call needs no more.
    definitions: values of symbols of files that are not at hand (``HERMETIC_PYTHON_VERSION``).
    """

    def __init__(self, folders: Mapping[str, Path], declared: Declared, definitions: Mapping[str, str]) -> None:
        self.folders = dict(folders)
        self.declared = declared
        self.definitions = definitions
        self.read: list[str] = []
        self._files: dict[tuple[str, str], File | None] = {}
        self._steps = 0
        self._depth = 0

    def workspace(self, name: str = "WORKSPACE") -> None:
        """Read the main repository's workspace file."""
        self._file("", name)

    def _file(self, repository: str, path: str) -> File | None:
        key = (repository, path)
        if key in self._files:
            return self._files[key]
        self._files[key] = None
        folder = self.folders.get(repository)
        if folder is None or not (folder / path).is_file():
            return None
        shown = f"@{repository}//{path}" if repository else path
        file = File(repository, path.rpartition("/")[0], shown)
        self.read.append(shown)
        tree = ast.parse((folder / path).read_text("utf-8"), shown)
        for statement in tree.body:
            self._do(statement, file, file.names)
        self._files[key] = file
        return file

    # statements

    def _body(self, statements: Iterable[ast.stmt], file: File, names: dict[str, Any]) -> None:
        for statement in statements:
            self._do(statement, file, names)

    def _do(self, node: ast.stmt, file: File, names: dict[str, Any]) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise ValueError(f"{file.shown}: too much to read")
        if isinstance(node, ast.Expr):
            self._value(node.value, file, names)
        elif isinstance(node, ast.FunctionDef):
            names[node.name] = Function(file, node)
        elif isinstance(node, ast.Assign):
            value = self._value(node.value, file, names)
            if isinstance(value, Rule) and not value.name and isinstance(node.targets[0], ast.Name):
                value.name = node.targets[0].id
            for target in node.targets:
                self._assign(target, value, file, names)
        elif isinstance(node, ast.AugAssign):
            added = ast.BinOp(_as_load(node.target), node.op, node.value)
            self._assign(node.target, self._value(ast.copy_location(added, node), file, names), file, names)
        elif isinstance(node, ast.If):
            self._if(node, file, names)
        elif isinstance(node, ast.For):
            for value in self._each(node.iter, file, names):
                self._assign(node.target, value, file, names)
                self._body(node.body, file, names)
        elif isinstance(node, ast.Return):
            raise _Return(None if node.value is None else self._value(node.value, file, names))

    def _if(self, node: ast.If, file: File, names: dict[str, Any]) -> None:
        condition = self._value(node.test, file, names)
        if known(condition):
            self._body(node.body if condition else node.orelse, file, names)
            return
        for branch in (node.body, node.orelse):
            with contextlib.suppress(_Return):
                self._body(branch, file, names)

    def _assign(self, target: ast.expr, value: Any, file: File, names: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            values = list(value) if isinstance(value, list | tuple) else [UNKNOWN] * len(target.elts)
            for part, each in zip(target.elts, values, strict=False):
                self._assign(part, each, file, names)
        elif isinstance(target, ast.Subscript):
            place, key = self._value(target.value, file, names), self._value(target.slice, file, names)
            if isinstance(place, dict) and isinstance(key, str | int | tuple):
                place[key] = value

    def _each(self, node: ast.expr, file: File, names: dict[str, Any]) -> list[Any]:
        value = self._value(node, file, names)
        return list(value) if isinstance(value, list | tuple | dict | range) else []

    # expressions

    def _value(self, node: ast.expr | None, file: File, names: dict[str, Any]) -> Any:
        if node is None:
            return None
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        return UNKNOWN if method is None else method(node, file, names)

    def _constant(self, node: ast.Constant, file: File, names: dict[str, Any]) -> Any:
        return node.value

    def _name(self, node: ast.Name, file: File, names: dict[str, Any]) -> Any:
        if node.id in names:
            return names[node.id]
        if node.id in file.names:
            return file.names[node.id]
        return External("", node.id)

    def _list(self, node: ast.List, file: File, names: dict[str, Any]) -> Any:
        return [self._value(item, file, names) for item in node.elts]

    def _tuple(self, node: ast.Tuple, file: File, names: dict[str, Any]) -> Any:
        return tuple(self._value(item, file, names) for item in node.elts)

    def _dict(self, node: ast.Dict, file: File, names: dict[str, Any]) -> Any:
        keys = [self._value(key, file, names) for key in node.keys]
        values = [self._value(value, file, names) for value in node.values]
        return {
            key: value for key, value in zip(keys, values, strict=True) if isinstance(key, str | int | tuple | bool)
        }

    def _binop(self, node: ast.BinOp, file: File, names: dict[str, Any]) -> Any:
        left, right = self._value(node.left, file, names), self._value(node.right, file, names)
        if not known(left, right):
            return UNKNOWN
        try:
            match node.op:
                case ast.Add():
                    return left + right
                case ast.Mod():
                    return left % right if deep(right) else UNKNOWN
                case ast.Mult():
                    return left * right
                case ast.Sub():
                    return left - right
                case ast.BitOr() if isinstance(left, dict):
                    return left | right
        except (TypeError, ValueError):
            pass
        return UNKNOWN

    def _boolop(self, node: ast.BoolOp, file: File, names: dict[str, Any]) -> Any:
        stop = isinstance(node.op, ast.Or)
        value: Any = UNKNOWN
        unknown = False
        for part in node.values:
            value = self._value(part, file, names)
            if not known(value):
                unknown = True
            elif bool(value) == stop:
                return value
        return UNKNOWN if unknown else value

    def _unaryop(self, node: ast.UnaryOp, file: File, names: dict[str, Any]) -> Any:
        value = self._value(node.operand, file, names)
        if not known(value):
            return UNKNOWN
        return not value if isinstance(node.op, ast.Not) else UNKNOWN

    def _compare(self, node: ast.Compare, file: File, names: dict[str, Any]) -> Any:
        left, right = self._value(node.left, file, names), self._value(node.comparators[0], file, names)
        if not (deep(left) and deep(right)) or len(node.ops) != 1:
            return UNKNOWN
        try:
            match node.ops[0]:
                case ast.Eq():
                    return left == right
                case ast.NotEq():
                    return left != right
                case ast.In():
                    return left in right
                case ast.NotIn():
                    return left not in right
                case ast.Lt():
                    return left < right
                case ast.Gt():
                    return left > right
                case ast.LtE():
                    return left <= right
                case ast.GtE():
                    return left >= right
        except TypeError:
            pass
        return UNKNOWN

    def _ifexp(self, node: ast.IfExp, file: File, names: dict[str, Any]) -> Any:
        condition = self._value(node.test, file, names)
        if not known(condition):
            return UNKNOWN
        return self._value(node.body if condition else node.orelse, file, names)

    def _lambda(self, node: ast.Lambda, file: File, names: dict[str, Any]) -> Any:
        return Function(file, node)

    def _subscript(self, node: ast.Subscript, file: File, names: dict[str, Any]) -> Any:
        value = self._value(node.value, file, names)
        if isinstance(node.slice, ast.Slice):
            ends = [self._value(end, file, names) for end in (node.slice.lower, node.slice.upper, node.slice.step)]
            if isinstance(value, str | list | tuple) and all(end is None or isinstance(end, int) for end in ends):
                return value[slice(*ends)]
            return UNKNOWN
        try:
            return value[self._value(node.slice, file, names)]
        except (TypeError, KeyError, IndexError):
            return UNKNOWN

    def _attribute(self, node: ast.Attribute, file: File, names: dict[str, Any]) -> Any:
        value = self._value(node.value, file, names)
        if isinstance(value, Struct):
            return value.fields.get(node.attr, UNKNOWN)
        if isinstance(value, External):
            return External(value.repository, node.attr if value.symbol == "native" else f"{value.symbol}.{node.attr}")
        return UNKNOWN

    def _listcomp(self, node: ast.ListComp, file: File, names: dict[str, Any]) -> Any:
        return [self._value(node.elt, file, each) for each in self._rounds(node.generators, file, dict(names))]

    def _dictcomp(self, node: ast.DictComp, file: File, names: dict[str, Any]) -> Any:
        rounds = self._rounds(node.generators, file, dict(names))
        return {self._value(node.key, file, each): self._value(node.value, file, each) for each in rounds}

    def _rounds(self, generators: list[ast.comprehension], file: File, names: dict[str, Any]) -> list[dict[str, Any]]:
        if not generators:
            return [dict(names)]
        found = []
        for value in self._each(generators[0].iter, file, names):
            self._assign(generators[0].target, value, file, names)
            # What is not known may be true.
            if all(not known(kept) or kept for kept in (self._value(test, file, names) for test in generators[0].ifs)):
                found += self._rounds(generators[1:], file, names)
        return found

    # calls

    def _call(self, node: ast.Call, file: File, names: dict[str, Any]) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "load":
            return self._load(node, file)
        arguments: list[Any] = []
        for item in node.args:
            if isinstance(item, ast.Starred):
                arguments += self._each(item.value, file, names)
            else:
                arguments.append(self._value(item, file, names))
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self._value(keyword.value, file, names)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif isinstance(value, dict):
                named |= value
        if isinstance(node.func, ast.Attribute):
            found = self._method(node.func, arguments, named, file, names)
            if found is not None:
                return found[0]
        function = self._value(node.func, file, names)
        return self.call(function, arguments, named, f"{file.shown}:{node.lineno}", ast.unparse(node.func))

    def call(self, function: Any, arguments: list[Any], named: dict[str, Any], place: str, written: str) -> Any:
        """Call what a file calls; ``declared`` is asked first."""
        name = getattr(function, "symbol", None) or getattr(function, "name", None) or written
        if self.declared(place, name, function, arguments, named):
            return UNKNOWN
        if isinstance(function, Function):
            return self._enter(function, arguments, named)
        if not isinstance(function, External) or function.repository:
            return UNKNOWN
        if name == "maybe" and arguments:
            return self.call(arguments[0], arguments[1:], named, place, written)
        return self._builtin(name, arguments, named)

    def _builtin(self, name: str, arguments: list[Any], named: dict[str, Any]) -> Any:
        if name == "repository_rule":
            return Rule("")
        if name == "struct":
            return Struct(named)
        if name in ("Label", "str") and len(arguments) == 1:
            return str(arguments[0]) if isinstance(arguments[0], str | int) else UNKNOWN
        if name == "type" and len(arguments) == 1 and known(arguments[0]):
            return {"str": "string"}.get(type(arguments[0]).__name__, type(arguments[0]).__name__)
        builtin = _BUILTINS.get(name)
        if builtin is None or not known(*arguments):
            return UNKNOWN
        try:
            value = builtin(*arguments, **named)
            return list(value) if name in ("zip", "enumerate", "range") else value
        except (TypeError, ValueError):
            return UNKNOWN

    def _method(
        self, node: ast.Attribute, arguments: list[Any], named: dict[str, Any], file: File, names: dict[str, Any]
    ) -> tuple[Any] | None:
        """The value of a method of a text, list or dict, as a tuple of one; None if it is not such a method."""
        owner = self._value(node.value, file, names)
        allowed: frozenset[str] = frozenset()
        if isinstance(owner, str):
            allowed = STRING_METHODS
            if not deep([arguments, list(named.values())]):
                return (UNKNOWN,)
        elif isinstance(owner, dict):
            allowed = DICT_METHODS
        elif isinstance(owner, list):
            allowed = LIST_METHODS
        if node.attr not in allowed:
            return (UNKNOWN,) if isinstance(owner, str | dict | list | Unknown) else None
        try:
            value = getattr(owner, node.attr)(*arguments, **named)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return (UNKNOWN,)
        return (list(value) if node.attr in ("items", "keys", "values") else value,)

    def _enter(self, function: Function, arguments: list[Any], named: dict[str, Any]) -> Any:
        if self._depth >= MAX_DEPTH:
            return UNKNOWN
        names = self._parameters(function, arguments, named)
        self._depth += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self._value(function.node.body, function.file, names)
            self._body(function.node.body, function.file, names)
        except _Return as end:
            return end.value
        finally:
            self._depth -= 1
        return None

    def _parameters(self, function: Function, arguments: list[Any], named: dict[str, Any]) -> dict[str, Any]:
        wanted = function.node.args
        listed = [each.arg for each in wanted.args]
        names: dict[str, Any] = dict.fromkeys([*listed, *(each.arg for each in wanted.kwonlyargs)], UNKNOWN)
        for name, default in zip(reversed(listed), reversed(wanted.defaults), strict=False):
            names[name] = self._value(default, function.file, function.file.names)
        for each, default in zip(wanted.kwonlyargs, wanted.kw_defaults, strict=True):
            if default is not None:
                names[each.arg] = self._value(default, function.file, function.file.names)
        names |= dict(zip(listed, arguments, strict=False))
        if wanted.vararg is not None:
            names[wanted.vararg.arg] = arguments[len(listed) :]
        rest = {key: value for key, value in named.items() if key not in names}
        names |= {key: value for key, value in named.items() if key in names}
        if wanted.kwarg is not None:
            names[wanted.kwarg.arg] = rest
        return names

    def _load(self, node: ast.Call, file: File) -> None:
        label = node.args[0].value if isinstance(node.args[0], ast.Constant) else ""
        repository, path = place_of(str(label), file)
        loaded = self._file(repository, path)
        wanted = {each.value: each.value for each in node.args[1:] if isinstance(each, ast.Constant)}
        wanted |= {k.arg: k.value.value for k in node.keywords if k.arg and isinstance(k.value, ast.Constant)}
        for name, symbol in wanted.items():
            if loaded is not None:
                file.names[str(name)] = loaded.names.get(str(symbol), UNKNOWN)
            elif str(symbol) in self.definitions:
                file.names[str(name)] = self.definitions[str(symbol)]
            else:
                # Bazel's own rules are known by their name.
                own = "" if repository == "bazel_tools" else repository or "this source"
                file.names[str(name)] = External(own, str(symbol))


def _as_load(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body
