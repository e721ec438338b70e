"""What the packages of wheel lists require, by the metadata in an index; and what the built-in lists know of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.beside_blocks import read_wheel_facts
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import FetchError, InputError
from hpcgen.core.support.wheel_lines import parse_line
from hpcgen.supply.net.web import Web, WebError
from hpcgen.supply.net.wheel_metadata import remote_metadata
from hpcgen.supply.pin.wheel_facts import update_wheel_facts
from tests.helpers.file_server import serving
from tests.helpers.stub_packages import index, sha256, source, wheel

PYTHONS = ["3.11", "3.12", "3.13"]
LISTS = Path(__file__).parents[4] / "building_blocks" / "wheels"


def line(path: Path, name: str, version: str) -> str:
    return f"{name}=={version} --hash=sha256:{sha256(path)}\n"


def test_every_pinned_package_of_every_built_in_list_has_its_entry() -> None:
    """Remedy: hpcgen wheels requires."""
    known = Catalog().beside.wheel_facts().needs
    for path in LISTS.glob("*.txt"):
        for text in path.read_text("utf-8").splitlines():
            if (each := parse_line(text)) is not None:
                assert f"{each.name}=={each.version}" in known, path.name


def test_requirements_are_the_wheels_own_with_their_markers_and_without_extras(tmp_path: Path) -> None:
    needs = ["Numpy (<2.0,>=1.20)", 'six ; python_version < "3.8"', 'pytest ; extra == "test"', "plain_one"]
    top = wheel(tmp_path, "top", "1.0", needs=needs)
    old = source(tmp_path, "old", "0.5")
    (tmp_path / "top-1.0.txt").write_text(line(top, "top", "1.0") + line(old, "old", "0.5"))
    path = update_wheel_facts(tmp_path, PYTHONS, indexes=[index(tmp_path, top, old)])
    found = read_wheel_facts(path, "here")
    assert found.needs == {
        "old==0.5": None,
        "top==1.0": ["numpy<2.0,>=1.20", "plain-one", 'six; python_version < "3.8"'],
    }
    assert found.pythons == {}


def test_what_wheels_of_one_version_do_not_share_is_bound_to_their_python(tmp_path: Path) -> None:
    wheels = [
        wheel(
            tmp_path, "fast", "1.0", f"cp3{minor}-cp3{minor}-manylinux_2_17_x86_64", needs=[f"numpy>=1.{minor}", "six"]
        )
        for minor in (11, 12)
    ]
    (tmp_path / "fast.txt").write_text("".join(line(each, "fast", "1.0") for each in wheels))
    found = read_wheel_facts(update_wheel_facts(tmp_path, PYTHONS, indexes=[index(tmp_path, *wheels)]), "here")
    assert found.needs["fast==1.0"] == [
        'numpy>=1.11; python_version == "3.11"',
        'numpy>=1.12; python_version == "3.12"',
        "six",
    ]


def test_the_pythons_that_releases_have_wheels_for_are_ranges(tmp_path: Path) -> None:
    kinds = {"1.0": (11,), "1.5": (11, 12), "2.0": (12,)}
    wheels = {
        (version, minor): wheel(tmp_path, "fast", version, f"cp3{minor}-cp3{minor}-manylinux_2_17_x86_64")
        for version, minors in kinds.items()
        for minor in minors
    }
    stable = wheel(tmp_path, "steady", "1.0", "cp312-abi3-manylinux_2_17_aarch64")
    (tmp_path / "fast.txt").write_text(line(wheels["1.5", 12], "fast", "1.5") + line(stable, "steady", "1.0"))
    address = index(tmp_path, *wheels.values(), stable)
    found = read_wheel_facts(update_wheel_facts(tmp_path, PYTHONS, indexes=[address]), "here").pythons
    assert found["fast"] == {"x86_64": {"3.11": "<=1.5", "3.12": ">=1.5"}}
    assert found["steady"] == {"aarch64": {"3.12": "", "3.13": ""}}


def test_only_what_is_missing_is_looked_up_and_all_releases_of_what_is_named(tmp_path: Path) -> None:
    one, two = (wheel(tmp_path, "top", version) for version in ("1.0", "2.0"))
    address = index(tmp_path, one, two)
    page = tmp_path / "simple" / "top" / "index.html"
    withdrawn = '<a data-yanked="wrong requirements" href="' + two.as_uri()
    page.write_text(page.read_text().replace(f'<a href="{two.as_uri()}', withdrawn))
    (tmp_path / "top.txt").write_text(line(one, "top", "1.0"))
    update_wheel_facts(tmp_path, PYTHONS, indexes=[address])
    told: list[str] = []
    update_wheel_facts(tmp_path, PYTHONS, ["Top"], indexes=[address], say=told.append)
    assert told == ["1 of 2 versions looked up"]
    before = (tmp_path / "requires.json").read_text()
    update_wheel_facts(tmp_path, PYTHONS, indexes=["file:///nowhere"], say=told.append)
    assert (tmp_path / "requires.json").read_text() == before and '"top==2.0"' in before


def test_a_listed_file_that_no_index_has_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "top.txt").write_text(f"top==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(FetchError, match=r"no package index has a listed file of top 1\.0"):
        update_wheel_facts(tmp_path, PYTHONS, indexes=[index(tmp_path, wheel(tmp_path, "top", "1.0"))])


@pytest.mark.parametrize(
    "text",
    [
        '{"needs": 3}',
        "no JSON",
        '{"pythons": {"a": {"x86_64": {"3.x": ""}}}}',
        '{"pythons": {"a": {"x86_64": {"3.12": "about 2"}}}}',
        '{"pythons": {"a": {"x86_64": {"3.12": ">=1,"}}}}',
    ],
)
def test_a_damaged_file_is_named_with_what_writes_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "requires.json"
    path.write_text(text)
    with pytest.raises(InputError, match="not what wheels require") as failure:
        read_wheel_facts(path, "here")
    assert "hpcgen wheels requires" in failure.value.problems[0].remedy


def test_metadata_comes_by_its_own_file_or_by_a_part_of_the_wheel(tmp_path: Path) -> None:
    path = wheel(tmp_path, "top", "1.0", needs=["six"])
    with serving() as server:
        server.files = {"top.whl": path.read_bytes(), "other.whl": b"no archive", "x.whl.metadata": b"Name: x\n"}
        web = Web()
        assert "Requires-Dist: six" in remote_metadata(web, server.url("top.whl"), loopback_http=True)
        assert remote_metadata(web, server.url("x.whl"), loopback_http=True) == "Name: x\n"
        for name in ("other.whl", "none.whl"):
            with pytest.raises(WebError):
                remote_metadata(web, server.url(name), loopback_http=True)
        server.ranges = False
        with pytest.raises(WebError, match="the server says 200"):
            remote_metadata(web, server.url("top.whl"), loopback_http=True)


def test_of_a_large_wheel_little_is_fetched(tmp_path: Path) -> None:
    import zipfile

    path = wheel(tmp_path, "large", "1.0", needs=["six"])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("large.so", bytes(8 * 1024 * 1024))
    with serving() as server:
        server.files = {"large.whl": path.read_bytes()}
        assert "six" in remote_metadata(Web(), server.url("large.whl"), loopback_http=True)
        ranges = [each["range"] for each in server.asked("large.whl")]
    assert len(ranges) <= 4 and ranges[0] == "bytes=0-0"
