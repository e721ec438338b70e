"""Where the nodes of a graph lie in a picture: in layers, what is needed below what needs it, few lines crossing.

The usual way of layered drawings (Sugiyama, Tagawa, Toda 1981): layers by the longest path, long edges through a place
of their own in every layer between, the order in each layer by the mean of the neighbours' places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

_ROUNDS = 24
_PASSAGE = 14.0
"""The width that a long edge has in a layer."""

Edge = tuple[str, str]


class Drawing(msgspec.Struct, frozen=True):
    """``centres``: x and y of each node's middle; ``lines``: for each edge the points that it goes through."""

    centres: dict[str, tuple[float, float]]
    lines: dict[Edge, list[tuple[float, float]]]
    width: float
    height: float


def layered(widths: Mapping[str, float], edges: Sequence[Edge], height: float, gap: float, between: float) -> Drawing:
    """Lay out a graph without circles.

    Parameters
    ----------
    widths: of each node, in the order in which they are placed at first; pixels, as all lengths.
    edges: from what needs to what is needed.
    height: of a layer's nodes. gap: between two of them. between: from layer to layer.
    """
    layer = _layers(list(widths), edges)
    rows: list[list[str]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    for name in widths:
        rows[layer[name]].append(name)
    size = dict(widths)
    chains: dict[Edge, list[str]] = {}
    for number, (source, target) in enumerate(edges):
        passages = [f"{number}/{row}" for row in range(layer[source] + 1, layer[target])]
        for row, name in enumerate(passages, layer[source] + 1):
            rows[row].append(name)
            size[name] = _PASSAGE
        chains[source, target] = [source, *passages, target]
    links = [(chain[at], chain[at + 1]) for chain in chains.values() for at in range(len(chain) - 1)]
    above, below = _neighbours(links), _neighbours([(target, source) for source, target in links])
    _order(rows, below, above)
    x = _places(rows, size, {name: [*above.get(name, []), *below.get(name, [])] for name in size}, gap)
    left = min((x[name] - size[name] / 2 for name in size), default=0)
    right = max((x[name] + size[name] / 2 for name in size), default=0)
    place = {
        name: (x[name] - left, number * (height + between) + height / 2)
        for number, row in enumerate(rows)
        for name in row
    }
    return Drawing(
        centres={name: place[name] for name in widths},
        lines={edge: [place[name] for name in chain] for edge, chain in chains.items()},
        width=right - left,
        height=len(rows) * (height + between) - between,
    )


def _layers(names: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """The longest way to each from a node that nothing needs; such a node lies just above the highest it needs."""
    layer = dict.fromkeys(names, 0)
    for _ in names:
        for source, target in edges:
            layer[target] = max(layer[target], layer[source] + 1)
    needs = {name: [target for source, target in edges if source == name] for name in names}
    needed = {target for _, target in edges}
    for name in names:
        if name not in needed and needs[name]:
            layer[name] = min(layer[target] for target in needs[name]) - 1
    return layer


def _neighbours(links: Sequence[Edge]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one, other in links:
        found.setdefault(one, []).append(other)
    return found


def _order(rows: list[list[str]], above: Mapping[str, list[str]], below: Mapping[str, list[str]]) -> None:
    """Sort every layer, downward and upward in turn, by where the neighbours are; what has none stays."""
    for turn in range(_ROUNDS):
        sides = above if turn % 2 == 0 else below
        order = range(1, len(rows)) if turn % 2 == 0 else range(len(rows) - 2, -1, -1)
        for number in order:
            beside = rows[number - 1 if turn % 2 == 0 else number + 1]
            at = {name: place for place, name in enumerate(beside)}
            own = {name: place for place, name in enumerate(rows[number])}
            wanted = {
                name: _mean([at[each] for each in sides.get(name, ()) if each in at], place)
                for name, place in own.items()
            }
            rows[number].sort(key=lambda name, wanted=wanted, own=own: (wanted[name], own[name]))  # type: ignore[misc]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _places(
    rows: list[list[str]], size: Mapping[str, float], near: Mapping[str, list[str]], gap: float
) -> dict[str, float]:
    """The middle of each along its layer: near the mean of its neighbours, in its layer's order, none over another."""
    x: dict[str, float] = {}
    for row in rows:
        at = 0.0
        for name in row:
            x[name] = at + size[name] / 2
            at += size[name] + gap
    for turn in range(_ROUNDS * 2):
        for row in rows if turn % 2 == 0 else reversed(rows):
            wanted = [_mean([x[each] for each in near.get(name, ())], x[name]) for name in row]
            for name, place in zip(row, _apart(wanted, [size[name] for name in row], gap), strict=True):
                x[name] = place
    return x


def _apart(wanted: Sequence[float], sizes: Sequence[float], gap: float) -> list[float]:
    """Places in order that lie as near to the wanted ones as they can without overlapping (pooled neighbours)."""
    offsets, at = [], 0.0
    for number, size in enumerate(sizes):
        at += (sizes[number - 1] + size) / 2 + gap if number else 0.0
        offsets.append(at)
    groups: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        mean, count = want - offset, 1
        while groups and groups[-1][0] > mean:
            other, number = groups.pop()
            mean, count = (mean * count + other * number) / (count + number), count + number
        groups.append((mean, count))
    shifts = [mean for mean, count in groups for _ in range(count)]
    return [shift + offset for shift, offset in zip(shifts, offsets, strict=True)]
