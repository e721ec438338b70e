"""What the code can say when something is wrong, read from its syntax trees: nothing is run.

A text is followed through local variables, constants (of other modules too), conditions, and functions that are given
a part of it or return one. What is known only while hpcgen runs becomes ``…``.
"""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

FILLED_IN = "…"
FIELDS = ("message", "where", "expected", "remedy")
_MOST = 24
"""So many texts one expression is followed to; one that could be more is FILLED_IN."""
_DEEPEST = 4

UNKNOWN = ast.Constant(FILLED_IN)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Said:
    """A problem as it can appear: the class of its error ("" in a list of problems), its texts, where it is made."""

    kind: str
    message: str
    expected: str
    remedy: str
    module: str
    line: int


@dataclass
class Module:
    """One file: its functions by name, its classes, constants, where its other names come from, its calls by name.

    ``around``, ``of_class``, ``within``: the function, the class and the call in which a call or a function stands.
    """

    name: str
    tree: ast.Module
    functions: dict[str, Function] = field(default_factory=dict)
    classes: list[ast.ClassDef] = field(default_factory=list)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    around: dict[ast.AST, Function | None] = field(default_factory=dict)
    of_class: dict[ast.AST, str] = field(default_factory=dict)
    within: dict[ast.AST, str] = field(default_factory=dict)
    calls: dict[str, list[ast.Call]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self._enter(self.tree, None, "", "")

    def _enter(self, node: ast.AST, function: Function | None, of_class: str, within: str) -> None:
        if isinstance(node, Function | ast.Call):
            self.around[node], self.of_class[node], self.within[node] = function, of_class, within
        if isinstance(node, Function):
            self.functions.setdefault(node.name, node)
            function = node
        elif isinstance(node, ast.ClassDef):
            self.classes.append(node)
            of_class = node.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            self.imported |= {each.asname or each.name: (node.module, each.name) for each in node.names}
        elif isinstance(node, ast.Assign) and function is None and isinstance(node.targets[0], ast.Name):
            self.constants[node.targets[0].id] = node.value
        elif isinstance(node, ast.Call):
            self.calls[called(node)].append(node)
            within = called(node)
        for child in ast.iter_child_nodes(node):
            self._enter(child, function, of_class, within)


def called(node: ast.Call) -> str:
    """The last name of what is called."""
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def parameters(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


@dataclass(frozen=True)
class Scope:
    """Where an expression stands, with what its function's parameters are given where one call is meant."""

    module: Module
    function: Function | None
    given: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    depth: int = 0


class Code:
    """All modules below a folder, and what they say."""

    def __init__(self, root: Path) -> None:
        self.modules: dict[str, Module] = {}
        self._locals: dict[Function, dict[str, list[ast.expr]]] = {}
        self._composing: set[str] = set()
        for file in sorted(root.rglob("*.py")):
            name = ".".join((root.name, *file.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
            self.modules[name] = Module(name, ast.parse(file.read_text("utf-8")))
        self._callers: dict[str, list[Module]] = defaultdict(list)
        for module in self.modules.values():
            for each in module.calls:
                self._callers[each].append(module)

    def heirs(self, kinds: Mapping[str, str]) -> dict[str, str]:
        """The same, with the classes of the code that are made from one of them."""
        found = dict(kinds)
        self._composing.clear()
        for module in self.modules.values():
            for node in module.classes:
                for base in node.bases:
                    if isinstance(base, ast.Name) and base.id in found:
                        found.setdefault(node.name, found[base.id])
                        if any(isinstance(each, Function) and each.name == "__init__" for each in node.body):
                            self._composing.add(node.name)
        return found

    def said(self, kinds: Mapping[str, str], order: Mapping[str, Sequence[str]]) -> Iterator[Said]:
        """Every problem that is made.

        Parameters
        ----------
        kinds: the section of each name that makes one.
        order: the fields of calls by such a name, where they are not FIELDS.
        """
        for module in self.modules.values():
            for name, calls in module.calls.items():
                for call in calls:
                    within = module.of_class.get(call, "")
                    own = kinds.get(within)
                    if name == "__init__" and within in order:
                        continue  # its calls say it, in that order
                    kind = own if name == "__init__" and own is not None else kinds.get(name)
                    if name == "add" and isinstance(call.func, ast.Attribute):
                        kind = "" if "problems" in (text := ast.unparse(call.func.value)) or text == "unknown" else None
                    if (name == "replace" and not call.keywords) or (name in self._composing and name not in order):
                        kind = None  # of a text; the class puts its message together
                    kind = kinds.get(module.within[call], kind) if kind == "" else kind
                    if kind is not None and (call.args or call.keywords):
                        yield from self._made(call, kind, module, order.get(name, FIELDS))

    def _made(self, call: ast.Call, kind: str, module: Module, order: Sequence[str]) -> Iterator[Said]:
        function = module.around[call]
        parts = dict(zip(order, call.args, strict=False)) | {each.arg: each.value for each in call.keywords if each.arg}
        needed = {each.arg for each in parameters(function)} if function else set()
        used = {node.id for part in parts.values() for node in ast.walk(part) if isinstance(node, ast.Name)}
        for scope in self._calls_of(module, function) if function and used & needed else [Scope(module, function)]:
            if "outcome" in parts and "broken" not in self.texts(parts["outcome"], scope):
                continue
            messages = self.texts(parts.get("message", parts.get("reason")), scope)
            expected, remedy = (" or ".join(filter(None, self.texts(parts.get(each), scope))) for each in FIELDS[2:])
            for message in messages:
                if message.strip(f"{FILLED_IN}: ,.()'`\"-"):
                    yield Said(kind, message, expected, remedy, module.name, call.lineno)

    def _calls_of(self, module: Module, function: Function) -> list[Scope]:
        """The function as each of its calls means it; as none, where there is none or all say the same."""
        found = {}
        name = module.of_class[function] if function.name == "__init__" else function.name
        for other in self._callers.get(name, ()):
            here = other is module or other.imported.get(name) == (module.name, name)
            for call in other.calls.get(name, ()) if here else ():
                given = self._given(function, call, Scope(other, other.around[call], depth=1))
                if any(text.strip(FILLED_IN) for texts in given.values() for text in texts):
                    found[tuple(sorted(given.items()))] = given
        return [Scope(module, function, given) for given in found.values()] or [Scope(module, function)]

    def _given(self, function: Function, call: ast.Call, scope: Scope) -> dict[str, tuple[str, ...]]:
        names = [each.arg for each in parameters(function)]
        if names[:1] in (["self"], ["cls"]):
            names = names[1:]
        arguments = dict(zip(names, call.args, strict=False)) | {
            each.arg: each.value for each in call.keywords if each.arg
        }
        defaults = function.args.defaults
        late = {each.arg: value for each, value in zip(parameters(function)[-len(defaults) :], defaults, strict=False)}
        late |= {
            each.arg: value
            for each, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
            if value
        }
        return {name: tuple(self.texts(value, scope)) for name, value in {**late, **arguments}.items()}

    def texts(self, node: ast.expr | None, scope: Scope) -> list[str]:
        """All texts that the expression can be, as far as the code tells."""
        found = list(dict.fromkeys(self._texts(node, scope)))
        return found if 0 < len(found) <= _MOST else [FILLED_IN]

    def _texts(self, node: ast.expr | None, scope: Scope) -> Iterator[str]:
        if node is None:
            yield ""
        elif isinstance(node, ast.Constant):
            yield "" if node.value is None else str(node.value)
        elif isinstance(node, ast.FormattedValue):
            yield from self._texts(node.value, scope) if node.conversion == -1 else [FILLED_IN]
        elif isinstance(node, ast.JoinedStr):
            yield from self._joined([self.texts(part, scope) for part in node.values])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from self._joined([self.texts(node.left, scope), self.texts(node.right, scope)])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            yield from (text.replace("%s", FILLED_IN).replace("%d", FILLED_IN) for text in self.texts(node.left, scope))
        elif isinstance(node, ast.IfExp):
            yield from itertools.chain(self.texts(node.body, scope), self.texts(node.orelse, scope))
        elif isinstance(node, ast.BoolOp):
            yield from itertools.chain.from_iterable(self.texts(each, scope) for each in node.values)
        elif isinstance(node, ast.Name):
            yield from self._named(node.id, scope)
        elif isinstance(node, ast.Call):
            yield from self._returned(node, scope)
        else:
            yield FILLED_IN

    def _joined(self, parts: list[list[str]]) -> Iterator[str]:
        many = 1
        for texts in parts:
            many *= len(texts)
        if many > _MOST:
            parts = [texts if len(texts) == 1 else [FILLED_IN] for texts in parts]
        for each in itertools.product(*parts):
            yield "".join(each)

    def _named(self, name: str, scope: Scope) -> Iterator[str]:
        if name in scope.given:
            yield from scope.given[name]
            return
        deeper = replace(scope, depth=scope.depth + 1)
        if scope.depth > _DEEPEST:
            yield FILLED_IN
        elif (values := self._assigned(name, scope.function)) is not None:
            yield from itertools.chain.from_iterable(self.texts(each, deeper) for each in values)
        elif name in scope.module.constants:
            yield from self.texts(scope.module.constants[name], replace(deeper, function=None, given={}))
        elif (origin := scope.module.imported.get(name)) and (other := self.modules.get(origin[0])):
            yield from self._named(origin[1], Scope(other, None, depth=scope.depth + 1))
        else:
            yield FILLED_IN

    def _assigned(self, name: str, function: Function | None) -> list[ast.expr] | None:
        """What a local variable is set to, UNKNOWN for a parameter; None where the function has no such name."""
        if function is None:
            return None
        if function not in self._locals:
            found: dict[str, list[ast.expr]] = defaultdict(list)
            for node in ast.walk(function):
                if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                        for each, value in _set(target, node.value):
                            found[each].append(value)
            for each in parameters(function):
                found[each.arg] = found[each.arg] or [UNKNOWN]
            self._locals[function] = found
        return self._locals[function].get(name)

    def _returned(self, call: ast.Call, scope: Scope) -> Iterator[str]:
        """What a function of hpcgen returns; a text's own method leaves the text."""
        name = called(call)
        if isinstance(call.func, ast.Attribute) and name == "format":
            for text in self.texts(call.func.value, scope):
                yield "".join(FILLED_IN if number % 2 else part for number, part in enumerate(_split(text)))
            return
        if isinstance(call.func, ast.Attribute) and name == "join" and len(call.args) == 1:
            yield from self._listed(call.func.value, call.args[0], scope)
            return
        module = scope.module
        if name in module.imported and module.imported[name][0] in self.modules:
            module = self.modules[module.imported[name][0]]
        function = module.functions.get(name)
        if function is None or scope.depth > _DEEPEST:
            yield FILLED_IN
            return
        inner = Scope(
            module, function, self._given(function, call, replace(scope, depth=scope.depth + 1)), scope.depth + 1
        )
        returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
        yield from (
            itertools.chain.from_iterable(self.texts(each, inner) for each in returns) if returns else [FILLED_IN]
        )

    def _listed(self, between: ast.expr, parts: ast.expr, scope: Scope) -> Iterator[str]:
        """A list that is written out, with its parts joined; a part of unknown length is filled in."""
        if not isinstance(parts, ast.List | ast.Tuple):
            yield FILLED_IN
            return
        (separator, *_) = self.texts(between, scope)
        texts = [[FILLED_IN] if isinstance(each, ast.Starred) else self.texts(each, scope) for each in parts.elts]
        yield from self._joined([each for part in texts for each in ([separator], part)][1:])


def _set(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that an assignment sets, with what to."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple):
        parts = value.elts if isinstance(value, ast.Tuple) else [UNKNOWN] * len(target.elts)
        for each, part in zip(target.elts, parts, strict=False):
            yield from _set(each, part)


def _split(text: str) -> list[str]:
    """A text with ``{}`` in it, by these: every second part is one."""
    parts: list[str] = []
    for number, piece in enumerate(text.split("{")):
        parts += [piece] if not number else ["", piece.partition("}")[2]]
    return parts
