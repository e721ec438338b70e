"""What the documentation's build says of a page that did not become what its Markdown means."""

from __future__ import annotations

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("markdown", "html", "expected"),
    [
        ("# A\n\n```sh\n# no heading\n```\n", "<h1>A</h1><pre><code># no heading</code></pre>", []),
        (
            "# A\n\n```console example\n$ x\n```\n\n## B\n",
            "<h1>A</h1><p>```console example $ x</p><pre><code>## B</code></pre>",
            ["2 headings are written, 1 were built", "the fence of a block of code stands in the text"],
        ),
        ("`a\\|b`", "<td><code>a\\|b</code></td>", ["a bar of a table stands with its backslash"]),
        ("", "<pre><code>grep 'a\\|b' {name}</code></pre><code>{name}</code>", []),
        ("", "<p>the disk of {engine} is full</p>", ["{engine} was not filled in"]),
        ("", "<th>name</th><th><code>x</code></th><th> </th>", ["a column of a table has no head"]),
    ],
)
def test_a_page_is_held_against_its_markdown(
    markdown: str, html: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "docs"))
    import built

    found = list(built.faults(markdown, html))
    assert [fault.partition(":")[0] for fault in found] == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"write (?P<path>/\S+?): [Nn]o space", ["write /…: no space"]),
        (r"^Curl error \((6|28)\).* for x$", ["Curl error (6)… for x", "Curl error (28)… for x"]),
        (r"don.t find (it )?in \d+ +files?", ["don't find in … file"]),
    ],
)
def test_patterns_are_shown_as_texts(pattern: str, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "docs"))
    import patterns

    assert patterns.fitting(pattern) == expected
