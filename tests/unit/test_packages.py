"""What the pages on the code say of the packages: who opens files, which modules there are; a name means one thing."""

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


def test_files_are_opened_only_where_the_page_says_so() -> None:
    section = (ROOT / "docs" / "internals" / "opened-files.md").read_text("utf-8")
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


def test_the_modules_that_the_pages_name_are_there() -> None:
    package, gone = ROOT / "hpcgen", []
    tops = {path.stem for path in package.iterdir()}
    for page in [ROOT / "docs" / "architecture.md", *(ROOT / "docs" / "internals").iterdir()]:
        for name in re.findall(r"`([a-z_]+/[\w/.]+)`", page.read_text("utf-8")):
            places = (package / name, package / f"{name}.py", (package / name).with_suffix(".py"), ROOT / name)
            if name.partition("/")[0] in tops and not any(path.exists() for path in places):
                gone.append(f"{page.name}: {name}")
    assert not gone


def test_public_class_names_are_unique() -> None:
    """Methods aside: a block's own ``Options`` are inside of its class, and programs run without hpcgen."""
    found: dict[str, list[str]] = {}
    for path in (ROOT / "hpcgen").rglob("*.py"):
        if "programs" not in path.parts:
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
