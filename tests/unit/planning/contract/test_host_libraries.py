"""Single libraries of the host in images: none of the C library, none over the base's own; which images have too."""

from __future__ import annotations

import pytest
from msgspec import structs

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.model.plan import Plan
from hpcgen.planning.contract.libraries import debian_names
from hpcgen.planning.contract.verdict import case_of, checks_of
from hpcgen.planning.planner import make_plan


def planned(catalog: Catalog, *names: str, settings: tuple[str, ...] = ()) -> Plan:
    """mpi-hello for nodes of LUMI, where these libraries are bound."""
    site = catalog.site("lumi-c")
    assert site.mpi is not None
    single = [Bind(f"/usr/lib64/{each}", f"/usr/lib64/{each}", True) for each in names]
    mpi = structs.replace(site.mpi, binds=[Bind("/opt/cray", "/opt/cray"), *single])
    return make_plan(catalog, structs.replace(site, mpi=mpi), catalog.stack("mpi-hello"), settings=settings)


def test_parts_of_the_hosts_c_library_are_refused() -> None:
    with pytest.raises(PolicyError, match=r"libm\.so\.6, ld-linux-x86-64\.so\.2 of the host's C library"):
        planned(Catalog(), "libcxi.so.1", "libm.so.6", "ld-linux-x86-64.so.2")


def test_a_base_that_keeps_its_own_libraries_there_is_a_warning() -> None:
    catalog = Catalog()
    plan = planned(catalog, "libcxi.so.1", "libcurl.so.4")
    assert not [each for each in plan.findings if each.name == "binds"]
    plan = planned(catalog, "libcxi.so.1", "libcurl.so.4", settings=("base.provider=rockylinux",))
    (finding,) = [each for each in plan.findings if each.name == "binds"]
    assert finding.message.startswith(
        "libcxi.so.1, libcurl.so.4 of the host are bound into /usr/lib64, where rockylinux"
    )


def test_a_library_that_the_image_installs_itself_is_said() -> None:
    catalog = Catalog()
    plan = planned(catalog, "libcxi.so.1", "libnuma.so.1")
    case = structs.replace(case_of(plan, catalog), packages=["libnuma1"])
    (check,) = [each for each in checks_of(case) if each.name == "binds"]
    assert check.outcome == "holds"
    assert check.reason.endswith("; the image has libnuma.so.1 (libnuma1) itself, which serves as well")


@pytest.mark.parametrize(
    ("soname", "package"),
    [
        ("libjson-c.so.5", "libjson-c5"),
        ("libnl-3.so.200", "libnl-3-200"),
        ("libssl.so.1.1", "libssl1.1"),
        ("libnl-route-3.so.200", "libnl-route-3-200"),
    ],
)
def test_names_of_packages_follow_debians_policy(soname: str, package: str) -> None:
    assert debian_names(soname)[0] == package
