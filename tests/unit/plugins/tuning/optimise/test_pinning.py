"""A source that nothing pins: fetched once on request, and its hash or commit written into the request."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from hpcgen.core.errors import FetchError
from hpcgen.plugins.tuning.optimise.pinning import pinned_address
from hpcgen.plugins.tuning.requests.records import Build
from tests.conftest import Command
from tests.helpers.file_server import make_certificate, serving

SOURCE = b"int main(void) { return 0; }\n"


def test_a_file_is_hashed_and_the_request_pinned(
    hpcgen: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
    with serving(tls) as server:
        server.files["a.c"] = SOURCE
        build = {"src": server.url("a.c"), "build_command": "cc -o a a.c"}
        data = {"job": {"application": {"app_type": "hpc", "executable": "./a", "build": build}}}
        request = tmp_path / "request.json"
        request.write_text(json.dumps(data, indent=2))
        refused = hpcgen("optimise", "request.json", "--site", "workstation")
        assert refused.returncode == 3
        assert "`hpcgen optimise request.json --site workstation --pin` fetches it once" in refused.stderr
        assert not server.requests
        done = hpcgen("optimise", "request.json", "--site", "workstation", "--pin", "-o", "kit")
        assert done.returncode == 0, done.stderr
        build["src"] += f"#sha256={hashlib.sha256(SOURCE).hexdigest()}"
        assert json.loads(request.read_text()) == data and len(server.requests) == 1
        again = hpcgen("optimise", "request.json", "--site", "workstation", "--pin")
        assert again.returncode == 0 and "is pinned already" in again.stderr and len(server.requests) == 1


def test_a_repository_is_pinned_to_its_newest_commit_or_that_of_a_tag(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"], ["tag", "-a", "-m", "1", "v1"]):
        subprocess.run([*git, *words], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "two"], check=True)
    of = {name: subprocess.check_output([*git, "rev-parse", name], text=True).strip() for name in ("HEAD", "HEAD~1")}
    address = f"file://{tmp_path}"
    build = Build(src=address, build_command="make")
    assert pinned_address(build) == f"{address}@{of['HEAD']}"
    assert pinned_address(Build(src=f"{address}@v1", build_command="make")) == f"{address}@{of['HEAD~1']}"
    with pytest.raises(FetchError, match="v2"):
        pinned_address(Build(src=f"{address}@v2", build_command="make"))
    assert os.listdir(tmp_path) == [".git"]
