"""How people start their programs, and what ``hpcgen init`` makes of it: the command, its ranks, and what is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.project.draft import Draft
from hpcgen.project.making import draft_of
from tests.conftest import Command

HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"
RANKS = ["python3", "/opt/pytorch/share/ranks.py"]


def project(folder: Path, files: dict[str, str], command: str = "") -> Draft:
    for name, text in {"requirements.txt": "torch>=2.5\n", "train.py": "import torch\n", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return draft_of(folder, Catalog(), command)


def started(draft: Draft) -> Any:
    return draft.data["run"].get("command") or [each["command"] for each in draft.data["run"]["steps"]]


def size(draft: Draft) -> str:
    return " ".join(word for each in draft.options for word in each.words)


def said(draft: Draft) -> str:
    return "\n".join(each.text for each in draft.remarks)


@pytest.mark.parametrize(
    ("line", "image"),
    [
        ("srun --container-image=nvcr.example#a/b:1 --container-mounts=$PWD:/w --mpi=pmix", "nvcr.example#a/b:1"),
        ("srun podman-hpc run --rm --gpu -v /a:/b -w /b --shm-size 1g x/y:1", "x/y:1"),
        ("srun shifter --image=x/y:1 -V /a:/b", "x/y:1"),
        ("srun shifter -i x/y:1 --module gpu,mpich --", "x/y:1"),
        ("srun singularity exec --nv -B /a:/b --pwd /b img.sif", "img.sif"),
        ("srun apptainer --quiet run --bind /a:/b --cleanenv img.sif", "img.sif"),
        ("srun ch-run -w -b /a:/b ./img --", "./img"),
        ("srun enroot start --rw -m /a:/b img", "img"),
        ("docker run -it --rm --gpus all -e A=1 x/y:1", "x/y:1"),
        ("srun bash -c 'cd . && singularity exec img.sif", "img.sif"),
    ],
)
def test_containers_are_taken_off_and_named(tmp_path: Path, line: str, image: str) -> None:
    end = "'" if "'" in line else ""
    draft = project(tmp_path, {"job.sh": f"{HEAD}{line} python train.py --epochs 3{end}\n"})
    assert started(draft) == ["python3", "/app/train.py", "--epochs", "3"]
    assert f"({image})" in said(draft) or f"the image {image} is left out" in said(draft)


@pytest.mark.parametrize(
    ("line", "words", "options"),
    [
        ("srun -n 4 -c 2 -uN1 ./a", ["/app/a"], "--nodes 1 --ranks-per-node 4 --threads 2"),
        ("srun --ntasks 8 --gpus-per-task=1 ./a", ["/app/a"], "--nodes 2 --ranks-per-node 4 --gpus 4"),
        (
            "mpirun -np 8 --map-by ppr:4:node:PE=3 --mca btl ^tcp -x A ./a",
            ["/app/a"],
            "--nodes 2 --ranks-per-node 4 --threads 3",
        ),
        ("mpiexec -n 8 --ppn 4 --depth 2 --cpu-bind depth ./a", ["/app/a"], "--nodes 2 --ranks-per-node 4 --threads 2"),
        ("mpiexec.hydra -genv A 1 -ppn 2 ./a", ["/app/a"], "--nodes 2 --ranks-per-node 2"),
        ("aprun -n 8 -N 4 -d 2 -j 1 -cc depth ./a", ["/app/a"], "--nodes 2 --ranks-per-node 4 --threads 2"),
        (
            "jsrun -n 4 -a 2 -c 14 -g 1 -r 2 -d packed ./a",
            ["/app/a"],
            "--nodes 2 --ranks-per-node 4 --threads 7 --gpus 2",
        ),
        ("jsrun --nrs 2 --tasks_per_rs 6 --rs_per_host 1 ./a", ["/app/a"], "--nodes 2 --ranks-per-node 6"),
        ("flux run -N 2 -n 8 -c 3 ./a", ["/app/a"], "--nodes 2 --ranks-per-node 4 --threads 3"),
        ("ibrun -n 8 -o 0 ./a", ["/app/a"], "--nodes 2 --ranks-per-node 4"),
        ("horovodrun -np 8 -H a:4,b:4 python train.py", ["python3", "/app/train.py"], "--nodes 2 --ranks-per-node 4"),
        ("srun -n $((SLURM_NNODES * 3)) ./a", ["/app/a"], "--nodes 2 --ranks-per-node 3"),
    ],
)
def test_options_of_launchers_are_ranks_and_no_programs(
    tmp_path: Path, line: str, words: list[str], options: str
) -> None:
    draft = project(tmp_path, {"job.sh": f"{HEAD}{line}\n", "a": ""})
    assert started(draft) == words and size(draft) == options


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (
            "torchrun --standalone --nnodes=1 --nproc_per_node=4 train.py -e 3",
            "--nodes 1 --ranks-per-node 4 --threads 10",
        ),
        (
            "srun torchrun --nproc-per-node $SLURM_GPUS_ON_NODE train.py -e 3",
            "--nodes 1 --ranks-per-node 4 --threads 10",
        ),
        (
            "python -m torch.distributed.run --nproc_per_node gpu train.py -e 3",
            "--nodes 1 --ranks-per-node 4 --threads 10",
        ),
        ("srun accelerate launch --num_processes 4 train.py -e 3", "--nodes 1 --ranks-per-node 4 --threads 10"),
        (
            "accelerate launch --multi_gpu --num_cpu_threads_per_process 5 train.py -e 3",
            "--nodes 1 --ranks-per-node 4 --threads 5",
        ),
        ("deepspeed --num_gpus 2 train.py -e 3", "--nodes 1 --ranks-per-node 2 --threads 20"),
        ("deepspeed --include localhost:0,1 train.py -e 3", "--nodes 1 --ranks-per-node 2 --threads 20"),
    ],
)
def test_processes_of_a_framework_share_the_cpus_of_its_task(tmp_path: Path, line: str, options: str) -> None:
    head = "#SBATCH -N 1 --ntasks=1 --cpus-per-task=40 --gres=gpu:v100:4\n"
    draft = project(tmp_path, {"job.sh": f"{head}{line}\n"})
    assert started(draft) == [*RANKS, "python3", "/app/train.py", "-e", "3"]
    assert size(draft) == f"{options} --gpus 4"


def test_what_a_frameworks_launcher_did_beside_ranks_is_said(tmp_path: Path) -> None:
    lines = "accelerate launch --mixed_precision bf16 --config_file c.yaml train.py\n"
    text = said(project(tmp_path, {"job.sh": HEAD + lines}))
    assert "options of accelerate that are left out with it: --mixed_precision bf16 --config_file c.yaml" in text
    text = said(project(tmp_path, {"job.sh": HEAD + "deepspeed train.py\n"}))
    assert "--local_rank" in text and "how many processes deepspeed starts" in text


def test_what_is_not_known_is_said_and_is_no_program(tmp_path: Path) -> None:
    draft = project(tmp_path, {"job.sh": f"{HEAD}srun --brand-new 3 -n $N ./a *.in\n", "a": ""})
    assert started(draft) == ["/app/a", "*.in"]
    assert "srun --brand-new, srun -n $N" in said(draft) and "names of files in for *.in" in said(draft)
    assert started(project(tmp_path, {"job.sh": f"{HEAD}srun -n 4 -5\n"})) == ["python3", "/app/train.py"]


def test_a_text_for_a_shell_has_the_projects_files_by_their_places(tmp_path: Path) -> None:
    text = 'srun bash -c "\n  source env.sh\n  $PROFILER python train.py --epochs 3\n  "\n'
    draft = project(tmp_path, {"job.sh": HEAD + text, "env.sh": "export A=1\n"})
    assert started(draft) == ["bash", "-c", "source /app/env.sh; $PROFILER python3 /app/train.py --epochs 3"]
    inside = "srun bash -c 'source env.sh; torchrun --nproc_per_node=4 train.py $X'\n"
    draft = project(tmp_path, {"job.sh": HEAD.replace("node=4", "node=1") + inside})
    assert started(draft) == [*RANKS, "bash", "-c", "source /app/env.sh; python3 /app/train.py $X"]
    assert size(draft) == "--nodes 2 --ranks-per-node 4"


def test_a_script_of_the_project_that_is_launched_is_read(tmp_path: Path) -> None:
    files = {"job.sh": f"{HEAD}srun bash run_one.sh 7\n", "run_one.sh": "python train.py --seed $1\n"}
    assert started(project(tmp_path, files)) == ["python3", "/app/train.py", "--seed", "7"]


def test_paths_that_go_up_stay_in_the_project(tmp_path: Path) -> None:
    files = {"jobs/job.slurm": "#SBATCH -n 2\nsrun ../bin/solve ../../in.dat\n", "main.c": "int main() {}\n"}
    assert started(project(tmp_path / "a", files)) == ["/app/bin/solve", "../../in.dat"]
    files = {"job.slurm": "#SBATCH -n 2\nsrun ../bin/solve\n", "main.c": "int main() {}\n"}
    assert started(project(tmp_path / "b", files)) == ["../bin/solve"]


def test_folders_that_a_script_goes_to(tmp_path: Path) -> None:
    files = {"job.sh": f"{HEAD}cd sub\nsrun python x.py --c=conf.yaml\n", "sub/x.py": "", "sub/conf.yaml": ""}
    draft = project(tmp_path, files)
    assert started(draft) == ["python3", "/app/sub/x.py", "--c=/app/sub/conf.yaml"]
    assert "the script goes to sub before" in said(draft)
    files = {"job.sh": f"{HEAD}cd $SLURM_SUBMIT_DIR\nsrun python $PWD/train.py\n"}
    assert started(project(tmp_path, files)) == ["python3", "/app/train.py"]


README = """# Project

