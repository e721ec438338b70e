"""Sources of the collection are dated, none of memory is verified, and no fact is younger than what it cites."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcgen.core.config.yamlfile import load
from tests.conftest import ROOT

PROFILES = sorted((ROOT / "site_profiles").glob("*.yaml"))
CLONES = os.environ.get("CITED_CLONES", "")
"""A folder with clones of cited repositories, each as OWNER+REPO; none are needed for the other tests."""
CITED = re.compile(r"github\.com/([\w.-]+/[\w.-]+)@([0-9a-f]{7,40})")


FILES = sorted([*PROFILES, *(ROOT / "building_blocks").rglob("*.yaml"), *(ROOT / "recipes").rglob("*.yaml")])


def sources_in(data: object) -> Iterator[dict[str, str]]:
    """Every source in a profile, a recipe or a release table, wherever it stands there."""
    if isinstance(data, dict):
        if {"from", "verified"} <= data.keys():
            yield data
        for each in data.values():
            yield from sources_in(each)
    elif isinstance(data, list):
        for each in data:
            yield from sources_in(each)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_verified_fact_has_the_date_of_its_source(path: Path) -> None:
    for source in sources_in(load(path, path.name).data):
        if source["verified"] == "yes":
            assert "as_of" in source, source["from"]
        if "as_of" in source:
            assert source["as_of"] <= source["checked"], source["from"]
        if "dated_by" in source:
            # Of such a source nothing is known but the day of its reading.
            assert (source["dated_by"], source["as_of"]) == ("reading", source["checked"]), source["from"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_known_from_memory_is_called_verified(path: Path) -> None:
    for source in sources_in(load(path, path.name).data):
        if source["verified"] == "yes":
            assert "from memory" not in source["from"] + source.get("note", ""), source["from"]


@pytest.mark.skipif(not CLONES, reason="set CITED_CLONES to a folder with clones of the cited repositories")
@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_cited_commits_are_there_and_no_fact_is_younger(path: Path) -> None:
    for name, source in (load(path, path.name).data.get("sources") or {}).items():
        for repository, commit in CITED.findall(source["from"]):
            clone = Path(CLONES, repository.replace("/", "+"))
            clone = clone / "repo" if (clone / "repo").is_dir() else clone
            if clone.is_dir():
                words = ["git", "-C", str(clone), "log", "-1", "--format=%cs", commit, "--"]
                day = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
                assert source.get("as_of", "") <= day, name
