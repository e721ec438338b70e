"""At which lengths of its axes a model is tried beside those that the user gives, and what that has proven.

Each axis is tried at two lengths or more that are not the example's: at 1, at about half, at more. Then all axes are
tried together. What the original itself refuses is no trial of the converted model, so the next length takes its place.
"""

import numpy as np

from .common import Cannot, seed_of, text
from .data import random_feeds, read_data

MOST = 1 << 26
"""Numbers in all inputs of a trial."""


def candidates(length):
    """Groups of other lengths, the best of each first: one of each group is enough."""
    # A model may take multiples of a power of two alone, as those that halve an image several times.
    step = length & -length
    shorter = [length // 2, length - step, length - 1]
    longer = [length + length // 2, length + step, 2 * length, length + 1]
    groups = [[1], shorter, longer]
    kept = [dict.fromkeys(each for each in group if each > 0 and each != length) for group in groups]
    return [list(kept[0]), [each for each in kept[1] if each > 1], list(kept[2])]


class Trials:
    """The lengths that are tried, over a reference that has what the user asked for."""

    def __init__(self, model, asked, kept, run):
        """``run`` gives the outputs of the original, and of a stochastic one its samples, for inputs."""
        self.model, self.kept, self.run = model, kept, run
        self.base = read_data(model.data[0], model) if model.data else None
        self.seed = seed_of(asked)
        self.refused = []

    def all(self):
        """Try every axis alone, then all together; Cannot where the original takes no other length of one."""
        for axis in self.model.axes:
            self._axis(axis)
        if len(self.model.axes) > 1:
            self._together()
        for axis, length in self.model.axes.items():
            tried = self._lengths(axis) - {length}
            if not tried:
                raise self._only(axis, length)

    def _lengths(self, axis):
        return {self.model.lengths_in(each[1])[axis] for each in self.kept.sets}

    def _axis(self, axis):
        length = self.model.axes[axis]
        for low, high, group in zip((1, 2, length + 1), (1, length - 1, np.inf), candidates(length)):  # noqa: B905
            if not any(low <= each <= high for each in self._lengths(axis)):
                any(self.attempt({axis: each}) for each in group)
        for each in dict.fromkeys(one for group in candidates(length)[1:] for one in group):
            if len(self._lengths(axis) - {length}) < 2 and not self._known({axis: each}):
                self.attempt({axis: each})

    def _known(self, axes):
        wanted = dict(self.model.axes, **axes)
        return any(each["axes"] == wanted for each in self.refused)

    def _together(self):
        for change in (
            (lambda length: max(1, length // 2), lambda length: max(1, length - 1)),
            (lambda length: length + max(1, length // 2), lambda length: 2 * length, lambda length: length + 1),
        ):
            any(self.attempt({axis: each(length) for axis, length in self.model.axes.items()}) for each in change)

    def attempt(self, axes):
        """Whether the original computes at these lengths; then they are in the reference."""
        axes = dict(self.model.axes, **axes)
        lengths = [self.model.lengths_in(each[1]) for each in self.kept.sets]
        if axes in lengths:
            return True
        where = ", ".join(f"{axis} {length}" for axis, length in axes.items())
        label = f"{self.model.data[0] if self.base else 'random'}, {where}"
        try:
            if sum(np.prod([float(each) for each in put.lengths(axes)]) for put in self.model.inputs) > MOST:
                return self._refuse(label, axes, f"that are more than {MOST} numbers, too many to try")
            feeds = self._feeds(axes)
            outputs, drawn = self.run(feeds)
        except Exception as failure:
            why = failure.message if isinstance(failure, Cannot) else f"{type(failure).__name__}: {failure}"
            return self._refuse(label, axes, why)
        if any(not each.size for each in outputs):
            shapes = ", ".join(str(list(each.shape)) for each in outputs)
            return self._refuse(label, axes, f"its output there is empty: {shapes}")
        if any(each.dtype.kind == "f" and np.isnan(each).all() for each in outputs):
            return self._refuse(label, axes, "its output there is not a number, as with a mask that covers everything")
        self.kept.sets.append((label, feeds, outputs, drawn))
        return True

    def _refuse(self, label, axes, why):
        self.refused.append({"data": text(label), "axes": axes, "refused": text(why)})
        return False

    def _feeds(self, axes):
        if self.base is None:
            return random_feeds(self.model, axes, self.seed)
        found = dict(self.base)
        for put in self.model.inputs:
            for at, axis in enumerate(put.declared):
                if isinstance(axis, str):
                    array = found[put.name]
                    found[put.name] = np.take(array, np.arange(axes[axis]) % array.shape[at], axis=at)
        return found

    def _only(self, axis, length):
        why = next((each["refused"] for each in self.refused if each["axes"][axis] != length), "")
        return self.model.wrong(
            f"the original computes at no other length of the axis {axis} than {length}"
            + (f": {why.removeprefix(self.model.name + ': ')}" if why else ""),
            f"write {length} in place of {axis} in the shapes of its inputs, or correct axes, low and high",
        )


def told(model, kept, refused=()):
    """The record of what was tried: for each set of inputs its name and the lengths of its axes."""
    made = [{"data": text(each[0]), "axes": model.lengths_in(each[1])} for each in kept.sets]
    return made + list(refused)


def unproven(model, differences, kept):
    """Axes whose change alone explains what differs; none where the example's own lengths differ too."""
    lengths = {text(each[0]): model.lengths_in(each[1]) for each in kept.sets}
    wrong = {each["data"] for each in differences if not each["passed"]}
    changed = [{axis for axis, length in model.axes.items() if lengths[each][axis] != length} for each in wrong]
    if not all(changed):
        return set()
    alone = set().union(*(each for each in changed if len(each) == 1))
    together = [each for each in changed if not each & alone]
    return alone.union(*together)
