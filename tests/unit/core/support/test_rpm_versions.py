"""The order of RPM versions."""

from __future__ import annotations

import itertools

import pytest

from hpcgen.core.support.rpm_versions import rpm_version_key

ORDER = [
    "1.0~rc1-1",
    "1.0~rc2-1",
    "1.0-1.el9",
    "1.0-1.el9_4",
    "1.0-2.el9",
    "1.0^git1-1",
    "1.0.a-1",
    "1.0.1-1",
    "1.0.10-1",
    "1:0.5-1",
]


@pytest.mark.parametrize(("older", "newer"), list(itertools.pairwise(ORDER)))
def test_each_version_is_newer_than_the_one_before(older: str, newer: str) -> None:
    assert rpm_version_key(older) < rpm_version_key(newer)


def test_separators_and_leading_zeros_do_not_count() -> None:
    assert rpm_version_key("1.02_3-1") == rpm_version_key("1.2.3-01")
    assert rpm_version_key("0:1-1") == rpm_version_key("1-1")
