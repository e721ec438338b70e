"""What docs/architecture.md says of the packages: who opens files; and that a name means one thing."""

from __future__ import annotations

import ast
import re

from tests.conftest import ROOT

OPENING = {"open", "open_plain", "read_plain", "read_text", "read_bytes"}
OPENING |= {"write_text", "write_bytes", "TarFile", "ZipFile"}


def opens(path_text: str) -> bool:
    """Whether a module calls something that opens a file."""
    if not any(word in path_text for word in OPENING):
        return False
    calls = [node.func for node in ast.walk(ast.parse(path_text)) if isinstance(node, ast.Call)]
    return any((call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")) in OPENING for call in calls)


def test_files_are_opened_only_where_the_architecture_says_so() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    section = text.partition("### Who opens files\n")[2].partition("\n#")[0]
    allowed = {
        name.rstrip("/") for row in re.findall(r"(?m)^\| (`.*?) \|", section) for name in re.findall("`(.*?)`", row)
    }
    package = ROOT / "hpcgen"
    found = set()
    for path in package.rglob("*.py"):
        name = path.relative_to(package).with_suffix("").as_posix()
        if opens(path.read_text("utf-8")):
            found.add(next((each for each in allowed if name == each or name.startswith(f"{each}/")), name))
    assert found == allowed


def test_public_class_names_are_unique() -> None:
    """Methods aside: a block's own ``Options`` are inside of its class, and programs run without hpcgen."""
    found: dict[str, list[str]] = {}
    for path in (ROOT / "hpcgen").rglob("*.py"):
        if "programs" not in path.parts:
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
