"""Libraries that are not installed with hpcgen alone: locks and bundles need some that plans and recipes do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hpcgen.core.errors import MissingToolError


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Import libraries of an extra inside it; MissingToolError that says how to install them where they are missing.

    Parameters
    ----------
    name: of the extra in pyproject.toml.
    purpose: what they are needed to do, such as ``lock wheels``.
    """
    try:
        yield
    except ImportError as failure:
        missing = (failure.name or "a library").partition(".")[0]
        raise MissingToolError(
            f"the Python package {missing} is needed to {purpose}, and is not installed",
            remedy=f"pip install 'hpcgen[{name}]'",
        ) from failure
