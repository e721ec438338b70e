"""What buildah and podman leave when they are stopped is removed unless another build may need it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from hpcgen.backends.engines.buildah import another_build
from hpcgen.backends.engines.building import query_list


@pytest.mark.parametrize(("store", "found"), [("here", True), ("elsewhere", False)])
def test_a_build_in_another_store_is_not_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, found: bool
) -> None:
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(tmp_path / "here"))
    os.mkfifo(tmp_path / "build")
    environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(tmp_path / store)}
    # It waits for a writer, under the name and with the words of a build.
    other = subprocess.Popen(["buildah", "build"], executable="/bin/cat", cwd=tmp_path, env=environment)
    try:
        # The kernel shows the words of a new program a moment after it has let its parent go on.
        deadline = time.monotonic() + 10
        while not Path(f"/proc/{other.pid}/cmdline").read_bytes() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert another_build() is found
    finally:
        other.kill()
        other.wait()


def test_a_warning_beside_the_list_of_an_engine_is_not_part_of_it(tmp_path: Path) -> None:
    """As buildah warns where another process removes an image while it lists them."""
    engine = tmp_path / "buildah"
    engine.write_text("#!/bin/sh\necho '[{\"size\": 5}]'\necho 'image not known: was it removed?' >&2\n")
    engine.chmod(0o755)
    assert query_list([str(engine)]) == [{"size": 5}]
    assert query_list(["false"]) == []
