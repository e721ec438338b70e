"""Which libraries are parts of the GNU C library."""

from __future__ import annotations

import re

_GLIBC = re.compile(
    r"(linux-vdso|ld-linux[a-z0-9_-]*"
    r"|lib(c|m|mvec|pthread|dl|rt|util|resolv|anl|nss_[a-z_]+|thread_db|BrokenLocale))\.so(\.\d+)?"
)


def of_glibc(name: str) -> bool:
    """Whether a library, by its SONAME, belongs to it. All of its parts must be of one build: in images the image's."""
    return _GLIBC.fullmatch(name) is not None
