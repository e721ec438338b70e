"""Bazel's log of what repository rules did, in the form of its protocol, and the files that a lock makes of it."""

from __future__ import annotations

import base64
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgen.core.errors import FetchError
from hpcgen.plugins.bazel.pins import Fetched, Requested, listed, requested

A, B, C, D = (letter * 64 for letter in "abcd")
URLS = ("https://mirror.example.org/gone/a-1.tar.gz", "https://example.org/a-1.tar.gz")


def number(value: int) -> bytes:
    """A number as protocol buffers write it."""
    rest = value >> 7
    return bytes([value & 0x7F | 0x80]) + number(rest) if rest else bytes([value])


def field(place: int, content: bytes | str | int) -> bytes:
    if isinstance(content, int):
        return number(place << 3) + number(content)
    raw = content.encode() if isinstance(content, str) else content
    return number(place << 3 | 2) + number(len(raw)) + raw


def event(context: str, kind: int, *fields: bytes) -> bytes:
    message = field(1, "/x/http.bzl:96:5") + field(2, context) + field(kind, b"".join(fields))
    return number(len(message)) + message


def log(*events: bytes) -> list[Requested]:
    return requested(io.BytesIO(b"".join(events)))


def test_downloads_are_read_with_all_their_addresses_and_the_hash_that_was_named() -> None:
    urls = [field(1, url) for url in URLS]
    sri = "sha256-" + base64.b64encode(bytes.fromhex(B)).decode()
    assert log(
        event("//external:a", 5, *urls, field(2, "out"), field(3, A), field(4, "tar.gz")),
        event("//external:a", 3, field(2, "curl"), field(2, "https://example.org/not-bazels"), field(3, 600)),
        event("repository @@b", 4, urls[1], field(2, "x"), field(4, 1), field(5, sri)),
        event("repository @@c", 4, urls[1]),
    ) == [
        Requested("//external:a", URLS, A),
        Requested("repository @@b", URLS[1:], B),
        Requested("repository @@c", URLS[1:], ""),
    ]


@given(st.binary(max_size=60))
def test_no_log_ends_in_a_traceback(data: bytes) -> None:
    try:
        requested(io.BytesIO(data))
    except FetchError as failure:
        assert "not understood" in str(failure)


def fetched(*requests: Requested, cached: str = "", wheels: dict[str, str] | None = None) -> Fetched:
    return Fetched({sha256: f"/cache/{sha256}/file" for sha256 in cached.split()}, requests, wheels or {}, {})


def test_what_came_is_listed_under_the_name_that_bazel_looks_for() -> None:
    (file,) = listed(fetched(Requested("//external:a", URLS, A), Requested("//external:gone", URLS, B), cached=A))
    assert (file.name, file.sha256, file.urls, file.file) == ("a", A, URLS, "")
    # The first address cannot be written down, but its last part is the name.
    odd = ("https://me:secret@example.org/of%20mine.zip", "https://example.org/b.zip")
    (file,) = listed(fetched(Requested("repository @@m~1.0~b", odd, A), cached=A))
    assert (file.name, file.urls, file.file) == ("m~1.0~b", odd[1:], "of%20mine.zip")
    context = "module extension foo in @@bar//:quux.bzl"
    assert listed(fetched(Requested(context, URLS, A), cached=A))[0].name == "module_extension_foo_in_bar_quux.bzl"


def test_the_same_file_under_two_names_is_listed_twice_and_its_addresses_once() -> None:
    again = Requested("//external:a2", (URLS[1], URLS[0].replace("gone", "here")), A)
    other = Requested("//external:b", ("https://example.org/other.tgz",), A)
    files = listed(fetched(Requested("//external:a", URLS, A), again, other, cached=A))
    assert [file.name for file in files] == ["a", "b"]
    assert files[0].urls == (*URLS, "https://mirror.example.org/here/a-1.tar.gz")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "https://me:secret@example.org/a.zip", "ftp://example.org/a"])
def test_a_file_without_an_address_that_a_lock_can_name_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(FetchError, match="which no lock can name") as failed:
        listed(fetched(Requested("//external:a", (url,), A), cached=A))
    assert "secret" not in str(failed.value)


def test_wheels_that_pip_brought_are_named_by_package_and_those_of_bazel_are_not_taken_twice() -> None:
    wheels = {C: "/root/1/external/six/six-1.16.0-py2.py3-none-any.whl", A: "/root/1/external/x/x-1-py3-none-any.whl"}
    request = Requested("//external:x", ("https://example.org/x-1-py3-none-any.whl",), A)
    six, x = listed(fetched(request, cached=A, wheels=wheels))
    assert (six.package, six.file, six.sha256, six.pip) == ("six==1.16.0", "six-1.16.0-py2.py3-none-any.whl", C, True)
    assert not x.pip


def test_what_has_no_hash_is_named_for_who_has_to_give_it_one() -> None:
    notes = fetched(Requested("//external:a", URLS, ""), Requested("//external:b", URLS, A)).notes()
    assert notes == [f"ERROR: fetched without a sha256: {URLS[0]}"]
