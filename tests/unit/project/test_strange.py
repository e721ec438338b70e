"""Projects of strangers: whatever their files say, the stack reads back as what was decided, and nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.copied import files_of
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import InputError
from hpcgen.core.model.stack import Copied, Stack
from hpcgen.project.draft import stack_text
from hpcgen.project.making import draft_of

TEXTS = [
    "a: b # c",
    "'\"",
    "{x: [y",
    "- - *a &b !c",
    "$(touch hit)`touch hit`",
    "\x1b[2Jred\x07",
    "\u2028\u202eabc",
    "null",
    "1e3",
    "%YAML 1.2",
    "é" * 300,
    "\ud7ff💥",
]


def files(text: str) -> dict[str, str]:
    """A project in which every place that a stack takes something from has the text."""
    return {
        "pyproject.toml": f"[project]\nname = '''{text}'''\ndescription = '''{text}'''\n[project.scripts]\nx = 'a:b'\n",
        "requirements.txt": f"numpy\n{text}\n",
        "apt.txt": f"git {text}\n",
        "CMakeLists.txt": f"find_package(MPI {text})\nfind_package({text})\nadd_executable(x x.c)\nproject({text} C)\n",
        "job.sh": f"#SBATCH -N 1 -A {text} --x={text}\nmodule load {text}\nexport A={text}\nsrun ./x {text} {text!r}",
        "main.py": f"import {text}\nif __name__ == '__main__':\n    {text}\n",
        "Dockerfile": text,
    }


def as_stack(data: Any) -> Stack:
    return msgspec.convert(data, Stack, strict=False)


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_is_the_stack_that_was_decided(tmp_path: Path, text: str) -> None:
    for name, content in files(text).items():
        (tmp_path / name).write_text(content, "utf-8")
    (tmp_path / "odd\x1b[2J.def").touch()
    draft = draft_of(tmp_path, Catalog())
    written = stack_text(draft)
    assert all(line.isprintable() for line in written.splitlines())
    assert convert(loads(written, "hpcgen.yaml"), Stack) == as_stack(draft.data)
    assert all(each.text.isprintable() for each in draft.remarks)
    assert not (tmp_path / "hit").exists()


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/requirements.txt").write_text("torch\n", "utf-8")
    top = tmp_path / "p"
    top.mkdir()
    (top / "requirements.txt").symlink_to(tmp_path / "outside/requirements.txt")
    (top / "data").symlink_to(tmp_path / "outside")
    (top / "a.py").write_text("print(1)\n", "utf-8")
    draft = draft_of(top, Catalog())
    assert "pytorch" not in draft.blocks and draft.data["copy"][0]["ignore"][-2:] == ["data", "requirements.txt"]


def test_a_program_of_a_block_is_brought_by_it(tmp_path: Path) -> None:
    (tmp_path / "in.melt").write_text("units lj\n", "utf-8")
    (tmp_path / "run.pbs").write_text("#PBS -l select=2:mpiprocs=4\nmpirun -np 8 lmp -in in.melt\n", "utf-8")
    draft = draft_of(tmp_path, Catalog())
    assert list(draft.blocks) == ["lammps", "mpi"]
    assert draft.data["run"]["command"] == ["lmp", "-in", "/app/in.melt"] and "copy" in draft.data


def test_secrets_environments_and_large_data_stay_behind(tmp_path: Path) -> None:
    for name in ("main.py", "server.pem", ".env", "venv/pyvenv.cfg", "out/CMakeCache.txt", "slurm-12.out", "a.o"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", "utf-8")
    (tmp_path / "images").mkdir()
    with (tmp_path / "images/all.bin").open("wb") as file:
        file.truncate(2 * 1024**3)
    ignore = draft_of(tmp_path, Catalog()).data["copy"][0]["ignore"]
    assert {".*", "server.pem", "venv/*", "out/*", "images/*", "slurm-*.out", "*.o"} <= {*ignore}


def test_crates_of_a_vendor_folder_come_with_their_checksums(tmp_path: Path) -> None:
    manifest = '[package]\nname = "v"\n[dependencies]\nfoo = "1"\n'
    crate = "vendor/foo/.cargo-checksum.json"
    for name in ("Cargo.toml", "src/main.rs", crate, ".env", ".git/x", "a/.cache/x", ".coverage", ".cargo/credentials"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(manifest if name == "Cargo.toml" else "", "utf-8")
    draft = draft_of(tmp_path, Catalog())
    copied = files_of(tmp_path, Copied(".", "/app", draft.data["copy"][0]["ignore"]))
    assert {str(path) for path, _ in copied} == {"Cargo.toml", "src/main.rs", crate}


SECRET_JOB = """#!/bin/bash
#SBATCH -N 1 --export=ALL,HF_TOKEN=k3yA --comment=api_key=k3yB
export MYSQL_PWD=k3yC
export COPY=$MYSQL_PWD
export HIDDEN=https://me:k3yD@example.org/
export TOKENIZERS_PARALLELISM=false
KEY=k3yE/x9Z
NAME=k3yF
srun python main.py --api-key k3yG --password=k3yH \\
    --token $KEY --wandb-key $NAME log.token=k3yI -s 1 | a --password k3yK
