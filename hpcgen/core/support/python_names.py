"""Names of Python packages."""

from __future__ import annotations

import re

_BETWEEN = re.compile(r"[-_.]+")


def normal_name(name: str) -> str:
    """The one spelling of a package's name by which names are compared.

    Source: PEP 503, "Normalized Names". ``packaging.utils`` has the same, and loads what looks for wheels' tags.
    """
    return _BETWEEN.sub("-", name).lower()