```bash
pip install -r requirements.txt
git clone https://example.org/x && cd x
python -c "import torch"
python demo.py
```

```console
$ python train.py --config=configs/a.yaml --data /path/to/data \\
    --out <where>
epoch 1
```

```python
python train.py
```
"""


def test_a_line_of_a_readme_is_the_command_where_nothing_else_is(tmp_path: Path) -> None:
    files = {"README.md": README, "configs/a.yaml": "", "demo.py": ""}
    draft = project(tmp_path, files)
    data = ["--data", "/path/to/data", "--out", "<where>"]
    assert started(draft) == ["python3", "/app/train.py", "--config=/app/configs/a.yaml", *data]
    assert "put your value into the command: /path/to/data, <where>" in said(
        draft
    ) and "--command 2` takes python demo.py" in said(draft)
    only = project(tmp_path / "b", {"README.md": "```\npython demo.py\n```\n", "demo.py": "", "main.py": ""})
    # A demo is not what a project is for, and of main.py and train.py none is likelier.
    assert "command" not in only.data["run"]


def test_an_example_that_the_readme_starts_comes_before_what_a_module_shows_of_itself(tmp_path: Path) -> None:
    main = "if __name__ == '__main__':\n    print(1)\n"
    library = {"src/tops/__init__.py": "", "src/tops/modal.py": main, "examples/sim/fault.py": main}
    project(tmp_path, {**library, "README.md": "```\npython examples/sim/fault.py\n```\n"})
    (tmp_path / "train.py").unlink()
    assert started(draft_of(tmp_path, Catalog(), "")) == ["python3", "/app/examples/sim/fault.py"]
    for each in ("README.md", "src/tops/modal.py"):
        (tmp_path / each).unlink()
    unsaid = draft_of(tmp_path, Catalog(), "")
    assert "command" not in unsaid.data["run"]
    assert "no program in this folder but for its examples: examples/sim/fault.py" in said(unsaid)


def test_the_evidence_has_an_order_and_people_choose(tmp_path: Path, hpcgen: Command) -> None:
    files = {
        "README.md": "```\npython train.py --readme\n```\n",
        "scripts/train.sh": "#!/bin/sh\npython train.py --script\n",
        "Makefile": "go:\n\tpython train.py --make\n",
        "job.sh": f"{HEAD}srun python train.py --job\n",
    }
    assert started(project(tmp_path / "p", files))[-1] == "--job"
    for asked, word in {"2": "--script", "--readme": "--readme", "4": "--make", "scripts/train.sh": "--script"}.items():
        assert started(draft_of(tmp_path / "p", Catalog(), asked))[-1] == word
    with pytest.raises(InputError, match=r"job\.sh:4: python train\.py --job"):
        draft_of(tmp_path / "p", Catalog(), "9")
    shown = json.loads(hpcgen("init", "p", "--json", "--dry-run", "--command", "3").stdout)
    assert [each["evidence"] for each in shown["commands"]] == ["job script", "script", "README", "Makefile"]
    assert shown["stack"]["run"]["command"][-1] == "--readme"


def test_scripts_that_prepare_something_are_not_the_program(tmp_path: Path) -> None:
    files = {
        "download_data.sh": "python get_data.py\n",
        "get_data.py": "",
        "tests/run.sh": "python train.py --test\n",
        "setup.sh": "python setup.py install\npython -m pip install x\n",
        "setup.py": "",
    }
    assert started(project(tmp_path, files)) == ["python3", "/app/train.py"]


def test_a_template_that_starts_what_its_user_names_is_not_the_program(tmp_path: Path) -> None:
    files = {"slurm/any.sh": f"{HEAD}srun bash ${{1}}\n", "run.sh": "torchrun --nproc_per_node 8 train.py --big\n"}
    assert started(project(tmp_path, files)) == [*RANKS, "python3", "/app/train.py", "--big"]


def test_a_script_that_makes_the_pages_is_not_the_program(tmp_path: Path) -> None:
    files = {
        "CMakeLists.txt": "project(wave Fortran)\nadd_executable(wave a.f90)\n",
        "a.f90": "end\n",
        "docs/README.md": "Do this:\n\n    ./make_reference.py wave.xml\n",
        "docs/make_reference.py": "#!/usr/bin/env python3\nimport lxml\n",
        "docs/requirements.txt": "lxml\n",
        "requirements.txt": "",
        "train.py": "",
    }
    draft = project(tmp_path, files)
    assert started(draft) == ["/app/build/wave"] and "docs/requirements.txt" not in str(draft.data["blocks"])


def test_a_program_called_after_the_project_is_no_check_by_its_name(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "lm_eval"\nversion = "1"\nscripts = {lm-eval = "lm_eval.__main__:main"}\n',
        "lm_eval/__main__.py": "def main(): pass\n",
        "lm_eval/__init__.py": "",
        "scripts/write_out.py": "",
        "README.md": "```bash\nlm-eval --model hf --tasks x\n```\n",
        "docs/guide.md": "    python -m scripts.write_out --tasks y\n",
        "train.py": "",
    }
    assert started(project(tmp_path, files))[-4:] == ["--model", "hf", "--tasks", "x"]


def test_a_cluster_of_ray_is_made_by_the_block(tmp_path: Path) -> None:
    """Steps that start Ray would block the job forever."""
    script = (
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n"
        'srun --nodes=1 -w "$head" ray start --head --node-ip-address="$ip" --block &\n'
        "for ((i = 1; i <= n; i++)); do\n  srun --nodes=1 -w $i ray start --address $ip:6379 --block &\ndone\n"
        "srun --overlap --nodes=1 -w $head python train.py --epochs 3\nray stop\n"
    )
    draft = project(tmp_path, {"job.sh": script, "requirements.txt": "torch\nray\n"})
    assert started(draft) == ["ray-job", "python3", "/app/train.py", "--epochs", "3"]
    assert {"ray", "mpi"} <= draft.blocks.keys() and size(draft).startswith("--nodes 2")
    assert (draft.data["run"]["ranks_per_node"], draft.data["run"]["rank_gpus"]) == (1, "all")
