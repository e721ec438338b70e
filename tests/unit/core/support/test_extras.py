"""What remedies and pipelines install: packages by their names, and this hpcgen from where it came."""

from __future__ import annotations

from importlib import metadata

import pytest

from hpcgen.core.errors import MissingToolError
from hpcgen.core.support.extras import extra, own_requirement, requirements_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_missing_library_names_itself_and_not_hpcgen() -> None:
    with pytest.raises(MissingToolError) as error, extra("lock", "lock wheels"):
        raise ImportError(name="uv")
    remedy = error.value.problems[0].remedy
    assert remedy.startswith("pip install 'uv>=") and "hpcgen" not in remedy
    assert requirements_of("no-such-extra") == []


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (
            f'{{"url": "https://example.org/h.git", "vcs_info": {{"vcs": "git", "commit_id": "{COMMIT}"}}}}',
            f"hpcgen @ git+https://example.org/h.git@{COMMIT}",
        ),
        (
            '{"url": "https://example.org/h.whl", "archive_info": {"hashes": {"sha256": "00ff"}}}',
            "hpcgen @ https://example.org/h.whl#sha256=00ff",
        ),
        ('{"url": "file:///home/me/hpcgen", "dir_info": {"editable": true}}', ""),
        ('{"url": "https://me:word@example.org/h.git", "vcs_info": {"vcs": "git", "commit_id": "x"}}', ""),
        ('{"url": "file:///home/me/hpcgen-0.2.0-py3-none-any.whl", "archive_info": {}}', ""),
        (None, ""),
        ("{", ""),
    ],
)
def test_a_pipeline_installs_hpcgen_from_where_it_came(
    said: str | None, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            return said

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    assert own_requirement() == found
