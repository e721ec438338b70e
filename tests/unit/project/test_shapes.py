"""The shapes that repositories of programs in Python have: which framework, which program, which packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.project.draft import Draft
from hpcgen.project.making import draft_of

MAIN = 'if __name__ == "__main__":\n    main()\n'
TORCH = f"import argparse\nimport torch\n{MAIN}"
RANKS = ["python3", "/opt/pytorch/share/ranks.py"]
CONDA_RANKS = ["python3", "/opt/conda_packages/share/ranks.py"]


class Shape(NamedTuple):
    """Files, and what is right for them; ``remarks``: words that remarks have, ``open``: words of what is left open."""

    files: dict[str, str]
    blocks: list[str]
    command: list[str] | None
    listed: list[str] = []
    packages: list[str] = []
    remarks: list[str] = []
    environment: dict[str, str] = {}
    conda: dict[str, list[str]] = {}
    without: list[str] = []
    open: str = ""
    system: list[str] = []


SHAPES = {
    "the framework is to be installed first": Shape(
        {"requirements.txt": "numpy\ntqdm\n", "train.py": TORCH},
        ["pytorch", "python_packages"],
        ["python3", "/app/train.py"],
        ["requirements.txt"],
    ),
    "packages that require a framework": Shape(
        {"requirements.txt": "numpy\n", "main.py": f"import timm\nimport pytorch_lightning as pl\n{MAIN}"},
        ["pytorch", "torchvision", "python_packages"],
        ["python3", "/app/main.py"],
        ["requirements.txt"],
        ["pytorch-lightning", "timm"],
    ),
    "no list at all": Shape(
        {
            "train.py": f"import chem.run\nfrom chem import odd\n{MAIN}",
            "chem/__init__.py": "",
            "chem/run.py": "import torch\nimport cv2, yaml\nfrom sklearn import svm\nfrom .data import x\n",
            "chem/data.py": "from PIL import Image\nimport queue\nimport unheard_of\n",
            "chem/odd.py": "try:\n    import apex\nexcept ImportError:\n    apex = None\ndef f():\n    import wandb\n",
            "tests/test_all.py": "import pytest, jax\n",
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/train.py"],
        [],
        ["opencv-python-headless", "pillow", "pyyaml", "scikit-learn"],
        ["unheard_of (chem/data.py:3)"],
    ),
    "a package of its own in a subfolder": Shape(
        {
            "flow/__init__.py": "",
            "flow/main.py": f"from absl import app\nfrom flow import model\n{MAIN}",
            "flow/model.py": "import jax\n",
            "flow/requirements.txt": "absl-py\nflax\njax>=0.4.30\n",
            "setup.py": "setup(install_requires=['jax'])\n",
            "version.py": "__version__ = 1\n",
        },
        ["jax", "python_packages"],
        ["python3", "-m", "flow.main"],
        ["flow/requirements.txt"],
        environment={"PYTHONPATH": "/app"},
    ),
    "sources below src, and tools beside them": Shape(
        {
            "setup.cfg": "[options]\ninstall_requires =\n    jax\n    flax\n",
            "pyproject.toml": "[build-system]\nrequires = ['setuptools']\n",
            "src/tale/__init__.py": "import jax\n",
            "tools/train/train.py": f"import argparse\nimport optax\nfrom tale import x\nfrom scale import y\n{MAIN}",
            "tools/train/scale/__init__.py": "",
        },
        ["jax", "python_packages"],
        ["python3", "/app/tools/train/train.py"],
        ["setup.cfg"],
        environment={"PYTHONPATH": "/app/src"},
    ),
    "one copy of the program for each version": Shape(
        {f"v{number}/train.py": TORCH for number in range(1, 5)},
        ["pytorch"],
        None,
        remarks=["v1/train.py, v2/train.py"],
    ),
    "of many programs the README starts one first": Shape(
        {
            "README.md": "python create_data.py\n\n    python run_b.py --x\n    python run_a.py\n",
            **dict.fromkeys(("run_a.py", "run_b.py", "create_data.py"), TORCH),
        },
        ["pytorch"],
        ["python3", "/app/run_b.py", "--x"],
    ),
    "a line in a sentence, of a program in a folder": Shape(
        {
            "README.md": "Plot it with `python plot.py`; to train, call `python fit.py -c $CODE/conf/a.py`.\n",
            **dict.fromkeys(("nets/fit.py", "nets/plot.py", "conf/a.py"), TORCH),
        },
        ["pytorch"],
        ["python3", "/app/nets/fit.py", "-c", "/app/conf/a.py"],
    ),
    "usage before what somebody runs": Shape(
        {
            "README.md": "```\npython -m flow.run --alg=<its name> [more arguments]\npython train.py --env env_id\n"
            "python train.py --config /your/config.yml\npython train.py --help\n```\n\n"
            "```\npython train.py --env swing --data /path/to/data\n```\n",
            "train.py": TORCH,
            "flow/run.py": TORCH,
        },
        ["pytorch"],
        ["python3", "/app/train.py", "--env", "swing", "--data", "/path/to/data"],
        remarks=["placeholder, put your value into the command: /path/to/data"],
    ),
    "code for GPUs that is compiled when it runs": Shape(
        {
            "train.py": f"import torch\nfrom torch.utils.cpp_extension import load\nload(sources=['a.cu'])\n{MAIN}",
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/train.py"],
        packages=["ninja"],
    ),
    "a script that the README starts": Shape(
        {
            "README.md": "```\ncd v2/demo\nsh ./demo-prepare.sh\nsh ./demo-run.sh\n```\n",
            "train.sh": "python train.py\n",
            "v2/demo/demo-prepare.sh": "python train.py --stage 1\n",
            "v2/demo/demo-run.sh": "LR=3\npython train.py --lr $LR\n",
            "v1/demo/demo-run.sh": "python train.py --lr 1\n",
            "v2/demo/requirements.txt": "torch\nlightning==2.1.0\n",
            **dict.fromkeys(("train.py", "v2/demo/train.py", "v1/demo/train.py"), TORCH),
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/v2/demo/train.py", "--lr", "3"],
        ["v2/demo/requirements.txt"],
    ),
    "one process, although deepspeed needs an MPI": Shape(
        {"requirements.txt": "deepspeed\ntorch\n", "go.sh": "python train.py\n", "train.py": TORCH},
        ["deepspeed", "pytorch", "mpi", "python_packages"],
        ["python3", "/app/train.py"],
        ["requirements.txt"],
    ),
    "a job script that is submitted above the project": Shape(
        {
            "job.slurm": "#SBATCH --ntasks=2\nsrun python {project}/tools/train.py --x ../data\n",
            "contrib/job.slurm": "#SBATCH --ntasks=2\nsrun python train.py\n",
            "tools/train.py": TORCH,
        },
        ["pytorch", "mpi"],
        ["python3", "/app/tools/train.py", "--x", "../data"],
    ),
    "an explicit lock without hashes, and a list of any name": Shape(
        {
            "conda-linux-64.lock": "@EXPLICIT\nhttps://conda.example.org/linux-64/a-1-0.conda#d7c89558ba9fa0495403155b64376d81\n",
            "rocks.yml": "channels: [conda-forge]\ndependencies: [python 3.11.*]\n",
            "settings.yml": "dependencies: [x]\n",
            "main.py": f"import cv2, h5py\n{MAIN}",
        },
        ["conda_packages"],
        ["python3", "/app/main.py"],
        conda={"files": ["rocks.yml"], "packages": ["h5py", "opencv"]},
        remarks=["conda-linux-64.lock is not taken, since a has no sha256"],
    ),
    "packages that a Dockerfile installs by conda": Shape(
        {
            "Dockerfile": "FROM ubuntu\nRUN conda install -y -c pytorch pytorch=1.13 python=3.9\n",
            "main.py": f"import torch, tqdm\n{MAIN}",
        },
        ["conda_packages"],
        ["python3", "/app/main.py"],
        conda={"packages": ["pytorch=1.13", "python=3.9", "tqdm"], "channels": ["pytorch", "conda-forge"]},
    ),
    "a conda environment with ranks": Shape(
        {
            "environment.yml": "channels: [pytorch]\ndependencies: [python, pytorch>=2, {pip: [timm]}]\n",
            "train.py": f"import torch\nimport timm\ndist.init_process_group('nccl')\n{MAIN}",
        },
        ["mpi", "conda_packages"],
        [*CONDA_RANKS, "python3", "/app/train.py"],
    ),
    "a conda environment, started by torchrun": Shape(
        {
            "environment.yml": "dependencies: [python, {pip: [torch]}]\n",
            "README.md": "```\ntorchrun --nproc_per_node 4 train.py --lr 1\n```\n",
            "train.py": TORCH,
        },
        ["mpi", "conda_packages"],
        [*CONDA_RANKS, "python3", "/app/train.py", "--lr", "1"],
    ),
    "ranks that a module of the project sets up": Shape(
        {
            "README.md": "torchrun --nproc_per_node=8 -m scripts.base_train -- --depth=4\n",
            "pyproject.toml": "[project]\nname = 'chat'\ndependencies = ['torch>=2', 'wandb']\n",
            "chat/__init__.py": "",
            "chat/common.py": "import torch\ndist.init_process_group()\n",
            "scripts/base_train.py": "import wandb\nfrom chat.common import x\nfor i in range(3):\n    print(i)\n",
            "scripts/chat_eval.py": TORCH,
        },
        ["pytorch", "mpi", "python_packages"],
        [*RANKS, "python3", "/app/scripts/base_train.py"],
        ["pyproject.toml"],
        environment={"PYTHONPATH": "/app"},
    ),
    "dashes that torchrun takes for itself": Shape(
        {
            "run.sh": "torchrun --standalone --nproc_per_node=8 train.py -- --depth=24 -- --fp8\n",
            "requirements.txt": "torch\n",
            "train.py": TORCH,
        },
        ["pytorch", "mpi", "python_packages"],
        [*RANKS, "python3", "/app/train.py", "--depth=24", "--", "--fp8"],
        ["requirements.txt"],
    ),
    "a fork of what a block brings": Shape(
        {
            "requirements.txt": f"deepspeed @ git+https://example.org/fork.git@{'1' * 40}\nftfy\n",
            "train.py": f"import deepspeed, ftfy\n{MAIN}",
        },
        ["deepspeed", "mpi", "python_packages"],
        ["python3", "/app/train.py"],
        ["requirements.txt"],
        without=["deepspeed"],
        remarks=["deepspeed is a release, from its block, and not what https://example.org/fork.git has"],
    ),
    "files that a Makefile packs": Shape(
        {
            "Makefile": "dist:\n\t@(cd .. && tar -czf all.tar.gz \\\n\t\t./doc/README.txt \\\n\t\t./run.py)\n",
            "doc/README.txt": "",
            "requirements.txt": "numpy\n",
            "run.py": f"import numpy\n{MAIN}",
        },
        ["python_packages"],
        ["python3", "/app/run.py"],
        ["requirements.txt"],
    ),
    "a launcher of its own, and lists in a folder": Shape(
        {
            "README.md": "python ./launch.py train.py -c conf\n",
            "requirements/requirements-dev.txt": "pytest\n",
            "requirements/requirements-apex.txt": "x\n",
            "requirements/requirements.txt": "torch\nnumpy\n",
            "launch.py": TORCH,
            "train.py": f"import numpy, torch\n{MAIN}",
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/train.py"],
        ["requirements/requirements.txt"],
    ),
    "a list, and more in setup.py": Shape(
        {
            "requirements.txt": "stable-baselines3\nplotly\n",
            "setup.py": "setup(install_requires=['gymnasium>=0.29', 'rich'])\n",
            "train.py": f"import gymnasium\nimport stable_baselines3\n{MAIN}",
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/train.py"],
        ["requirements.txt", "setup.py"],
    ),
    "a version of the framework in the README alone": Shape(
        {"README.md": "pip install torch==2.5.1\n", "requirements.txt": "einops\n", "run.py": TORCH},
        ["pytorch==2.5.1", "python_packages"],
        ["python3", "/app/run.py"],
        ["requirements.txt"],
    ),
    "the same of a framework that a package requires": Shape(
        {"README.md": "pip install torch==2.5.1\n", "requirements.txt": "lightning==2.5.0\n", "run.py": TORCH},
        ["pytorch==2.5.1", "python_packages"],
        ["python3", "/app/run.py"],
        ["requirements.txt"],
    ),
    "TensorFlow 1": Shape(
        {"requirements.txt": "tensorflow>=1.11\n", "run_it.py": "import tensorflow as tf\nimport six\ntf.app.run()\n"},
        ["tensorflow<2", "python_packages"],
        ["python3", "/app/run_it.py"],
        ["requirements.txt"],
    ),
    "TensorFlow 1 under a list for TensorFlow 2": Shape(
        {"requirements.txt": "tensorflow>=2.1\n", "run_it.py": "import tensorflow as tf\ntf.app.run()\n"},
        ["tensorflow", "python_packages"],
        ["python3", "/app/run_it.py"],
        ["requirements.txt"],
        remarks=["tf.app is of TensorFlow 1"],
    ),
    "repositories at a moving branch": Shape(
        {
            "requirements.txt": "torch @ https://example.org/torch-2.1.0-cp310-cp310-linux_x86_64.whl\n"
            "git+https://github.com/openai/CLIP.git\nodd @ git+https://example.org/odd.git@main\n",
            "train.py": f"import torch, clip, odd\n{MAIN}",
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/train.py"],
        ["requirements.txt"],
        without=["torch"],
    ),
    "no program": Shape(
        {"requirements.txt": "numpy\n", "setup.py": "setup()\n", "conf.py": "x = 1\n", "utils.py": "import numpy\n"},
        ["python_packages"],
        None,
        ["requirements.txt"],
        remarks=["no program in this folder"],
    ),
    "a command that an installation has": Shape(
        {
            "pyproject.toml": "[project]\nname = 'gpt'\ndependencies = ['torch']\n"
            "[project.scripts]\ngpt = 'gpt.cli:main'\n",
            "gpt/__init__.py": "",
            "gpt/cli.py": f"import torch, fire\ndef main():\n    pass\n{MAIN}",
        },
        ["pytorch", "python_packages"],
        ["python3", "-c", "import sys; sys.path.insert(0, '/app'); from gpt.cli import main; sys.exit(main())"],
        ["pyproject.toml"],
        ["fire"],
    ),
    "such a command in the README": Shape(
        {
            "pyproject.toml": "[project]\nname = 'gpt'\ndependencies = ['torch']\n"
            "[project.scripts]\ngpt = 'gpt.cli:main'\n",
            "README.md": "```bash\ngpt serve small\ngpt finetune small\n```\n",
            "gpt/__init__.py": "",
            "gpt/cli.py": "import torch\ndef main():\n    pass\n",
        },
        ["pytorch", "python_packages"],
        [
            *("python3", "-c", "import sys; sys.path.insert(0, '/app'); from gpt.cli import main; sys.exit(main())"),
            *("finetune", "small"),
        ],
        ["pyproject.toml"],
    ),
    "words that may be left out, and folders that setup.py alone calls packages": Shape(
        {
            "README.md": "```\npython -m net.tools.train --node_rank 1 -d 8\n"
            "python -m net.tools.train -n small -d 8 --fp16 [--cache]\n```\n",
            "setup.py": "setup(package_dir={'net': 'net', 'net.tools': 'tools'}, install_requires=['torch'])\n",
            "net/__init__.py": "",
            "net/tools/__init__.py": "",
            "net/launch.py": "import torch.multiprocessing as mp\nmp.start_processes(f)\n",
            "tools/train.py": f"import argparse\nfrom net.launch import run\n{MAIN}",
            "tools/export.py": TORCH,
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/tools/train.py", "-n", "small", "-d", "8", "--fp16"],
        ["setup.py"],
        environment={"PYTHONPATH": "/app"},
        remarks=["mp.start_processes starts its own processes"],
    ),
    "a list with an address that no program needs": Shape(
        {
            "requirements.txt": "tqdm\nhttps://example.org/odd_studio-0.4-py3-none-any.whl\n",
            "train.py": f"import torch, tqdm\n{MAIN}",
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/train.py"],
        ["requirements.txt"],
        without=["odd-studio"],
    ),
    "no list, and imports in functions": Shape(
        {
            "train.py": "import argparse, torch\ndef data():\n    import pandas\n    import jax\n    import parts\n"
            f"    try:\n        import wandb\n    except ImportError:\n        pass\n{MAIN}",
            "parts.py": "def f():\n    import scipy\n",
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/train.py"],
        packages=["pandas"],
        remarks=["imported only in functions or under conditions, and not in the list of packages: jax (train.py:4)"],
    ),
    "a module by uv": Shape(
        {
            "go.sh": "export WANDB_API_KEY=\nuv run --isolated --extra gpu -m flow.train +fast=true\n",
            "pyproject.toml": "[project]\nname = 'flow'\ndependencies = ['torch']\n",
            "flow/train.py": TORCH,
            "flow/__init__.py": "",
        },
        ["pytorch", "python_packages"],
        [
            *("python3", "-c"),
            "import runpy, sys; sys.path.insert(0, '/app'); runpy.run_module('flow.train', None, '__main__', True)",
            "+fast=true",
        ],
        ["pyproject.toml"],
    ),
    "templates, and scripts that get data or start a cluster": Shape(
        {
            "README.md": "```\n./get-data-news.sh\n```\n",
            "any.slurm": "#SBATCH --ntasks=2\nsrun bash -c 'torchrun --nproc_per_node 4 -m $training'\n",
            "ray.slurm": "#SBATCH --ntasks=2\nsrun bash -c 'pip install ray && ray start --head && sleep 9'\n",
            "get-data-news.sh": "cat x | python clean.py > y\n",
            "rank.sh": "deepspeed --module cli.fit --lr 1\n",
            **dict.fromkeys(("cli/fit.py", "clean.py"), TORCH),
        },
        ["pytorch", "mpi"],
        [
            *(*RANKS, "python3", "-c"),
            "import runpy, sys; sys.path.insert(0, '/app'); runpy.run_module('cli.fit', None, '__main__', True)",
            *("--lr", "1"),
        ],
    ),
    "a Makefile for documents, and what is archived": Shape(
        {
            "Makefile": "docs:\n\tjupytext demo.py -o docs/demo.md\nclean:\n\tfind . -name x -ls -delete\n",
            "pyproject.toml": "[project]\nname = 'flow'\ndependencies = ['torch']\n",
            "~archive/old/train.py": TORCH,
            "~archive/old/requirements.txt": "jax\n",
            "flow/solve.py": TORCH,
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/flow/solve.py"],
        ["pyproject.toml"],
    ),
    "a loop in a module that others import": Shape(
        {
            "requirements.txt": "numpy\n",
            "flow/__init__.py": "from .masses import table\n",
            "flow/more.py": "x = 1\n",
            "flow/masses.py": "table = {}\nfor n in range(9):\n    table[n] = n\n",
        },
        ["python_packages"],
        None,
        ["requirements.txt"],
        remarks=["no program in this folder"],
    ),
    "pages that the README leads to": Shape(
        {
            "README.md": "See [how to train](docs/how-to/train.md#start) and [more](docs/more.md).\n",
            "docs/how-to/train.md": "```bash\nnet_train DATASET_NAME_OR_ID 3d 0\nnet_train small 3d 0\n```\n",
            "docs/unnamed.md": "```bash\nnet_train odd\n```\n",
            "setup.py": "setup(name='net', install_requires=['torch'], entry_points={'console_scripts': "
            "['net_train=net.run:main', 'net_show_train_data=net.run:show']})\n",
            "net/__init__.py": "",
            "net/run.py": "import torch\ndef main():\n    pass\n",
        },
        ["pytorch", "python_packages"],
        [
            *("python3", "-c", "import sys; sys.path.insert(0, '/app'); from net.run import main; sys.exit(main())"),
            *("small", "3d", "0"),
        ],
        ["setup.py"],
    ),
    "one of many commands is called like training": Shape(
        {
            "setup.py": "setup(name='net', install_requires=['torch'], entry_points={'console_scripts': "
            "['net_train=net.run:main', 'net_train_again=net.run:again', 'net_plan=net.run:plan']})\n",
            "net/__init__.py": "",
            "net/run.py": "import torch\ndef main():\n    pass\n",
        },
        ["pytorch", "python_packages"],
        ["python3", "-c", "import sys; sys.path.insert(0, '/app'); from net.run import main; sys.exit(main())"],
        ["setup.py"],
    ),
    "settings for gin": Shape(
        {
            "README.md": "```\npython flow/train.py --gin_file=flow/base.gin --env=Humanoid-v2\n```\n",
            "setup.py": "setup(install_requires=['jax', 'gin-config'])\n",
            "flow/train.py": f"import argparse, gin, jax\n{MAIN}",
            "flow/base.gin": "from __gin__ import dynamic_registration\nimport __main__ as train\n"
            "from t5.data import mixtures\ninclude 'flow/more.gin'\nx.rate = 1\n",
            "flow/more.gin": "import seqio\n",
            "flow/examples/t5/net.py": "x = 1\n",
        },
        ["jax", "python_packages"],
        ["python3", "/app/flow/train.py", "--gin_file=/app/flow/base.gin", "--env=Humanoid-v2"],
        ["setup.py"],
        ["seqio", "t5"],
        remarks=["the environment Humanoid-v2 needs MuJoCo"],
    ),
    "Keras 2": Shape(
        {
            "train.py": f"import argparse\nimport tensorflow as tf\nimport keras.utils.np_utils as u\n{MAIN}",
        },
        ["tensorflow"],
        ["python3", "/app/train.py"],
        remarks=["keras.utils.np_utils is of Keras 2"],
    ),
    "submodules that were not fetched": Shape(
        {".gitmodules": '[submodule "a"]\n\tpath = parts\n', "train.py": TORCH},
        ["pytorch"],
        ["python3", "/app/train.py"],
        open="submodules that are not here: parts",
    ),
    "options behind comments, and a script far below": Shape(
        {
            "README.md": "```bash\npython3 main_pretrain.py \\\n    # its settings\n    --config-path scripts/pre \\\n"
            "    # their name\n    --config-name small.yaml # as it is\n    # more here\n```\n",
            "requirements.txt": "torch\n",
            "main_pretrain.py": TORCH,
            "downstream/boxes/run.sh": "python train_boxes.py --n 1\n",
            "downstream/boxes/train_boxes.py": f"import detector\n{MAIN}",
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/main_pretrain.py", "--config-path", "scripts/pre", "--config-name", "small.yaml"],
        ["requirements.txt"],
    ),
    "options below a command without its sign": Shape(
        {"README.md": "```\npython train.py\n\n## parameters\n--name x  # its name\n--lr 1\n```\n", "train.py": TORCH},
        ["pytorch"],
        ["python3", "/app/train.py", "--name", "x", "--lr", "1"],
    ),
    "names of conda and of modules in a list for pip": Shape(
        {"requirements.txt": "pytorch==0.4.1\nsklearn\ntqdm\n", "train.py": f"import torch, sklearn, tqdm\n{MAIN}"},
        ["pytorch", "python_packages"],
        ["python3", "/app/train.py"],
        ["requirements.txt"],
        ["scikit-learn", "torch"],
        without=["pytorch", "sklearn"],
    ),
    "a list that conda wrote beside one of pip": Shape(
        {
            "requirements-conda.txt": "# conda create --file this\n_libgcc_mutex=0.1=conda_forge\n",
            "requirements-pip.txt": "tqdm\n",
            "train.py": f"import torch, tqdm\n{MAIN}",
        },
        ["pytorch", "python_packages"],
        ["python3", "/app/train.py"],
        ["requirements-pip.txt"],
    ),
    "a module that shows what it does": Shape(
        {
            "requirements.txt": "numpy\n",
            "src/flow/__init__.py": "from .modes import f\n",
            "src/flow/modes.py": f"import numpy\n{MAIN}",
        },
        ["python_packages"],
        None,
        ["requirements.txt"],
        remarks=["no program in this folder"],
    ),
    "values in capitals before what somebody runs": Shape(
        {
            "README.md": "```\npython train.py --gpus $GPUS\npython train.py --gpus GPUS --cfg a\n"
            "python train.py --lr 1\n```\n",
            "train.py": TORCH,
        },
        ["pytorch"],
        ["python3", "/app/train.py", "--lr", "1"],
    ),
    "a value that a shell would read as a redirection": Shape(
        {
            "README.md": "```\npython -m make_data all\n"
            "torchrun --nproc_per_node=4 --master_port=<your_port> train.py \\\n    --model <your_model> --lr 1\n```\n",
            **dict.fromkeys(("train.py", "make_data.py"), TORCH),
        },
        ["pytorch", "mpi"],
        [*RANKS, "python3", "/app/train.py", "--model", "<your_model>", "--lr", "1"],
        remarks=["placeholder, put your value into the command: <your_model>"],
    ),
    "a line that shows help, and a late import of what nobody knows": Shape(
        {
            "README.md": "```\npython flow/main.py --help\n```\n",
            "flow/main.py": f"import argparse\nimport torch, a, b\ndef f():\n    import unheard_of\n{MAIN}",
            "flow/a.py": "def f():\n    import solver\n    import choice\n",
            "flow/b.py": "try:\n    import solver\nexcept ImportError:\n    raise SystemExit('compile it')\n",
        },
        ["pytorch"],
        ["python3", "/app/flow/main.py"],
        remarks=[
            "under conditions, and not in the list of packages: solver (flow/a.py:2), unheard_of (flow/main.py:4)"
        ],
    ),
    "no list, and all imports in the function that is the program": Shape(
        {
            "train.py": "import argparse\ndef main():\n    import numpy, timm, torchvision\n    import torch.nn as nn\n"
            f"{MAIN}"
        },
        ["torchvision", "pytorch", "python_packages"],
        ["python3", "/app/train.py"],
        packages=["timm"],
    ),
    "of many programs that which pages and scripts name": Shape(
        {
            "CMakeLists.txt": "project(suite C)\nadd_executable(info.x i.c)\nadd_executable(pw.x p.c)\n"
            "add_executable(ph.x h.c)\n",
            "README.md": "It has pw.x, and ph.x.\n",
            "doc/usage.md": "Start pw.x first.\n",
        },
        [],
        ["/app/build/pw.x"],
    ),
    "places in a README that a shell would read as redirections": Shape(
        {
            "README.md": "```\npython train.py --out <PATH/OUT> data=Set:root=<PATH/IN>:extra=<PATH/MORE>\n```\n",
            "train.py": TORCH,
        },
        ["pytorch"],
        ["python3", "/app/train.py", "--out", "<PATH/OUT>", "data=Set:root=<PATH/IN>:extra=<PATH/MORE>"],
    ),
    "a job script with the places of its author's machine, and one that converts data": Shape(
        {
            "run.sh": "#!/bin/bash\n#SBATCH -n 1\nsrun sudo nvidia-smi -lgc 1\n"
            "srun bash -c 'nvidia-smi; nvcc --version'\nsrun python /users/me/own/code/train.py --lr 1\n",
            "convert.sh": "#!/bin/bash\n#SBATCH -N 4\nsrun python code/to_lmdb.py\n",
            "code/train.py": TORCH,
            "code/to_lmdb.py": "import lmdb, jax\n",
        },
        ["pytorch"],
        ["python3", "/app/code/train.py", "--lr", "1"],
    ),
    "what the program imports that a job gives to a shell, and no other of the project": Shape(
        {
            "1-start/run.sh": "#!/bin/bash\n#SBATCH -n 1\nsrun bash -c 'cp a b; python main.py'\n",
            "1-start/main.py": TORCH,
            "2-more/main.py": f"import jax, vllm\n{MAIN}",
        },
        ["pytorch"],
        ["bash", "-c", "cp a b; python3 /app/1-start/main.py"],
    ),
    "a compiled program, and jobs of tools beside it": Shape(
        {
            "configure.ac": "AC_INIT([waves], [1])\nAC_PROG_CC\nACX_MPI([], [])\nAC_OUTPUT\n",
            "mesh/run.sh": "#!/bin/bash\n#PBS -l select=1\npython3 ./MESHER.py --merge\n",
            "utils/run.sh": "#!/bin/bash\n#PBS -l select=1\npython3 export.py\n",
            "utils/export.py": MAIN,
        },
        ["mpi", "os_packages"],
        None,
        remarks=["`hpcgen init --command 1` takes python3"],
    ),
    "a framework in the extra with which the README installs the project": Shape(
        {
            "README.md": "```\npip install 'own[fold,test]'\n```\n",
            "pyproject.toml": "[project]\nname = 'own'\nversion = '1'\ndependencies = ['numpy']\n"
            "[project.optional-dependencies]\nfold = ['jax']\ntest = ['torch']\n",
            "main.py": f"import numpy\n{MAIN}",
        },
        ["jax", "python_packages"],
        ["python3", "/app/main.py"],
        ["pyproject.toml"],
    ),
    "a program that the README installs by apt": Shape(
        {
            "README.md": "```\nsudo apt update && sudo apt install -y ffmpeg libgl1-mesa-glx docker-ce own-name\n```\n",
            "requirements.txt": "torch\n",
            "main.py": TORCH,
        },
        ["pytorch", "python_packages", "os_packages"],
        ["python3", "/app/main.py"],
        ["requirements.txt"],
        system=["ffmpeg", "libgl1"],
    ),
    "an environment of conda that the README makes, in a folder": Shape(
        {
            "README.md": "```\nconda env create -f env/own.yml\nconda activate own\npython run.py\n```\n",
            "env/own.yml": "channels: [conda-forge]\ndependencies: [python, pytorch, dgl-cuda11.1]\n",
            "setup.py": "from setuptools import setup\nsetup(name='own', install_requires=['torch'])\n",
            "run.py": f"import dgl\n{TORCH}",
        },
        ["conda_packages"],
        ["python3", "/app/run.py"],
        conda={"files": ["env/own.yml"]},
    ),
    "pages of the documentation, and lines for TPUs": Shape(
        {
            "docs/usage.md": "```\npython a/train.py --device tpu\npython a/train.py --lr 1\n```\n",
            "docs/more/deep.md": "```\npython a/train.py --deep\n```\n",
            **dict.fromkeys(("a/train.py", "b/train.py"), TORCH),
        },
        ["pytorch"],
        ["python3", "/app/a/train.py", "--lr", "1"],
    ),
    "an environment that a Dockerfile elsewhere makes": Shape(
        {
            "docker/Dockerfile": "FROM ubuntu\nCOPY environment.yml /x/\nRUN conda env create -f /x/environment.yml\n",
            "docker/environment.yml": "channels: [conda-forge]\ndependencies: [python, pytorch]\n",
            "main.py": f"import torch, tqdm\n{MAIN}",
        },
        ["conda_packages"],
        ["python3", "/app/main.py"],
        conda={"files": ["docker/environment.yml"], "packages": ["tqdm"]},
    ),
}


def drafted(folder: Path, files: dict[str, str]) -> Draft:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text.replace("{project}", folder.name), "utf-8")
    return draft_of(folder, Catalog())


def test_steps_are_called_like_the_programs_that_python_runs(tmp_path: Path) -> None:
    toml = "[project]\nname = 'own'\ndependencies = ['torch']\n[project.scripts]\nown = 'own.cli.main:main'\n"
    job = "#!/bin/bash\n#SBATCH -n 1\nsrun own preprocess a.yaml\n"
    job += "srun own train a.yaml --n $SLURM_NNODES\nsrun python -m own.eval\n"
    files = {
        "pyproject.toml": toml,
        "job.sh": job,
        "own/cli/main.py": TORCH,
        "own/eval.py": TORCH,
        "own/__init__.py": "",
    }
    draft = drafted(tmp_path, files | {"own/cli/__init__.py": ""})
    assert [each["name"] for each in draft.data["run"]["steps"]] == ["own-preprocess", "own-train", "eval"]


def test_lines_that_start_one_program_are_steps(tmp_path: Path) -> None:
    script = "python prepare.py\nfor n in 1 2; do python train.py --n $n; done\n"
    draft = drafted(tmp_path, {"go.sh": script, **dict.fromkeys(("prepare.py", "train.py"), TORCH)})
    assert [each["command"][1:] for each in draft.data["run"]["steps"]] == [
        ["/app/train.py", "--n", "1"],
        ["/app/train.py", "--n", "2"],
    ]
    assert any("not taken: python prepare.py" in each.text for each in draft.remarks)


def test_deepspeed_alone_starts_one_process(tmp_path: Path) -> None:
    draft = drafted(tmp_path, SHAPES["one process, although deepspeed needs an MPI"].files)
    assert draft.data["run"]["mpi"] is False and draft.data["run"]["gpus_per_node"] == 1


def test_extras_of_the_container_are_those_of_the_project(tmp_path: Path) -> None:
    files = {
        "setup.py": "setup(install_requires=['numpy'], extras_require={'play': ['gym'], 'dev': ['black']})\n",
        "Dockerfile": "FROM python:3.11\nCOPY . /x\nRUN pip install -e .[play,odd]\n",
        "main.py": f"import numpy\n{MAIN}",
    }
    options = drafted(tmp_path, files).blocks["python_packages"]["options"]
    assert options == {"files": ["setup.py"], "groups": ["play"]}


def test_extras_of_the_readme_are_those_of_the_project_but_for_its_tests(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "[project]\nname = 'gpt'\ndependencies = ['numpy']\n"
        "[project.optional-dependencies]\nextra = ['gym']\ntest = ['pytest']\ntpu = ['libtpu']\n",
        "README.md": "pip install 'gpt[extra,test]'\n\npip install -e .[tpu]\n",
        "main.py": f"import numpy\n{MAIN}",
    }
    options = drafted(tmp_path, files).blocks["python_packages"]["options"]
    assert options == {"files": ["pyproject.toml"], "groups": ["extra"]}


def names(blocks: dict[str, Any]) -> list[str]:
    return [f"{name}{block.get('version', '')}" for name, block in blocks.items()]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_repository_of_this_shape_is_understood(tmp_path: Path, shape: Shape) -> None:
    draft = drafted(tmp_path, shape.files)
    assert names(draft.blocks) == shape.blocks
    run = draft.data["run"]
    assert run.get("command") == shape.command and run.get("environment", {}) == shape.environment
    options = draft.blocks.get("python_packages", {}).get("options", {})
    assert (options.get("files", []), options.get("requirements", [])) == (shape.listed, shape.packages)
    assert options.get("without", []) == shape.without and shape.open in str(draft.data.get("open", ""))
    conda = draft.blocks.get("conda_packages", {}).get("options", {})
    assert not shape.conda or conda == shape.conda
    assert (
        draft.blocks.get("os_packages", {}).get("options", {}).get("packages", []) == shape.system or not shape.system
    )
    remarks = [each.text for each in draft.remarks]
    assert all(any(words in each for each in remarks) for words in shape.remarks), remarks
    if not shape.remarks:
        assert not [each for each in remarks if "imported" in each], remarks


def test_a_program_behind_a_link_to_a_folder_is_started_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/tools").symlink_to("../tools")
    files = {"README.md": "`python -m net.tools.train -d 8`\n", "tools/train.py": TORCH, "net/__init__.py": ""}
    draft = drafted(tmp_path, files)
    assert draft.data["run"]["command"] == ["python3", "/app/tools/train.py", "-d", "8"]


def test_many_notebooks_are_the_project_and_not_a_program_far_below(tmp_path: Path) -> None:
    cell = '{"cell_type": "code", "source": ["import tensorflow\\n", "!pip install tf-nightly sklearn"]}'
    book = f'{{"nbformat": 4, "metadata": {{"kernelspec": {{"language": "python"}}}}, "cells": [{cell}]}}'
    files = {f"lesson {n}.ipynb": book for n in range(7)}
    files |= {"week/4/board/main.py": f"import odd_runtime\n{MAIN}", "week/4/board/requirements.txt": "numpy\n"}
    draft = drafted(tmp_path, files)
    assert draft.data["run"]["command"][0] == "jupyter" and "tensorflow" in draft.blocks
    assert draft.blocks["python_packages"]["options"] == {"requirements": ["tensorflow", "jupyterlab", "ipykernel"]}


def test_a_line_that_is_only_written_wrongly_is_a_mistake(tmp_path: Path) -> None:
    draft = drafted(tmp_path, {"requirements.txt": "tqdm\nodd >= 1 2\n", "train.py": TORCH})
    assert draft.problems and "without" not in draft.blocks["python_packages"]["options"]


def test_a_line_that_cannot_be_taken_and_is_needed_is_a_mistake(tmp_path: Path) -> None:
    files = {
        "requirements.txt": "tqdm\nhttps://example.org/odd-1-py3-none-any.whl\n",
        "train.py": f"import odd\n{MAIN}",
    }
    assert drafted(tmp_path, files).problems


def test_a_token_to_be_filled_in_hides_nobodys_own(tmp_path: Path) -> None:
    files = {"go.sh": "export HF_TOKEN=\nexport SIZE=3\npython train.py\n", "train.py": TORCH}
    assert drafted(tmp_path, files).data["run"]["environment"] == {"SIZE": "3"}


def test_an_environment_below_a_folder_stays_behind(tmp_path: Path) -> None:
    draft = drafted(tmp_path, {"tools/venv/pyvenv.cfg": "", "train.py": TORCH})
    (tmp_path / "tools/venv/lib64").symlink_to("gone")
    assert "tools/venv/*" in drafted(tmp_path, {}).data["copy"][0]["ignore"] and not draft.problems


@pytest.mark.parametrize(
    ("words", "number"),
    [("--trainer.devices=8", 8), ("--num-gpus 4", 4), ("trainer.devices=1", 1), ("--gpus 0", 1), ("--devices cuda", 1)],
)
def test_a_command_that_asks_for_gpus_has_them(tmp_path: Path, words: str, number: int) -> None:
    draft = drafted(tmp_path, {"README.md": f"`python train.py {words}`\n", "train.py": TORCH})
    assert draft.data["run"]["gpus_per_node"] == number
