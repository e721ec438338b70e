"""The commands that README and home begin with, and the picture below them."""

from __future__ import annotations

import re
from pathlib import Path

COLUMNS = 400
"""Wide enough that the terminal wraps nothing: what is longer than the picture is cut there."""


def commands_of(page: Path) -> list[str]:
    """Commands of hpcgen in the first block of a page, without the remarks behind them."""
    block = re.search(r"^```sh\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert block is not None
    return [line.split("#")[0].strip() for line in block[1].splitlines() if line.startswith("hpcgen ")]
