"""``hpcgen init`` where a project is its notebooks."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.model.stack import Stack
from hpcgen.project.draft import Draft, stack_text
from hpcgen.project.making import draft_of
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.notebook import read_notebook
from tests.conftest import Command

SERVER = ["jupyter", "lab", "--no-browser", "--ip=127.0.0.1", "--port=8888", "--allow-root"]


def notebook(*cells: str, language: str = "python", **more: Any) -> str:
    code = [
        {"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": [{"text": "import no"}]}
        for cell in cells
    ]
    words = [{"cell_type": "markdown", "source": ["import torch in a text"]}]
    about = {"kernelspec": {"name": "x", "language": language}}
    return json.dumps({"nbformat": 4, "metadata": about, "cells": [*words, *code], **more}, indent=1)


def drafted(top: Path, files: dict[str, str]) -> Draft:
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text, "utf-8")
    draft = draft_of(top, Catalog())
    assert convert(loads(stack_text(draft), "hpcgen.yaml"), Stack).name == draft.data["name"]
    return draft


def asked(draft: Draft) -> list[str]:
    found: list[str] = draft.blocks["python_packages"]["options"]["requirements"]
    return found


def test_what_the_cells_import_and_install_is_in_the_stack(tmp_path: Path) -> None:
    cells = (
        "%matplotlib inline\nimport numpy as np, mine\nfrom sklearn.svm import SVC\nimport os\n",
        "!pip install 'h5py>=3'\n%time x = 1\nif x:\n    %pip install tqdm\nimport odd_one",
        "%%bash\npip install zarr\nimport no",
        "%%javascript\nimport scipy",
    )
    draft = drafted(
        tmp_path, {"a.ipynb": notebook(*cells), "b/c.ipynb": notebook("import torch\n?x\nx??"), "mine.py": "1\n"}
    )
    assert asked(draft) == ["h5py>=3", "tqdm", "zarr", "numpy", "scikit-learn", "torch", "jupyterlab", "ipykernel"]
    assert "pytorch" in draft.blocks and draft.data["run"]["gpus_per_node"] == 1
    assert draft.data["run"]["command"] == SERVER and draft.data["copy"]
    said = " ".join(" ".join(line.strip(" #") for line in stack_text(draft).splitlines()).split())
    assert "ssh -J LOGIN-NODE -L 8888:127.0.0.1:8888 NODE" in said and "jupyter execute --inplace a.ipynb" in said
    assert "does not know from which package: odd_one" in said


def test_lists_of_the_project_win(tmp_path: Path) -> None:
    files = {"requirements.txt": "numpy\nnotebook\n", "a.ipynb": notebook("import torch")}
    assert drafted(tmp_path / "a", files).blocks["python_packages"] == {"options": {"files": ["requirements.txt"]}}
    files = {"requirements.txt": "numpy\n", "a.ipynb": notebook("import torch")}
    options = drafted(tmp_path / "b", files).blocks["python_packages"]["options"]
    assert options == {"files": ["requirements.txt"], "requirements": ["jupyterlab", "ipykernel"]}
    files = {"environment.yml": "dependencies: [python=3.12, ipykernel]\n", "a.ipynb": notebook("1")}
    options = drafted(tmp_path / "c", files).blocks["conda_packages"]["options"]
    assert options == {"files": ["environment.yml"], "packages": ["jupyterlab"]}
    # An older jupyter has a kernel, and not the server that is started.
    old = {"a.ipynb": notebook("import numpy"), "environment.yml": "dependencies: [python=3.7, jupyter, numpy]\n"}
    draft = drafted(tmp_path / "old", old)
    assert draft.blocks["conda_packages"]["options"]["packages"] == ["jupyterlab"]
    assert not any("no program" in each.text for each in draft.remarks)


@pytest.mark.parametrize(
    "files",
    [
        {"main.py": "if __name__ == '__main__':\n    pass\n"},
        {"job.sh": "#SBATCH -N 1\nsrun ./a\n"},
        {"Makefile": "a: a.c\n\tcc -o a a.c\n"},
        {"Dockerfile": 'FROM python:3.11\nCOPY . /a\nCMD ["python", "/a/solve/it.py"]\n', "solve/it.py": "import x\n"},
    ],
)
def test_a_program_is_the_program(tmp_path: Path, files: dict[str, str]) -> None:
    draft = drafted(tmp_path, {**files, "a.ipynb": notebook("import numpy")})
    assert draft.data["run"]["command"][0] != "jupyter"


def test_notebooks_of_a_documentation_are_none_of_the_project(tmp_path: Path) -> None:
    draft = drafted(tmp_path, {"docs/a.ipynb": notebook("import numpy"), "x/y.py": "import z\n"})
    assert "python_packages" not in draft.blocks and draft.data["run"]["command"] == ["python3", "/app/x/y.py"]


def test_notebooks_in_markdown_need_what_opens_them(tmp_path: Path) -> None:
    text = (
        "---\njupytext:\n  formats: md:myst\nkernelspec:\n  display_name: P\n  language: python\n  name: python3\n---\n"
    )
    text += "# Title\n\n```{code-cell}\n:tags: [hide]\nimport pandas as pd\n```\n\n```python\nimport torch\n```\n"
    draft = drafted(tmp_path, {"a.md": text, "README.md": "# No notebook\n"})
    assert asked(draft) == ["pandas", "jupyterlab", "ipykernel", "jupytext"] and draft.data["run"]["command"] == SERVER


HOSTILE = [
    "",
    "{}",
    "[" * 100_000,
    '{"nbformat": 4, "cells": ' + '[{"cell_type": "code", "source": ["x"]}' + ', {"cell_type": "code"}' * 20_000 + "]}",
    '{"nbformat": 4, "cells": [{"cell_type": "code", "source": 7}]}',
    notebook(
        "(" * 50_000, "import \x00", "from . import a\nfrom .. import b", "\u2028import a", "!pip install " + "x" * 9999
    ),
    notebook("x = " + "-" * 50_000 + "1", "%" * 5000, language="\x1b[2J"),
    notebook(*["import numpy"] * 5000),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_notebooks_are_read_at_once(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.ipynb").write_text(text, "utf-8")
    start = time.process_time()
    found = read_notebook(ProjectFolder(tmp_path), "a.ipynb")
    assert time.process_time() - start < 5
    (tmp_path / "p.py").write_text("print(1)\n", "utf-8")
    assert all(line.isprintable() for line in stack_text(draft_of(tmp_path, Catalog())).splitlines())
    assert found is None or all(name.isidentifier() for name in found.imports)


def test_the_stack_of_notebooks_is_planned(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook("import numpy"), "utf-8")
    done = hpcgen("init")
    assert done.returncode == 0 and "the server listens on 127.0.0.1" in done.stderr
    for site in ("workstation", "lumi-g"):
        done = hpcgen("plan", "--site", site, "--account", "a")
        assert done.returncode == 0, done.stderr


def test_a_script_in_r_beside_notebooks_is_not_the_program(tmp_path: Path) -> None:
    files = {"a.ipynb": notebook("import numpy"), "fit.R": "x <- 1\n", "renv.lock": '{"R": {"Version": "4.2.2"}}'}
    draft = drafted(tmp_path, files)
    assert draft.data["run"]["command"][:2] == ["jupyter", "lab"]
    assert any("fit.R" in each.shown.text for each in draft.candidates)
