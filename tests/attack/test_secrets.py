"""Every way by which a secret can come in, and every output: the canary is in none of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from hpcgen.builders import BuildOptions, build_image
from hpcgen.core.errors import HpcgenError
from tests.attack.subjects import PROFILE, replaced
from tests.conftest import GOLDEN, Command
from tests.unit.builders.test_build import docker, path  # noqa: F401

CANARY = "c4naryQ7x"
ADDRESS = f"https://jane:{CANARY}@example.org"
CONDA = f"https://conda.example.org/t/tk-{CANARY}/chan"
Done = subprocess.CompletedProcess[str]


def unseen(done: Done, *folders: Path) -> Done:
    """What a command did, in whose output and files there is no canary."""
    said = done.stdout + done.stderr
    assert CANARY not in said, said[max(0, said.index(CANARY) - 300) :][:600]
    for folder in folders:
        for file in folder.rglob("*") if folder.is_dir() else [folder]:
            assert not (file.is_file() and CANARY.encode() in file.read_bytes()), file
            assert CANARY not in file.name
    return done


def refused(hpcgen: Command, folder: Path, words: tuple[str, ...]) -> None:
    """Each command that plans and writes for a site and a stack says no, without the canary, and leaves nothing."""
    out = folder / "out"
    for command in (
        ("plan", *words),
        ("plan", *words, "--json"),
        ("explain", *words),
        ("render", *words),
        ("render", *words, "-o", str(out)),
        ("contract", *words),
        ("lock", *words, "-o", str(out / "hpcgen.lock")),
        ("lock", *words, "--json"),
    ):
        assert unseen(hpcgen(*command)).returncode not in (0, 70), command
    assert not out.exists()


# A project.

EXPORTS = """
MYSQL_PWD GITHUB_PAT SLACK_WEBHOOK COMET_KEY AUTH WANDB_API_KEY HF_TOKEN PGPASSWORD DB_PASS SECRET OPENAI_KEY SSHPASS
AWS_SECRET_ACCESS_KEY AZURE_STORAGE_KEY CREDENTIALS GRB_WLSSECRET NEPTUNE_API_TOKEN jwtSecret APIKEY MY_KEY
"""
ADDRESSES = (f"{ADDRESS}/x", CONDA, f"https://{CANARY}@example.org/x", f"https://example.org/x?token={CANARY}")
OPTIONS = """
--api-key {0} --api_key={0} --password {0} --password={0} --hf-token {0} -password {0} log.api_key={0} +log.token={0}
--user me:{0} --env TOKEN={0} --set a.password={0} --header 'Authorization: Bearer {0}' --index https://me:{0}@example.org/
"""
JOB = """#!/bin/bash
#SBATCH -N 1 --export=ALL,HF_TOKEN={0}
#SBATCH --comment=password={0}
KEY={0}
HF_TOKEN={0} A=1 srun --export=ALL,API_KEY={0} python main.py --token $KEY {1} --seed 1 | x --password {0}
mpirun -x WANDB_API_KEY={0} -n 2 python main.py --json '{{"api_key": "{0}"}}'
for key in {0} {0}2; do python main.py --token $key; done
bash -c "curl -u me:{0} https://jane:{0}@example.org"
singularity exec --env TOKEN={0} x.sif python main.py --secret {0}
cat > settings <<END
password={0}
END
"""
FILES = """
api_key.txt kubeconfig service-account.json my.pfx .env .netrc pip.conf id_rsa server.key private_key.pem
credentials.json conf/secrets.yaml secrets/db.json store.jks hf_token .ssh/config deep/a/b/c/d/e/f/g/h/i/token.txt
"""


def test_a_project_is_begun_planned_and_rendered_without_its_secrets(hpcgen: Command, tmp_path: Path) -> None:
    top = tmp_path / "project"
    exports = [f"export {name}={CANARY}" for name in EXPORTS.split()]
    exports += [f"export ADDRESS{number}={address}" for number, address in enumerate(ADDRESSES)]
    for name in FILES.split():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(CANARY)
    (top / "main.py").write_text("import sys\n")
    (top / "more.sh").write_text(f"curl --password {CANARY}\n")
    (top / "requirements.txt").write_text("numpy==1.26.4\n")
    (top / "job.sh").write_text(
        JOB.format(CANARY, " ".join(OPTIONS.format(CANARY).split("\n"))) + "\n".join(exports) + "\n"
    )
    unseen(hpcgen("init", "--dry-run", cwd=top))
    begun = unseen(hpcgen("init", "--dry-run", "--json", cwd=top))
    assert json.loads(begun.stdout)["stack"]["run"]
    done = unseen(hpcgen("init", cwd=top))
    written = (top / "hpcgen.yaml").read_text()
    assert CANARY not in written and all(
        name in written for name in [*EXPORTS.split(), "--api-key", "--password", "log.token"]
    )
    # What lies deeper than init looks is refused by its name.
    assert done.returncode == 3 and "token.txt" in done.stderr
    (top / "deep/a/b/c/d/e/f/g/h/i/token.txt").unlink()
    assert unseen(hpcgen("init", "--force", cwd=top)).returncode == 0
    for command in (("plan",), ("plan", "--json"), ("render", "-o", str(tmp_path / "kit")), ("check", "hpcgen.yaml")):
        words = command if command[0] == "check" else (*command, "--site", "workstation")
        done = unseen(hpcgen(*words, cwd=top))
        assert done.returncode == 0, done.stderr
    unseen(done, tmp_path / "kit")
    copied = {each.name for each in (tmp_path / "kit").rglob("*")}
    assert "main.py" in copied and not {"job.sh", "more.sh", *(Path(name).name for name in FILES.split())} & copied


PACKAGE_FILES = {
    "requirements.txt": [
        f"--index-url {ADDRESS}/simple\nnumpy\n",
        f"--extra-index-url={ADDRESS}/simple\nnumpy\n",
        f"-f https://{CANARY}@example.org/\n",
        f"a @ git+{ADDRESS}/a.git\n",
        f"git+https://{'x' * 100}:{CANARY}@example.org/a.git#egg=a\n",
        f"git+https://jane:{'x' * 80}{CANARY}@example.org/a.git#egg=a\n",
        f"{ADDRESS}/a-1.0-py3-none-any.whl\n",
        f"numpy --password={CANARY}\n",
        f"-r {ADDRESS}/more.txt\n",
    ],
    "environment.yml": [
        f"channels: ['{CONDA}']\ndependencies: [numpy]\n",
        f"channels: ['{ADDRESS}/chan']\ndependencies: [numpy]\n",
        f"dependencies: ['{CONDA}::numpy']\n",
        f"dependencies: [numpy]\nvariables: {{MYSQL_PWD: {CANARY}}}\n",
        f"dependencies: [numpy]\nvariables: {{ADDRESS: '{ADDRESS}'}}\n",
        f"dependencies: [numpy, pip: ['a @ {ADDRESS}/a.whl']]\n",
        f"dependencies: [numpy, pip: ['--index-url {ADDRESS}/simple']]\n",
    ],
    "pyproject.toml": [
        f"[project]\nname = 'a'\ndependencies = ['a @ {ADDRESS}/a.whl']\n",
        f"[project]\nname = 'a'\ndependencies = ['numpy']\n[[tool.uv.index]]\nurl = '{ADDRESS}/simple'\n",
        f"[tool.poetry]\nname = 'a'\n[tool.poetry.dependencies]\na = {{git = '{ADDRESS}/a.git'}}\n",
        f"[tool.poetry]\nname = 'a'\n[[tool.poetry.source]]\nname = 'x'\nurl = '{ADDRESS}/simple'\n",
    ],
    "uv.lock": [
        "version = 1\nrequires-python = '>=3.11'\n[[package]]\nname = 'a'\nversion = '1.0'\n"
        f"source = {{ registry = '{ADDRESS}/simple' }}\n"
        f"wheels = [{{ url = '{ADDRESS}/a-1.0-py3-none-any.whl', hash = 'sha256:{'0' * 64}' }}]\n",
        f"version = 1\n[[package]]\nname = 'a'\nversion = '1.0'\nsource = {{ git = '{ADDRESS}/a.git' }}\n",
    ],
    "pylock.toml": [
        "lock-version = '1.0'\ncreated-by = 'x'\n[[packages]]\nname = 'a'\nversion = '1.0'\n"
        f"[[packages.wheels]]\nname = 'a-1.0-py3-none-any.whl'\nurl = '{ADDRESS}/a-1.0-py3-none-any.whl'\n"
        f"hashes = {{sha256 = '{'0' * 64}'}}\n",
    ],
    "explicit.txt": [
        f"@EXPLICIT\n{CONDA}/linux-64/zlib-1.3-h0.conda#{'0' * 32}\n",
        f"@EXPLICIT\n{CONDA}/linux-64/zlib-1.3-h0.conda#sha256:{'0' * 64}\n",
    ],
    "conda-lock.yml": [
        "version: 1\nmetadata:\n  content_hash: {linux-64: x}\n  channels: []\n  platforms: [linux-64]\n  sources: []\n"
        "package:\n- {name: zlib, version: '1.3', manager: conda, platform: linux-64, dependencies: {}, "
        f"url: '{CONDA}/linux-64/zlib-1.3-h0.conda', hash: {{md5: x, sha256: {'0' * 64}}}, category: main}}\n",
    ],
    "pixi.lock": [
        "version: 6\nenvironments:\n  default:\n    channels: [{url: '"
        + CONDA
        + "/'}]\n    packages:\n      linux-64:\n"
        f"      - conda: {CONDA}/linux-64/zlib-1.3-h0.conda\npackages:\n"
        f"- conda: {CONDA}/linux-64/zlib-1.3-h0.conda\n  sha256: {'0' * 64}\n  license: Zlib\n",
    ],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in PACKAGE_FILES.items() for text in texts])
def test_addresses_in_files_of_packages(name: str, text: str, hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "main.py").write_text("import numpy\n")
    unseen(hpcgen("init", "-o", "begun.yaml"))
    conda = name in ("environment.yml", "explicit.txt", "conda-lock.yml", "pixi.lock")
    block = "conda_packages" if conda else "python_packages"
    stack = (
        f"name: s\ntitle: t\nblocks: {{{block}: {{options: {{files: [{name}]}}}}}}\nrun: {{command: [x], mpi: false}}\n"
    )
    (tmp_path / "s.yaml").write_text(stack)
    words = ("--site", "workstation", "--stack", "s.yaml")
    for command in (("plan",), ("plan", "--json"), ("render", "-o", "kit")):
        unseen(hpcgen(*command, *words))
    for written in (tmp_path / "kit", tmp_path / "begun.yaml"):
        if written.exists():
            unseen(hpcgen("--version"), written)


# A stack, a profile, the command line.

RUN = "run: {command: [x], mpi: false}"
PYTHON = "blocks: {python: {}}"
STACKS = [
    f"blocks: {{conda_packages: {{options: {{channels: ['{CONDA}'], packages: [numpy]}}}}}}\n{RUN}",
    f"blocks: {{conda_packages: {{options: {{packages: ['{CONDA}::numpy']}}}}}}\n{RUN}",
    f"blocks: {{python_packages: {{options: {{packages: ['a @ {ADDRESS}/a.whl']}}}}}}\n{RUN}",
    f"{PYTHON}\nrun: {{command: [x], mpi: false, environment: {{HF_TOKEN: {CANARY}}}}}",
    f"{PYTHON}\nrun: {{command: [x], mpi: false, environment: {{PLACE: '{ADDRESS}'}}}}",
    f"{PYTHON}\nrun: {{command: [x, --api-key, {CANARY}], mpi: false}}",
    f"{PYTHON}\nrun: {{command: [x, --password={CANARY}], mpi: false}}",
    f"{PYTHON}\nrun: {{command: [bash, -c, 'curl {ADDRESS}'], mpi: false}}",
    f"{PYTHON}\nrun: {{steps: [{{name: a, command: [x, --token, {CANARY}]}}], mpi: false}}",
    f"{PYTHON}\ngit: [{{from: '{ADDRESS}/x.git', commit: {'0' * 40}, to: /app}}]\n{RUN}",
    f"blocks: {{git_code: {{options: {{url: '{ADDRESS}/x.git', commit: {'0' * 40}}}}}}}\n{RUN}",
    f"{PYTHON}\nbuild: {{in: /app, commands: ['git clone {ADDRESS}/x']}}\n{RUN}",
    f"{PYTHON}\ncopy: [{{from: s.yaml, to: /app/x}}]\nbuild: {{in: /app, commands: ['make TOKEN={CANARY}']}}\n{RUN}",
    f"{PYTHON}\nrun: {{command: [bash, -c, 'x --api-key {CANARY}'], mpi: false}}",
]


@pytest.mark.parametrize("text", STACKS)
def test_secrets_in_a_stack_are_refused_everywhere(text: str, hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"name: s\ntitle: t\n{text}\n")
    assert unseen(hpcgen("check", "s.yaml")).returncode == 3
    assert unseen(hpcgen("check", "s.yaml", "--json")).returncode == 3
    refused(hpcgen, tmp_path, ("--site", "workstation", "--stack", "s.yaml"))


MIRRORS = ("network", "mirrors")
PROFILES = [
    (("network", "proxy", "http"), f"http://jane:{CANARY}@proxy.example.org:3128"),
    (("network", "proxy", "https"), f"http://{CANARY}@proxy.example.org:3128"),
    ((*MIRRORS, "apt", "debian", "archive"), f"{ADDRESS}/debian"),
    ((*MIRRORS, "apt", "ubuntu", "security"), f"{ADDRESS}/ubuntu"),
    ((*MIRRORS, "dnf", "rockylinux", "archive"), f"{ADDRESS}/rocky"),
    ((*MIRRORS, "pip"), f"{ADDRESS}/simple"),
    ((*MIRRORS, "pip"), f"https://example.org/simple?token={CANARY}"),
    ((*MIRRORS, "conda"), CONDA),
    ((*MIRRORS, "files"), f"https://{CANARY}@example.org/files"),
    ((*MIRRORS, "registry"), f"jane:{CANARY}@registry.example.org/proxy"),
    ((*MIRRORS, "images", "debian:12", "docker"), f"jane:{CANARY}@registry.example.org/debian:12"),
    ((*MIRRORS, "images", "debian:12", "singularity"), f"docker://jane:{CANARY}@registry.example.org/debian:12"),
    (("environment", "OMP_PLACES"), ADDRESS),
    (("notes", 0), f"ask {ADDRESS}"),
    (("links", 0), f"{ADDRESS}/a"),
    (("sources", "mpi.version", "from"), f"seen at {ADDRESS}"),
]


@pytest.mark.parametrize(("field", "text"), PROFILES)
def test_secrets_in_a_profile_are_refused_everywhere(
    field: tuple[str | int, ...], text: str, hpcgen: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(replaced(PROFILE, field, text)))
    assert unseen(hpcgen("check", "mine.yaml")).returncode == 3
    unseen(hpcgen("show", "site", "./mine.yaml"))
    refused(hpcgen, tmp_path, ("--site", "./mine.yaml", "--stack", "mpi-hello"))


@pytest.mark.parametrize(
    "words",
    [
        ("--mirror", f"pip={ADDRESS}/simple"),
        ("--mirror", f"apt={ADDRESS}/debian"),
        ("--mirror", f"conda={CONDA}"),
        ("--mirror", f"files=http://{CANARY}@example.org/"),
        ("--mirror", f"images=jane:{CANARY}@registry.example.org/proxy"),
        ("--mirror", f"images=https://jane:{CANARY}@registry.example.org/proxy"),
        ("--mirror", f"nonsense={ADDRESS}"),
        ("--add", f"pip:a @ {ADDRESS}/a.whl"),
        ("--set", f"python.password={CANARY}"),
        ("--set", f"python.version={ADDRESS}"),
        ("--set", f"conda_packages.channels={CONDA}", "--add", "conda_packages"),
        (f"--api-key={CANARY}",),
        ("--", "x", "--api-key", CANARY),
        ("--", "x", f"--password={CANARY}"),
        ("--", "x", f"{ADDRESS}/y"),
        ("--step", f"one=x --token {CANARY}"),
    ],
)
def test_secrets_on_the_command_line_are_written_nowhere(
    words: tuple[str, ...], hpcgen: Command, tmp_path: Path
) -> None:
    start = ("--site", "workstation", "--stack", "mpi-hello", *words)
    if words[0] in ("--", "--step"):
        for command in ("job", "submit"):
            done = unseen(hpcgen(command, *start))
            assert done.returncode == 3, done.stderr
        return
    refused(hpcgen, tmp_path, start)


def test_a_base_image_of_a_registry_with_a_password(hpcgen: Command, tmp_path: Path) -> None:
    image = f"debian:12=docker://jane:{CANARY}@127.0.0.1:9/debian:12"
    done = unseen(hpcgen("lock", "--site", "workstation", "--stack", "mpi-hello", "--image", image, "-o", "l.lock"))
    assert done.returncode not in (0, 70) and not (tmp_path / "l.lock").exists()


# A build.

SAYS = f"""
cat <<END
#6 + curl {ADDRESS}/x --password {CANARY} -H "Authorization: Bearer {CANARY}"
#6 environment: $DB_PASSWORD, $SOME_TOKEN, $http_proxy
#6 ERROR: process "/bin/sh -c pip install --index-url {ADDRESS}/simple a" did not complete
END
exit 1"""


def test_what_an_engine_says_of_secrets_is_in_no_log_record_or_error(
    path: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("DB_PASSWORD", "SOME_TOKEN"):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("http_proxy", f"http://jane:{CANARY}@proxy.example.org:3128")
    monkeypatch.setenv("HPCGEN_BUILD_OPTIONS", f"--build-arg=API_KEY={CANARY}")
    docker(path, SAYS)
    with pytest.raises(HpcgenError) as raised:
        build_image(GOLDEN / "workstation" / "mpi-hello", BuildOptions(words=("--build-arg", f"TOKEN={CANARY}")))
    files = [each for each in (tmp_path / "records").rglob("*") if each.is_file()]
    assert CANARY not in str(raised.value) and "pip install" in str(raised.value)
    assert {each.suffix for each in files} >= {".json", ".log"}
    for each in files:
        assert CANARY not in each.read_text(), each


def test_settings_of_the_machine_are_detected_without_secrets(hpcgen: Command, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".config/pip").mkdir(parents=True)
    (home / ".config/pip/pip.conf").write_text(f"[global]\nindex-url = {ADDRESS}/simple\n")
    env = {"HOME": str(home), "http_proxy": f"http://jane:{CANARY}@proxy.example.org", "SOME_TOKEN": CANARY}
    unseen(hpcgen("site", "new", "here", "--detect", env=env))
    done = unseen(hpcgen("site", "capture", str(tmp_path / "tree"), env=env), tmp_path / "tree")
    assert done.returncode == 0, done.stderr
    for index in (f"{ADDRESS}/simple", f"https://example.org/simple?token={CANARY}", CONDA):
        unseen(hpcgen("site", "new", "here", "--detect", env={**env, "PIP_INDEX_URL": index}))
