"""The C library that wheels need, by their names."""

from __future__ import annotations

import pytest

from hpcgen.core.support.wheel_tags import glibc_of, newest_glibc

NUMPY = "numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"


@pytest.mark.parametrize(
    ("file", "glibc"),
    [
        (NUMPY, "2.27"),
        ("torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", "2.28"),
        ("impi_rt-2021.4.0-py2.py3-none-manylinux1_x86_64.whl", "2.5"),
        ("cmake-3.28.4-py2.py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", "2.17"),
        ("six-1.17.0-py2.py3-none-any.whl", ""),
        ("torch-1.13.1+cpu-cp310-cp310-linux_x86_64.whl", ""),
        ("horovod-0.28.1.tar.gz", ""),
    ],
)
def test_the_oldest_that_will_do(file: str, glibc: str) -> None:
    assert glibc_of(file) == glibc


def test_a_list_needs_what_the_most_demanding_of_its_wheels_does() -> None:
    assert newest_glibc([NUMPY, "six-1.17.0-py2.py3-none-any.whl", "x-1-py3-none-manylinux1_x86_64.whl"]) == "2.27"
    assert newest_glibc(["six-1.17.0-py2.py3-none-any.whl"]) == ""
