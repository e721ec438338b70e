"""Names of packages and licences, as standards spell them."""

from __future__ import annotations

import re
from itertools import takewhile

# Names of Python packages.

_BETWEEN = re.compile(r"[-_.]+")


def normal_name(name: str) -> str:
    """The one spelling of a package's name by which names are compared.

    Source: PEP 503, "Normalized Names". ``packaging.utils`` has the same, and loads what looks for wheels' tags.
    """
    return _BETWEEN.sub("-", name).lower()


def asked_name(requirement: str) -> str:
    """The name with which a requirement begins, as it is written there."""
    return "".join(takewhile(lambda each: each.isalnum() or each in "_.-", requirement))


# Licences as SPDX expressions.


def licence_expression(text: str) -> str:
    """A licence as a correct SPDX expression; empty for anything else, which no reader could use."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        return str(canonicalize_license_expression(text)) if text else ""
    except InvalidLicenseExpression:
        return ""
