"""Users and passwords that stand before the host of an address: ``https://USER:PASSWORD@HOST/``."""

from __future__ import annotations

import re
from collections.abc import Iterable

_USER = r"://[^/@]*@"
_PASSWORD = re.compile(r"://[^/@:\s]*:[^/@\s]+@")


def names_user(text: str) -> bool:
    """Whether an address in a text names a user, who may be a token."""
    return re.search(_USER, text) is not None


def has_password(text: str) -> bool:
    """Whether an address in a text has a password."""
    return _PASSWORD.search(text) is not None


def users_in(values: Iterable[str]) -> list[str]:
    """What stands before the hosts of addresses with a password, such as ``jane:secret``, the longest first."""
    found = {place[0][3:-1] for value in values for place in _PASSWORD.finditer(value)}
    return sorted(found, key=lambda each: (-len(each), each))


def without_users(text: str, users: Iterable[str]) -> str:
    """A text in which these users, of :func:`users_in`, stand before no host."""
    for user in users:
        text = text.replace(f"{user}@", "…@")
    return text


def without_user(text: str) -> str:
    """A text that can be shown: nothing stands before the hosts of its addresses."""
    return re.sub(_USER, "://…@", text)
