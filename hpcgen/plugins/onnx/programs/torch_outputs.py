"""What a module of PyTorch returns, as tensors with names; and a module that returns just these."""

import dataclasses

import torch


def named(result, path=""):
    """Each tensor of a result in its order, by its path there (``logits``, ``hidden.0``), and what is no tensor."""
    if result is None:
        return
    for name, each in _parts(result):
        if name is None:
            yield path, each
        else:
            yield from named(each, f"{path}.{name}" if path else str(name))


def _parts(result):
    if isinstance(result, dict):
        return result.items()
    if isinstance(result, (list, tuple)):
        return zip(getattr(result, "_fields", None) or range(len(result)), result)  # noqa: B905 (Python 3.9)
    if dataclasses.is_dataclass(result):
        return [(each.name, getattr(result, each.name)) for each in dataclasses.fields(result)]
    return [(None, result)]


def names_of(paths):
    """Names of outputs by their paths: that of one alone without a path is ``output``."""
    clean = ["".join(each if each.isalnum() or each in "_.:/-" else "_" for each in path)[:80] for path in paths]
    return [each if each[:1].isalpha() else f"output_{each}" if each else "output" for each in clean]


def is_plain(result):
    """Whether exporters take it as it is: a tensor, or some in a tuple or list."""
    rows = result if isinstance(result, (list, tuple)) and not hasattr(result, "_fields") else [result]
    return all(isinstance(each, torch.Tensor) for each in rows)


class Flat(torch.nn.Module):
    """A module that takes its inputs by these names, or in their order without any, and returns its tensors alone."""

    def __init__(self, module, names):
        super().__init__()
        self.module, self.names, self.training = module, names, module.training

    def forward(self, *given):
        """The tensors in the order of :func:`named`."""
        return tuple(each for _, each in named(self.called(*given)) if isinstance(each, torch.Tensor))

    def called(self, *given):
        """What the module itself returns."""
        return self.module(**dict(zip(self.names, given))) if self.names else self.module(*given)  # noqa: B905
