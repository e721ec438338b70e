"""Package URLs read back as what they name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from packageurl import PackageURL

from hpcgen.core.support import purl


@given(
    st.from_regex(r"\A[a-z0-9][a-z0-9+.-]{1,12}\Z"),
    st.from_regex(r"\A([0-9]:)?[0-9][A-Za-z0-9.+~]{0,9}(-[A-Za-z0-9.+~]{1,6})?\Z"),
)
def test_a_purl_reads_back_whatever_package_it_names(name: str, version: str) -> None:
    text = purl.debian_package("debian", "12", name, version, "amd64")
    read = PackageURL.from_string(text)
    assert (read.name, read.version, read.qualifiers["distro"]) == (name, version, "debian-12")
    assert str(read) == text


def test_an_rpm_package_has_its_epoch_beside_its_version() -> None:
    read = PackageURL.from_string(purl.rpm_package("rocky", "9", "shadow-utils", "2:4.9-8.el9", "x86_64"))
    assert (read.type, read.name, read.version, read.qualifiers["epoch"]) == ("rpm", "shadow-utils", "4.9-8.el9", "2")
    assert "epoch" not in purl.rpm_package("rocky", "9", "bash", "5.1.8-9.el9", "x86_64")