for k in k3yL k3yM; do python main.py --token $k; done
HF_TOKEN=k3yN python more.py -H 'Authorization: Bearer k3yO-and-more' --hf_token $HF_TOKEN
"""


def test_secrets_of_a_job_are_named_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(SECRET_JOB, "utf-8")
    for name in ("main.py", "more.py", "conf/api_key.txt", "public_key.pem", "tokenizer.json", "odd[1].pfx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("print(1)\n", "utf-8")
    draft = draft_of(tmp_path, Catalog())
    text = stack_text(draft)
    assert "k3y" not in text
    for named in ("MYSQL_PWD", "HIDDEN", "KEY", "--api-key", "--password", "--wandb-key", "log.token", "$KEY"):
        assert named in text
    assert draft.data["run"]["environment"] == {"TOKENIZERS_PARALLELISM": "false"}
    assert draft.data["run"]["command"][:2] == ["bash", "-c"]
    assert draft.data["run"]["command"][2] == "exec python3 /app/main.py --token $KEY -s 1"
    ignore = draft.data["copy"][0]["ignore"]
    assert "conf/api_key.txt" in ignore and not {"public_key.pem", "tokenizer.json"} & {*ignore}
    assert not draft.problems


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be read"):
        draft_of(tmp_path / "file", Catalog())


def test_a_folder_of_missing_submodules_says_how_they_come(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n\tmake -C deps/wave\n", "utf-8")
    (tmp_path / ".gitmodules").write_text('[submodule "a"]\n  path = other/a\n', "utf-8")
    with pytest.raises(InputError, match="other/a: `git submodule update --init --recursive` brings them"):
        draft_of(tmp_path, Catalog())


def test_code_for_gpus_is_left_to_the_person_and_told(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("a: a.cu\n\tnvcc -o a a.cu\n", "utf-8")
    draft = draft_of(tmp_path, Catalog())
    assert any(each.text.startswith("nvcc compiles for GPUs") for each in draft.remarks)
    assert draft.data["run"] == {"command": ["/app/a"], "mpi": False, "gpus_per_node": 0}


def test_data_is_named_and_left_out(tmp_path: Path) -> None:
    large = {
        "data/a.bin": 60,
        "nets/v1.pt": 60,
        "model/datasets/raw/x.npy": 30,
        "model/datasets/raw/y.npy": 30,
        "small/data/z.csv": 1,
        "lib/code.so.1": 60,
        **{f"tiles/{number}.tif": 60 for number in range(6)},
    }
    for name, megabytes in large.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        with (tmp_path / name).open("wb") as file:
            file.truncate(megabytes * 1024**2)
    texts = {
        "main.py": "print(1)\n",
        "model/datasets/load.py": "import numpy\n",
        "images.dvc": "outs: []\n",
        "images/1.png": "x",
        ".gitattributes": "*.ckpt filter=lfs diff=lfs merge=lfs -text\n",
        "nets/best.ckpt": f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 123456789\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "nets/latest").symlink_to(tmp_path / "nets/gone")
    (tmp_path / "nets/all").symlink_to("/usr")
    draft = draft_of(tmp_path, Catalog())
    assert not draft.problems
    left = {*draft.data["copy"][0]["ignore"]}
    assert {"data/*", "nets/v1.pt", "model/datasets/raw/*", "lib/code.so.1", "tiles/*.tif"} <= left
    assert {"images/*", "nets/best.ckpt", "nets/latest", "nets/all"} <= left
    assert not {"small/data/*", "model/datasets/*", "nets/*"} & left
    told = [each.text for each in draft.remarks]
    assert any("data (6" in each and "tiles/*.tif" in each and "best.ckpt" in each for each in told), told


@pytest.mark.parametrize(
    "line", ["python -m", "srun python3 -u -m", "python", "uv run python -m", "torchrun -m", "time"]
)
def test_a_command_that_ends_too_early_starts_nothing(tmp_path: Path, line: str) -> None:
    (tmp_path / "run.sh").write_text(f"#!/bin/bash\n{line}\npython3 main.py\n", "utf-8")
    (tmp_path / "main.py").write_text("import numpy\nprint(1)\n", "utf-8")
    assert draft_of(tmp_path, Catalog()).data["run"]["command"] == ["python3", "/app/main.py"]
