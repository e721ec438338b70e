"""Licences as SPDX expressions."""

from __future__ import annotations


def licence_expression(text: str) -> str:
    """A licence as a correct SPDX expression; empty for anything else, which no reader could use."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        return str(canonicalize_license_expression(text)) if text else ""
    except InvalidLicenseExpression:
        return ""
