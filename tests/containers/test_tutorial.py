"""The tutorial, typed word for word into an empty home: its commands, its files, and what it says appears.

What a tutorial's reader has and this machine has not is put in its place: the sites ``workstation`` and ``slurm-cpu``
are those that come with hpcgen, with this machine's mirrors and base; the cluster is a loopback Slurm.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from container_tools import REPORTS, BaseImage, Slurm, run
from test_rendered_kits import site_profile

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
LIMIT = 15 * 60
"""Seconds that the page promises."""
LEFT_OUT = ("PYTHONPATH", "VIRTUAL_ENV", "HPCGEN_CONFIG", "HPCGEN_COLLECTIONS", "HPCGEN_RECORDS", "HPCGEN_ENTRY_POINTS")


@pytest.fixture
def home(tmp_path: Path, machine_facts: dict[str, Any], plain_base_image: BaseImage) -> Path:
    """A home with hpcgen's sources, and with a config file that names the sites as they are on this machine."""
    home = tmp_path / "home"
    sites = home / "our-sites" / "site_profiles"
    sites.mkdir(parents=True)
    (home / "hpcgen").symlink_to(ROOT)
    here = site_profile(machine_facts, plain_base_image)
    for name in ("workstation", "slurm-cpu"):
        shipped = yaml.safe_load((ROOT / "site_profiles" / f"{name}.yaml").read_text("utf-8"))
        del shipped["sources"]
        network = {
            **shipped.pop("network"),
            **{key: here["network"][key] for key in here["network"] if key != "internet"},
        }
        (sites / f"{name}.yaml").write_text(yaml.safe_dump({**shipped, "network": network, "image": here["image"]}))
    (home / ".config" / "hpcgen").mkdir(parents=True)
    (home / ".config" / "hpcgen" / "config.yaml").write_text("collections: [~/our-sites]\n")
    return home


class Reader:
    """Types into one shell what the page says: its folder and variables stay from block to block."""

    def __init__(self, home: Path, env: dict[str, str]) -> None:
        self.home, self.state = home, home.parent / "state"
        self.env = {name: value for name, value in env.items() if name not in LEFT_OUT} | {"HOME": str(home)}
        self.state.write_text(f"cd {home}\n")

    def types(self, text: str) -> str:
        words = f"set -e; . {self.state}\n{text}\n{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} >{self.state}"
        return run(["bash", "-c", words], env=self.env, cwd=self.home, timeout=LIMIT).stdout

    def folder(self) -> Path:
        return Path(self.state.read_text().splitlines()[-1].removeprefix("cd "))


def pattern(shown: str) -> str:
    """What may appear where the page shows this."""
    lines = [
        r"(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + r" *\n" for line in shown.splitlines()
    ]
    return "".join(lines)


@pytest.mark.slow
def test_the_tutorial_is_typed_word_for_word(
    home: Path, testbed_env: dict[str, str], slurm_cluster: Callable[..., Slurm]
) -> None:
    cluster = slurm_cluster("general")
    reader = Reader(home, {**testbed_env, **cluster.env, "BUILDAH_ISOLATION": "chroot"})
    page = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    began, said = time.monotonic(), ""
    for kind, title, text in FENCE.findall(page):
        if title:
            (reader.folder() / title).write_text(text)
        elif kind == "sh":
            started = time.monotonic()
            said = reader.types(text)
            print(f"[{time.monotonic() - started:4.0f} s] $ {text.strip()}\n{said}")
        else:
            assert re.fullmatch(pattern(text), said), f"the page shows\n{text}\nand there was\n{said}"
    seconds = time.monotonic() - began
    REPORTS.append(f"tutorial: typed and run in {seconds:.0f} s")
    assert seconds < LIMIT
