"""What programs of strangers leave in the unpacked base, as far as a lock takes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hpcgen.core.errors import ConflictError, FetchError
from hpcgen.supply.pin.spack_environment import chosen

HASH = "ab" * 32
SOURCE = {"package": "bzip2@1.0.8", "path": f"ab/{HASH}.tar.gz", "sha256": HASH, "url": "https://example.org/b.tar.gz"}


def answer(*sources: dict[str, Any]) -> bytes:
    return json.dumps({"lock": {"roots": []}, "sources": sources}).encode()


def test_each_source_is_pinned_once_and_by_https_alone() -> None:
    pin = chosen(answer(SOURCE, SOURCE, {**SOURCE, "path": f"cd/{HASH}.tar.xz", "url": "http://example.org/b"}))
    assert [(each.file, each.url) for each in pin.sources] == [
        (f"{HASH}.tar.gz", "https://example.org/b.tar.gz"),
        (f"{HASH}.tar.xz", None),
    ]
    assert json.loads(pin.lock) == {"roots": []}


def test_a_source_that_no_hash_pins_is_refused_by_its_package() -> None:
    with pytest.raises(ConflictError, match="the source of mine@main has no sha256"):
        chosen(answer(SOURCE, {"package": "mine@main", "path": "", "sha256": "", "url": "https://example.org/m.git"}))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"lock": {}}',
        answer({**SOURCE, "path": f"../{HASH}.tar.gz"}),
        answer({**SOURCE, "path": f"ab/{HASH};id"}),
        answer({**SOURCE, "sha256": "x"}),
        answer({**SOURCE, "package": "a\nb"}),
        answer({**SOURCE, "url": "https://example.org/$(id)"}),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(FetchError, match="cannot be parsed"):
        chosen(data)
