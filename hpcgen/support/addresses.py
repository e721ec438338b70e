"""Users and passwords that stand before the host of an address: ``https://USER:PASSWORD@HOST/``."""

from __future__ import annotations

import re

_USER = re.compile(r"://[^/@]*@")
_PASSWORD = re.compile(r"://[^/@:\s]*:[^/@\s]+@")


def names_user(text: str) -> bool:
    """Whether an address in a text names a user, who may be a token."""
    return _USER.search(text) is not None


def has_password(text: str) -> bool:
    """Whether an address in a text has a password."""
    return _PASSWORD.search(text) is not None


def without_user(text: str) -> str:
    """A text that can be shown: nothing stands before the hosts of its addresses."""
    return _USER.sub("://…@", text)
