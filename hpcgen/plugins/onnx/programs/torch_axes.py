"""For which lengths of its axes an exported or traced module of PyTorch holds."""

import contextlib
import sys
import warnings

import torch

FEW, MOST = 130, 1 << 40
"""Lengths that are looked at in what a program takes for granted; what is as long as never comes."""

PIECES = ("aten::split", "aten::split_with_sizes", "aten::chunk", "aten::tensor_split", "aten::unbind")
"""What gives a list, which is as long in each run as it was when it was traced. The last argument is the axis."""

CONVERSIONS = ("__index__", "__bool__", "__int__", "__float__", "__len__", "__iter__", "item", "tolist", "numpy")
"""By these a tracer's tensor becomes a number of Python, which is a constant of what it traces."""


def specialised(program, shapes):
    """Names of the axes that a program of ``torch.export`` takes for constants.

    ``shapes``: for each input the names of its axes by their place.
    """
    found = set()
    for shape, names in zip(_shapes(program), shapes):  # noqa: B905 (Python 3.9)
        found |= {axis for at, axis in names.items() if _is_constant(program, shape[at])}
    return found


def _is_constant(program, length):
    limits = program.range_constraints.get(_symbol(length))
    return _symbol(length) is None or (limits is not None and limits.lower == limits.upper)


def _symbol(length):
    """What stands for a length in a program; None where that is a number."""
    expression = getattr(getattr(length, "node", None), "expr", None)
    return None if expression is None or expression.is_number else expression


def dynamic(module, shapes):
    """All these axes as ``torch.export`` takes them, which says then which of them are constants of the code.

    They are in one where the module takes all its inputs in one.
    """
    import inspect

    shapes = tuple(dict.fromkeys(each, torch.export.Dim.AUTO) for each in shapes)
    kinds = inspect.signature(module.forward).parameters.values()
    return (shapes,) if any(each.kind == each.VAR_POSITIONAL for each in kinds) else shapes


def _shapes(program):
    inputs = set(program.graph_signature.user_inputs)
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in inputs]
    return [node.meta["val"].shape for node in nodes]


def ends(program, shapes):
    """Of each axis the lengths nearest to the example's for which a program of ``torch.export`` does not hold.

    These are just beyond its range, and where what it has taken for granted is false, as after ``if n % 3 == 0``.
    """
    axes = [
        (axis, shape[at].node)
        for shape, names in zip(_shapes(program), shapes)  # noqa: B905 (Python 3.9)
        for at, axis in names.items()
        if _symbol(shape[at]) is not None
    ]
    example = {node.expr: node.hint for _, node in axes if node.hint is not None}
    found = {}
    for axis, node in axes:
        limits = program.range_constraints.get(node.expr)
        beyond = found.setdefault(axis, set())
        if limits is not None:
            beyond.update([int(limits.lower) - 1] if limits.lower > 2 else [])
            beyond.update([int(limits.upper) + 1] if limits.upper < MOST else [])
        for statement in _statements(node.shape_env):
            if node.expr in statement.free_symbols <= set(example):
                beyond.update(_first_false(statement, node.expr, example))
    return {axis: sorted(each) for axis, each in found.items() if each}


def _statements(environment):
    """What is true of the lengths that a program was made for."""
    granted = [each for each, truth in getattr(environment, "axioms", {}).items() if bool(truth)]
    return dict.fromkeys([*granted, *(each.expr for each in environment.guards)])


def _first_false(statement, symbol, example):
    numbers = {int(each) for each in statement.atoms() if each.is_Integer and abs(each) < MOST}
    near = {each + more for each in numbers for more in (-1, 0, 1)}
    others = {each: length for each, length in example.items() if each != symbol}
    alone = statement.subs(others)
    lengths = sorted({*range(1, FEW), *near}, key=lambda each: abs(each - example[symbol]))
    # Symbolic truth: neither True nor False where something else is open.
    return [each for each in lengths if each > 0 and alone.subs(symbol, each) == False][:1]  # noqa: E712


