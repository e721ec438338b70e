"""For which lengths of its axes an exported or traced module of PyTorch holds."""

import contextlib
import warnings

import torch

CONVERSIONS = ("__index__", "__bool__", "__int__", "__float__", "__len__", "__iter__", "item", "tolist", "numpy")
"""By these a tracer's tensor becomes a number of Python, which is a constant of what it traces."""


def specialised(module, given, shapes):
    """Names of the axes that ``torch.export`` takes for constants; the failure where it refuses the module at all.

    ``shapes``: for each input the names of its axes by their place.
    """
    auto = tuple(dict.fromkeys(each, torch.export.Dim.AUTO) for each in shapes)
    program = torch.export.export(module, given, dynamic_shapes=dynamic(module, auto), strict=False)
    found = set()
    for shape, names in zip(_shapes(program), shapes):  # noqa: B905 (Python 3.9)
        found |= {axis for at, axis in names.items() if _symbol(shape[at]) is None}
    return found


def _symbol(length):
    """What stands for a length in a program; None where that is a number."""
    expression = getattr(getattr(length, "node", None), "expr", None)
    return None if expression is None or expression.is_number else expression


def dynamic(module, shapes):
    """Shapes as exporters take them, in one where the module takes all its inputs in one."""
    import inspect

    kinds = inspect.signature(module.forward).parameters.values()
    return (shapes,) if any(each.kind == each.VAR_POSITIONAL for each in kinds) else shapes


def _shapes(program):
    inputs = set(program.graph_signature.user_inputs)
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in inputs]
    return [node.meta["val"].shape for node in nodes]


def ends(program, shapes):
    """Of the axes for which a program of ``torch.export`` has limits: the next lengths beyond them."""
    found = {}
    for shape, names in zip(_shapes(program), shapes):  # noqa: B905 (Python 3.9)
        for at, axis in names.items():
            limits = program.range_constraints.get(_symbol(shape[at]))
            if limits is None:
                continue
            beyond = [int(limits.lower) - 1] if limits.lower > 2 else []
            if limits.upper < 1 << 40:
                beyond.append(int(limits.upper) + 1)
            found.setdefault(axis, set()).update(beyond)
    return {axis: sorted(each) for axis, each in found.items() if each}


def taken(module, examples):
    """Names of the axes whose lengths the code of a module takes for numbers when it is traced.

    A tracer makes these constants without a word, as that in ``range(x.shape[1])``.

    Parameters
    ----------
    examples: pairs of the lengths of all axes, and inputs.
    """
    read = [(axes, _taken(module, given)) for axes, given in examples]
    found, several = set(), []
    for at, (axes, one) in enumerate(read):
        for others, two in read[:at]:
            changed = {each for each in axes if axes[each] != others[each]}
            if one != two:
                several.append(changed)
                found |= changed if len(changed) == 1 else set()
    return found.union(*(each for each in several if not each & found))


def _taken(module, given):
    seen = []
    with _watched(seen), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(module, given, check_trace=False, strict=False)
    return seen


@contextlib.contextmanager
def _watched(seen):
    own = vars(torch.Tensor).keys() & set(CONVERSIONS)
    kept = {name: getattr(torch.Tensor, name) for name in CONVERSIONS}

    def watch(name):
        def conversion(tensor, *rest, **more):
            if torch.jit.is_tracing():
                if name in ("__len__", "__iter__"):
                    seen.append(kept["__int__"](tensor.shape[0]))
                seen.extend(_lengths(tensor))
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


def _lengths(tensor):
    """The lengths from which a traced number is computed; none for one of the data."""
    found, seen, stack = [], set(), [torch._C._get_value_trace(tensor)]
    while stack:
        value = stack.pop()
        if value is None or value.debugName() in seen:
            continue
        seen.add(value.debugName())
        node = value.node()
        if node.kind() in ("aten::size", "aten::len"):
            sizes = node.inputsAt(0).type().sizes()
            at = node.inputsAt(1).toIValue() if node.kind() == "aten::size" else 0
            found.append(sizes[at])
        elif _is_number(value):
            stack.extend(node.inputs())
    return found


def _is_number(value):
    kind = value.type()
    return kind.kind() != "TensorType" or kind.dim() in (0, None)
