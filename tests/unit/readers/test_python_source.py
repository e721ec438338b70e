"""Python files and READMEs of projects, read as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.model.own_project import PythonSource
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.python_source import read_python
from hpcgen.readers.shown_commands import read_readme

SOURCE = '''\
"""import nothing"""
import a.b, c as d
from e.f import g
from . import h
from ..i import j
try:
    import k
except ImportError:
    k = None
try:
    import l
except ValueError:
    pass
if TYPE_CHECKING:
    import m
def n():
    import o
class P:
    import q
if __name__ == '__main__':
    import r
    DistributedDataParallel(1)
'''


def read(folder: Path, text: str) -> PythonSource:
    (folder / "a.py").write_text(text, "utf-8")
    return read_python(ProjectFolder(folder), "a.py")


def test_what_a_source_cannot_do_without_is_told_apart(tmp_path: Path) -> None:
    found = read(tmp_path, SOURCE)
    sure = [each.name for each in found.imports if each.sure]
    assert sure == ["a.b", "c", "e.f", "e.f.g", ".", ".h", "..i", "..i.j", "l", "q", "r"]
    assert [(each.name, each.late) for each in found.imports if not each.sure] == [("k", False), ("o", True)]
    assert str(found.program) == "a.py:20:1" and found.parallel is not None


@pytest.mark.parametrize(
    "text",
    ["import a\nprint 'Python 2'\nimport b\n", "import a\n" + "(" * 5000 + "\nimport b\n", "import a\nimport b\0\n"],
)
def test_what_this_python_does_not_read_is_read_as_lines(tmp_path: Path, text: str) -> None:
    assert [each.package for each in read(tmp_path, text).imports] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "runs", "interface"),
    [
        ("def main():\n    pass\nmain()\n", True, None),
        ("for i in range(3):\n    print(i)\n", True, None),
        ("import argparse\nprint(argparse)\n", False, "argparse"),
        ("from absl import app\n", False, "absl"),
        ("tf.compat.v1.app.run()\n", False, "tf.compat.v1.app.run"),
    ],
)
def test_programs_are_known_by_what_they_do(tmp_path: Path, text: str, runs: bool, interface: str | None) -> None:
    found = read(tmp_path, text)
    assert (found.runs is not None) is runs
    assert (found.interface.text if found.interface else None) == interface


def test_names_of_tensorflow_1_are_seen_but_not_in_its_own_clothes(tmp_path: Path) -> None:
    use = "flags = tf.flags\n"
    old = read(tmp_path, f"import tensorflow as tf\n{use}").old
    assert old is not None and old.text == "tf.flags"
    assert read(tmp_path, f"import tensorflow.compat.v1 as tf\n{use}").old is None


def test_a_readme_says_what_is_started_and_installed(tmp_path: Path) -> None:
    lines = [
        "Run `python train.py --x` or",
        "    torchrun --nproc_per_node=8 ./launch.py train.py \\",
        "$ python3 -m pkg.cli",
        "python3 ${HERE}/pkg/run.py \\",
        "See train.py. Python is fine: python",
        "pip install torch==2.5.1+cu121 numpy 'x==1'",
    ]
    (tmp_path / "README.md").write_text("\n".join(lines), "utf-8")
    found = read_readme(ProjectFolder(tmp_path), "README.md")
    assert [each.text for each in found.programs] == ["train.py", "launch.py", "train.py", "pkg.cli", "pkg/run.py"]
    assert [each.text for each in found.installed] == ["torch==2.5.1", "x==1"]
    assert str(found.programs[0].where) == "README.md:1:13"
