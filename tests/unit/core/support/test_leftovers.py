"""Temporary folders of processes that were killed go with the next one of their name."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from hpcgen.core.support.leftovers import scratch_folder


def test_what_a_killed_process_left_goes_and_what_is_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch_folder("hpcgen-lock-") as first:
        (first / "file").touch()
        # A copy has no lock: as if its process had been killed.
        left = first.with_name(f"{first.name.removesuffix('.work')}x.work")
        shutil.copytree(first, left)
        others = tmp_path / "hpcgen-lock-of-another-machine.work"
        others.mkdir()
        with scratch_folder("hpcgen-kit-") as second:
            assert left.exists() and second.is_dir(), "another name's are left to it"
        with scratch_folder("hpcgen-lock-") as third:
            assert first.exists() and not left.exists() and third.is_dir()
    assert list(tmp_path.iterdir()) == [others]
