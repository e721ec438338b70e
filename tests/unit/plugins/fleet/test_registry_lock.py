"""The registry's list of builds where reading is denied; a program in skopeo's place is the registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import FetchError
from hpcgen.plugins.fleet.file import load_fleet
from hpcgen.plugins.fleet.registry_lock import pull_lock, push_lock

SKOPEO = """#!/bin/sh
for word; do
    case $word in docker://*:*) named=${word##*:} ;; esac
done
case "$*" in
    *"--quiet --retry-times=3 docker://"*)
        test -f first && [ "$(cat answers)" = unknown ] && { echo "manifest unknown" >&2; exit 1; }
        echo "requested access to the resource is denied" >&2
        exit 1 ;;
    *) echo "$named" >> pushed; touch first ;;
esac
"""


@pytest.mark.parametrize("answer", ["denied", "unknown"])
def test_a_registry_that_denies_reading_keeps_the_entries_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """Some deny what is not there: that is known once something is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "skopeo").write_text(SKOPEO)
    (tmp_path / "skopeo").chmod(0o755)
    (tmp_path / "answers").write_text(answer)
    members = "members:\n  - {stack: mpi-hello, site: workstation}\n"
    (tmp_path / "fleet.yaml").write_text("registry: registry.example.org/hpc\n" + members)
    loaded = load_fleet(tmp_path / "fleet.yaml")
    assert pull_lock(loaded) == {}
    if answer == "denied":
        with pytest.raises(FetchError, match="others' entries would be lost"):
            push_lock(loaded, tmp_path / "fleet.lock")
    else:
        push_lock(loaded, tmp_path / "fleet.lock")
    pushed = ["fleet-first"] + ["fleet"] * (answer == "unknown")
    assert (tmp_path / "pushed").read_text().split() == pushed