def taken(module, examples):
    """Names of the axes whose lengths the code of a module takes for numbers when it is traced, and where it does so.

    A tracer makes these constants without a word, as that in ``range(x.shape[1])``. The places, file and line, are
    those at which numbers of lengths alone become numbers of Python, and none of the data.

    ``examples``: pairs of the lengths of all axes, and inputs.
    """
    read, found, several = [], set(), []
    for axes, given in examples:
        changes = [{each for each in axes if axes[each] != others[each]} for others, _ in read]
        if any(not each or each <= found for each in changes):
            continue  # Nothing new can come of it, and a trace takes as long as an export.
        one = _traced(module, given)
        for changed, (_, two) in zip(changes, read):  # noqa: B905 (Python 3.9)
            if one.lengths != two.lengths:
                several.append(changed)
                found |= changed if len(changed) == 1 else set()
        read.append((axes, one))
    of_data = {place for _, seen in read for place in seen.of_data}
    places = {place for _, seen in read for place in seen.places} - of_data
    return found.union(*(each for each in several if not each & found)), places


class _Seen:
    """What tracing a module makes numbers of Python of: lengths, where, and where they are of the data."""

    def __init__(self):
        self.lengths, self.places, self.of_data = [], set(), set()

    def add(self, tensor, place):
        value = torch._C._get_value_trace(tensor)
        lengths, of_data = _sources(value)
        self.places.add(place)
        self.of_data.update([place] if of_data else [])
        if not _equal_lengths(value):
            self.lengths += lengths


def _traced(module, given):
    seen = _Seen()
    with _watched(seen), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = torch.jit.trace(module, given, check_trace=False, strict=False).inlined_graph
    seen.lengths += [length for node in graph.findAllNodes("prim::ListUnpack") for length in _divided(node)]
    return seen


def _divided(unpack):
    """The length of an axis that is cut into as many pieces as a trace has seen."""
    node = unpack.inputsAt(0).node()
    if node.kind() not in PIECES:
        return []
    sizes, arguments = node.inputsAt(0).type().sizes(), list(node.inputs())
    at = arguments[-1].toIValue()
    return [sizes[at]] if sizes and isinstance(at, int) else sizes or []


@contextlib.contextmanager
def _watched(seen):
    own = vars(torch.Tensor).keys() & set(CONVERSIONS)
    kept = {name: getattr(torch.Tensor, name) for name in CONVERSIONS}

    def watch(name):
        def conversion(tensor, *rest, **more):
            if torch.jit.is_tracing():
                if name in ("__len__", "__iter__"):
                    seen.lengths.append(kept["__int__"](tensor.shape[0]))
                caller = sys._getframe(1)
                seen.add(tensor, (caller.f_code.co_filename, caller.f_lineno))
            return kept[name](tensor, *rest, **more)

        return conversion

    try:
        for name in CONVERSIONS:
            setattr(torch.Tensor, name, watch(name))
        yield
    finally:
        for name in CONVERSIONS:
            if name in own:
                setattr(torch.Tensor, name, kept[name])
            else:
                delattr(torch.Tensor, name)


def _sources(value):
    """The lengths from which a traced number is computed, and whether it is computed from the data, too."""
    found, of_data, seen, stack = [], False, set(), [value]
    while stack:
        value = stack.pop()
        if value is None or value.debugName() in seen:
            continue
        seen.add(value.debugName())
        node = value.node()
        if node.kind() in ("aten::size", "aten::len"):
            found.append(_size(node))
        elif node.kind() == "aten::numel":
            found += node.inputsAt(0).type().sizes()
        elif node.kind() == "prim::GetAttr":
            continue
        elif node.kind() == "prim::Param" or not _is_number(value):
            of_data = True
        else:
            stack.extend(node.inputs())
    return found, of_data


def _size(node):
    at = node.inputsAt(1).toIValue() if node.kind() == "aten::size" else 0
    return node.inputsAt(0).type().sizes()[at]


def _equal_lengths(value):
    """Whether a traced truth is that two lengths are the same, as checks of an input's shape ask."""
    node = None if value is None else value.node()
    if node is None or node.kind() not in ("aten::eq", "aten::ne"):
        return False
    sides = [_alone(each) for each in (node.inputsAt(0), node.inputsAt(1))]
    return None not in sides and _size(sides[0]) == _size(sides[1])


def _alone(value):
    """The length that a number is without any arithmetic."""
    node = value.node()
    while node.kind() in ("prim::NumToTensor", "aten::Int"):
        node = node.inputsAt(0).node()
    return node if node.kind() in ("aten::size", "aten::len") else None


def _is_number(value):
    kind = value.type()
    return kind.kind() != "TensorType" or kind.dim() in (0, None)
