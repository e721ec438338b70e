"""Python packages of a project's files in a plan: what is installed as they say, and what blocks bring instead."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.cli.install_command import may_have
from hpcgen.core.errors import ConflictError, HpcgenError, InputError, UnknownNameError
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.launch.script import job_script
from hpcgen.planning.contract.site import policy
from hpcgen.planning.contract.verdict import case_of, hold_chosen
from hpcgen.recipe.assemble import assemble, notices

STACK = """name: mine
title: my project
blocks: {{python_packages: {{options: {{files: [{files}], groups: [{groups}]}}}}{more}}}
run: {{mpi: false, command: [python3, app.py]}}
"""


def planned(
    folder: Path,
    texts: dict[str, str],
    site: str = "workstation",
    settings: tuple[str, ...] = (),
    groups: str = "",
    more: str = "",
) -> Plan:
    """The plan of a project with these files, each of which the stack names."""
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    stack = folder / "hpcgen.yaml"
    stack.write_text(STACK.format(files=", ".join(texts), groups=groups, more=more), "utf-8")
    return hpcgen.plan(site, str(stack), settings=settings, catalog=Catalog(), account="a")


def recipe_files(plan: Plan) -> dict[str, str]:
    return {name: each.text for name, each in make_kit(plan, Catalog()).files.items() if "requirements" in name}


def content(plan: Plan) -> str:
    return assemble(plan, Catalog()).labels["io.hpcgen.content"]


def locked(name: str) -> str:
    return (Path(__file__).parent.parent / "readers" / "files" / name).read_text("utf-8")


def test_ranges_are_installed_as_they_are_and_said(tmp_path: Path) -> None:
    (tmp_path / "held.txt").write_text("numpy<3\nh5py<4\n", "utf-8")
    plan = planned(tmp_path, {"requirements.txt": "h5py>=3.10\n-c held.txt\n"})
    assert plan.project is not None and not plan.project.hashed
    assert [(each.asked, each.origin) for each in plan.project.packages] == [("h5py>=3.10,<4", "requirements.txt:1")]
    assert sorted(plan.project.files) == ["held.txt", "requirements.txt"]
    kit = make_kit(plan, Catalog())
    files = recipe_files(plan)
    assert "h5py>=3.10,<4" in files["files/requirements/python_packages.txt"]
    assert files["files/requirements/constraints.txt"].split() == ["numpy<3"]
    assert any("newest on the day of the build" in notice for notice in kit.notices)


@pytest.mark.parametrize("file", ["uv.lock", "pylock.toml", "poetry.lock", "pdm.lock"])
def test_a_lock_is_installed_as_it_is_with_the_hash_of_the_wheel_that_suits(tmp_path: Path, file: str) -> None:
    plan = planned(tmp_path, {file: locked(file)}, groups="plot")
    assert plan.project is not None and plan.project.hashed
    assert [f"{each.name}=={each.version}" for each in plan.project.packages][-1] == "tqdm==4.70.1"
    text = recipe_files(plan)["files/requirements/project.txt"]
    assert all(line.count("--hash=sha256:") == 1 for line in text.splitlines())
    assert "--no-deps --require-hashes -r /opt/hpcgen/build/project.txt" in make_kit(plan, Catalog()).recipe


def test_the_plan_holds_all_so_that_a_changed_file_changes_the_image(tmp_path: Path) -> None:
    first = planned(tmp_path, {"requirements.txt": "h5py==3.11.0\n"})
    label = content(first)
    again = planned(tmp_path, {"requirements.txt": "h5py==3.12.1\n"})
    (tmp_path / "requirements.txt").unlink()
    assert content(again) != label and content(first) == label


def test_packages_of_frameworks_come_from_their_blocks_and_take_their_companions_along(tmp_path: Path) -> None:
    text = "torch==2.7.1\nnvidia-cublas-cu12==12.6.4.1\ntriton==3.3.1\nnvidia-ml-py==12.535.133\nmpi4py>=4\n"
    plan = planned(tmp_path, {"requirements.txt": text})
    assert plan.project is not None
    assert {(each.name, each.block) for each in plan.project.handed_over} == {
        ("torch", "pytorch"),
        ("triton", "pytorch"),
        ("nvidia-cublas-cu12", "pytorch"),
        ("mpi4py", "mpi4py"),
    }
    assert [each.name for each in plan.project.packages] == ["nvidia-ml-py"]
    names = [each.name for each in plan.blocks]
    assert names.index("pytorch") < names.index("python_packages")
    torch = plan.block("pytorch")
    assert torch is not None and torch.version == "2.7.1"
    assert "torch==2.7.1 of requirements.txt:1 asks for pytorch ==2.7.1" in "; ".join(map(str, torch.reasons))


UV = """version = 1
requires-python = ">=3.10"

[[package]]
name = "demo"
version = "1"
source = {{ virtual = "." }}
dependencies = [{{ name = "torch" }}]

[package.metadata]
requires-dist = [{{ name = "torch", specifier = ">=2.6" }}]

[[package]]
name = "setuptools"
version = "84.2.1"
source = {{ registry = "https://index.example.org/simple" }}
wheels = [{{ url = "https://index.example.org/setuptools-84.2.1-py3-none-any.whl", hash = "sha256:{zeros}1" }}]

[[package]]
name = "torch"
version = "{torch}"
source = {{ registry = "https://index.example.org/simple" }}
dependencies = [{{ name = "setuptools" }}]
wheels = [{{ url = "https://index.example.org/torch-{torch}-py3-none-any.whl", hash = "sha256:{zeros}2" }}]
"""


@pytest.mark.parametrize(("torch", "taken"), [("2.10.0", "2.10.0"), ("2.15.0", "2.15.0"), ("2.15.9", "2.13.0")])
def test_the_range_of_the_project_bounds_a_block_and_the_locked_version_comes_first(
    tmp_path: Path, torch: str, taken: str
) -> None:
    """2.15.9 is in no table; the lock says that the project takes others too, of which 2.13.0 is the best here."""
    plan = planned(tmp_path, {"uv.lock": UV.format(torch=torch, zeros="0" * 63)})
    pytorch = plan.block("pytorch")
    assert pytorch is not None and pytorch.version == taken
    assert plan.project is not None and not plan.project.packages
    assert [(each.name, each.block, each.versions) for each in plan.project.handed_over] == [
        ("torch", "pytorch", ">=2.6")
    ]


LOCKS = {
    "pylock.toml": 'lock-version = "1.0"\ncreated-by = "test"\n[[packages]]\nname = "torch"\nversion = "{torch}"\n'
    'wheels = [{{name = "torch-{torch}-py3-none-any.whl", hashes = {{sha256 = "{hash}"}}}}]\n',
    "poetry.lock": '[[package]]\nname = "torch"\nversion = "{torch}"\ngroups = ["main"]\n'
    'files = [{{file = "torch-{torch}-py3-none-any.whl", hash = "sha256:{hash}"}}]\n'
    '[metadata]\nlock-version = "2.1"\npython-versions = ">=3.10"\n',
    "pdm.lock": '[metadata]\nlock_version = "4.5.0"\nstrategy = ["inherit_metadata"]\n[[package]]\nname = "torch"\n'
    'version = "{torch}"\ngroups = ["default"]\n'
    'files = [{{file = "torch-{torch}-py3-none-any.whl", hash = "sha256:{hash}"}}]\n',
    "requirements.txt": "torch=={torch} --hash=sha256:{hash}\n",
}
"""Of torch alone, in kinds of locks that do not say what the project asks for."""
POETRY = '[tool.poetry]\nname = "demo"\n[tool.poetry.dependencies]\npython = "^3.10"\ntorch = "^2.6"\n'
PROJECT = '[project]\nname = "demo"\nversion = "1"\ndependencies = ["torch>=2.6,<3"]\n'


def torch_of(folder: Path, file: str, torch: str = "2.15.9", **beside: str) -> str:
    for name, text in beside.items():
        (folder / name.replace("_", ".")).write_text(text, "utf-8")
    plan = planned(folder, {file: LOCKS[file].format(torch=torch, hash="1" * 64)})
    chosen = plan.block("pytorch")
    assert chosen is not None and plan.project is not None
    assert set(plan.project.files) == {file, *(name.replace("_", ".") for name in beside)}
    return chosen.version


@pytest.mark.parametrize("text", [POETRY, PROJECT])
@pytest.mark.parametrize("file", sorted(LOCKS))
def test_the_range_is_that_of_pyproject_toml_beside_a_lock_that_has_none(tmp_path: Path, file: str, text: str) -> None:
    assert torch_of(tmp_path, file, pyproject_toml=text) == "2.13.0"
    assert torch_of(tmp_path, file, "2.9.1", pyproject_toml=text) == "2.9.1"


def test_the_range_of_hashed_requirements_is_in_what_they_were_made_from(tmp_path: Path) -> None:
    assert torch_of(tmp_path, "requirements.txt", requirements_in="torch>=2.6\n") == "2.13.0"


@pytest.mark.parametrize(
    "text",
    [
        "",
        PROJECT.replace("torch", "torch-geometric"),
        PROJECT.replace(">=2.6,<3", ">=2.6,<2.10"),
        PROJECT.replace('["torch>=2.6,<3"]', "[7"),
        PROJECT.replace("<3", "<3; python_version < '3.12'"),
    ],
)
@pytest.mark.parametrize("file", sorted(LOCKS))
def test_without_a_range_the_locked_version_is_meant_and_that_is_said(tmp_path: Path, file: str, text: str) -> None:
    if text:
        (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    other = ', pytorch: {version: ">=2.13"}'
    with pytest.raises(ConflictError) as refused:
        planned(tmp_path, {file: LOCKS[file].format(torch="2.12.1", hash="1" * 64)}, more=other)
    assert "(locked, with no range of the project beside it) asks for pytorch ==2.12.1" in str(refused.value)


@pytest.mark.parametrize("file", sorted(LOCKS))
def test_a_locked_version_that_no_table_has_is_installed_by_its_hash(tmp_path: Path, file: str) -> None:
    plan = planned(tmp_path, {file: LOCKS[file].format(torch="2.15.9", hash="1" * 64)}, more=", pytorch: {}")
    assert plan.block("pytorch") is None and plan.project is not None and plan.project.hashed
    assert f"torch==2.15.9 --hash=sha256:{'1' * 64}" in recipe_files(plan)["files/requirements/project.txt"]
    assert "torch" not in plan.project.absent and "jax" in plan.project.absent
    (told,) = [each for each in plan.findings if "is in no release table" in each.message]
    assert told.message.startswith("torch 2.15.9 (") and told.severity == "warning" and "2.15.0" in told.remedy


def test_the_build_that_a_file_names_is_the_site_s_to_choose(tmp_path: Path) -> None:
    plan = planned(tmp_path, {"requirements.txt": "torch==2.7.1+cu126\n"})
    torch = plan.block("pytorch")
    assert torch is not None and (torch.version, torch.options["accelerator"]) == ("2.7.1", "cpu")


def test_both_lines_of_a_conflict_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConflictError) as caught:
        planned(tmp_path, {"requirements.txt": "numpy\ntorch==2.7.1\n"}, more=', pytorch: {version: ">=2.10"}')
    said = str(caught.value)
    assert "torch==2.7.1 of requirements.txt:2 asks for pytorch ==2.7.1" in said
    assert "hpcgen.yaml:3:" in said and "asks for pytorch >=2.10" in said


def test_the_remedy_is_a_version_near_to_that_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match=r"remedy: --set pytorch.version=2.8.0 "):
        planned(tmp_path, {"requirements.txt": "torch==2.7.9\n"}, more=", pytorch: {options: {compile: true}}")


def test_a_setting_decides_instead_of_the_file(tmp_path: Path) -> None:
    plan = planned(tmp_path, {"requirements.txt": "torch==2.7.0\n"}, settings=("pytorch.version=2.7.1",))
    torch = plan.block("pytorch")
    assert torch is not None and torch.version == "2.7.1"


def test_the_python_of_the_project_bounds_that_of_the_image(tmp_path: Path) -> None:
    text = '[project]\nname = "demo"\nversion = "1"\nrequires-python = ">=3.13"\ndependencies = ["h5py"]\n'
    plan = planned(tmp_path, {"pyproject.toml": text})
    python = plan.block("python")
    assert python is not None and python.version.startswith("3.1") and int(python.version.split(".")[1]) >= 13
    with pytest.raises(ConflictError, match=r"the project by pyproject.toml:4 asks for python >=3.13"):
        planned(tmp_path, {"pyproject.toml": text}, settings=("python.version=3.11.2",))


def test_a_lock_beside_what_it_locks_is_enough_and_must_fit(tmp_path: Path) -> None:
    plan = planned(tmp_path, {"pylock.toml": locked("pylock.toml"), "requirements.txt": "redis>=5\n"})
    assert plan.project is not None and plan.project.hashed
    with pytest.raises(ConflictError, match=r"redis<5 does not go with redis 8.1.0 of pylock.toml:\d+"):
        planned(tmp_path, {"pylock.toml": locked("pylock.toml"), "requirements.txt": "redis<5\n"})


def test_mistakes_are_told_with_their_places(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        planned(tmp_path, {"requirements.txt": "numpy\nnot a requirement\n"})
    assert "requirements.txt:2:1" in str(caught.value)
    (tmp_path / "hpcgen.yaml").write_text(STACK.format(files="gone.txt", groups="", more=""), "utf-8")
    with pytest.raises(HpcgenError, match=r"gone.txt.*is not there"):
        hpcgen.plan("workstation", str(tmp_path / "hpcgen.yaml"), catalog=Catalog())
    with pytest.raises(UnknownNameError, match=r"no group or extra 'plt'[\s\S]*did you mean plot"):
        planned(tmp_path, {"uv.lock": locked("uv.lock")}, groups="plt")


def imports_of(plan: Plan) -> list[str]:
    script = assemble(plan, Catalog()).selftest
    return re.findall(r"import of ([a-z0-9-]+)", script)


def test_the_selftest_imports_what_the_project_itself_names(tmp_path: Path) -> None:
    plan = planned(tmp_path, {"requirements.txt": "h5py>=3.10\nPyYAML\ntorch\n"})
    assert sorted(set(imports_of(plan))) == ["h5py", "pyyaml"]
    assert "/opt/python_packages/share/imports.py" in assemble(plan, Catalog()).selftest


def test_of_a_lock_only_what_the_project_is_known_to_name_is_imported(tmp_path: Path) -> None:
    plan = planned(tmp_path, {"requirements.txt": f"redis==8.1.0 --hash=sha256:{'1' * 64}\n"})
    assert plan.project is not None and plan.project.hashed and not imports_of(plan)
    (tmp_path / "requirements.in").write_text("redis>=5\n", "utf-8")
    assert set(imports_of(planned(tmp_path, {"requirements.txt": f"redis==8.1.0 --hash=sha256:{'1' * 64}\n"}))) == {
        "redis"
    }


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"google/protobuf/__init__.py": ""}, "imported: google.protobuf"),
        ({"both.py": "", "_own.py": "1 / 0", "tests/__init__.py": "1 / 0"}, "imported: both"),
        ({"part/__init__.py": "raise RuntimeError('nms does not exist')"}, "RuntimeError: nms does not exist"),
        ({"part/__init__.py": "import gone"}, "No module named 'gone'"),
        ({"part/__init__.py": "raise ImportError('libcuda.so.1: cannot open')"}, "part needs a GPU's driver"),
        ({"part-stubs/a.pyi": ""}, "imported: it has no modules"),
    ],
)
@pytest.mark.parametrize("conda", [False, True])
def test_the_program_of_the_selftest_imports_what_the_files_of_a_package_are(
    tmp_path: Path, files: dict[str, str], said: str, conda: bool
) -> None:
    packages, info, meta = (
        tmp_path / "site-packages",
        tmp_path / "site-packages" / "it-1.0.dist-info",
        tmp_path / "meta",
    )
    for name, text in files.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text, "utf-8")
    for folder in (info, meta):
        folder.mkdir(parents=True)
    listed = [f"lib/python3.12/site-packages/{name}" for name in files]
    (meta / "it-1.0-0.json").write_text(json.dumps({"name": "it", "files": [*listed, "bin/it"]}), "utf-8")
    if not conda:
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: it\nVersion: 1.0\n", "utf-8")
        (info / "RECORD").write_text("".join(f"{name},,\n" for name in files), "utf-8")
    program = Path(hpcgen.__file__).parents[1] / "building_blocks" / "files" / "imports.py"
    words = [sys.executable, str(program), "it", *([str(meta)] if conda else [])]
    done = subprocess.run(words, capture_output=True, text=True, env={"PYTHONPATH": str(packages)})
    assert said in done.stdout + done.stderr
    assert (done.returncode == 0) == ("imported:" in done.stdout)


@pytest.mark.parametrize(
    ("line", "block"),
    [
        ("lightning", "pytorch"),
        ("transformers[torch]>=4", "pytorch"),
        ("timm", "torchvision"),
        ("flax", "jax"),
        ("tensorflow-text", "tensorflow"),
    ],
)
def test_a_package_that_requires_a_framework_takes_its_block(tmp_path: Path, line: str, block: str) -> None:
    plan = planned(tmp_path, {"requirements.txt": f"{line}\n"}, site="lumi-g" if block == "pytorch" else "workstation")
    assert plan.block(block) is not None


def test_a_package_that_needs_no_framework_takes_none(tmp_path: Path) -> None:
    plan = planned(tmp_path, {"requirements.txt": "transformers\nh5py\n"})
    assert plan.block("pytorch") is None and plan.project is not None and "torch" in plan.project.absent
    assert any("no framework by accident" in each.text for each in make_kit(plan, Catalog()).files.values())


def test_a_pinned_package_of_the_stack_takes_the_block_of_what_it_requires(tmp_path: Path) -> None:
    stack = tmp_path / "s.yaml"
    stack.write_text(
        "name: s\ntitle: t\nblocks: {python_packages: {options: {packages: [lightning==2.5.0]}}}\n"
        "run: {mpi: false, command: [python3, app.py]}\n"
    )
    assert hpcgen.plan("lumi-g", str(stack), catalog=Catalog(), account="a").block("pytorch") is not None


def test_what_a_lock_chose_by_accident_is_refused(tmp_path: Path) -> None:
    plan = planned(tmp_path, {"requirements.txt": "h5py\n"})
    lines = ["h5py==3.11.0 --hash=sha256:" + "1" * 64, "torch==2.9.1 --hash=sha256:" + "2" * 64]
    with pytest.raises(HpcgenError, match=r"requires torch 2\.9\.1") as error:
        hold_chosen(plan, Catalog(), {"python_packages": lines})
    assert "--add pytorch" in str(error.value)
    with_block = planned(tmp_path, {"requirements.txt": "h5py\ntorch\n"})
    hold_chosen(with_block, Catalog(), {"python_packages": lines})


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_package_of_a_repository_is_fetched_at_its_commit_and_built_without_an_index(tmp_path: Path) -> None:
    text = f"h5py\nclip @ git+https://example.org/a/CLIP.git@{COMMIT}#subdirectory=py\n"
    plan = planned(tmp_path, {"requirements.txt": text})
    assert plan.project is not None
    assert [(each.name, each.origin) for each in plan.project.from_git] == [("clip", "requirements.txt:2")]
    kit = "".join(each.text for each in make_kit(plan, Catalog()).files.values())
    assert f"https://example.org/a/CLIP.git {COMMIT}" in kit
    assert "--no-build-isolation" in kit and "/opt/hpcgen/build/git/clip/py" in kit


def test_a_framework_from_a_repository_is_refused(tmp_path: Path) -> None:
    text = f"torch @ git+https://example.org/a/pytorch.git@{COMMIT}\n"
    with pytest.raises(ConflictError, match="torch comes from the block pytorch"):
        planned(tmp_path, {"requirements.txt": text})


def test_notes_of_a_file_are_notices_of_the_plan(tmp_path: Path) -> None:
    text = "--extra-index-url https://download.pytorch.org/whl/cu117\ntorch\n"
    plan = planned(tmp_path, {"requirements.txt": text})
    assert any(
        "requirements.txt:1: --extra-index-url is not needed" in each for each in assemble(plan, Catalog()).notices
    )


def test_ranges_are_not_called_pinned(tmp_path: Path) -> None:
    loose = notices(assemble(planned(tmp_path, {"requirements.txt": "h5py>=3\n"}), Catalog()))
    assert not any("versions are pinned" in each for each in loose) and any(
        "neither versions" in each for each in loose
    )
    exact = notices(assemble(planned(tmp_path, {"requirements.txt": "h5py==3.11.0\n"}), Catalog()))
    assert any("versions are pinned, hashes are not checked" in each for each in exact)


@pytest.mark.parametrize(("text", "there"), [("ipykernel>=6\n", True), ("h5py\n", False)])
def test_a_kernel_is_found_in_the_files_of_a_project(tmp_path: Path, text: str, there: bool) -> None:
    assert may_have(planned(tmp_path, {"requirements.txt": text}), "ipykernel") is there


def test_a_script_beside_no_plan_names_none(tmp_path: Path) -> None:
    plan = planned(tmp_path, {"requirements.txt": "h5py\n"})
    assert "plan.json" in job_script(plan, {})[1]
    assert "plan.json" not in job_script(plan, {}, "/i.sif", alone=True)[1]


def test_engines_that_read_the_format_are_named(tmp_path: Path) -> None:
    site = Catalog().site("workstation")
    engines = {"podman": site.containers.engines["podman"]}
    plan = planned(tmp_path, {"requirements.txt": "h5py\n"})
    lacking = replace(plan, engine="docker", site=replace(site, containers=replace(site.containers, engines=engines)))
    (check,) = policy(case_of(lacking, Catalog()))
    assert check.reason == "the profile of workstation lists podman for docker, and not docker"


def test_a_repository_alone_gets_what_it_requires_and_beside_hashes_nothing_else(tmp_path: Path) -> None:
    line = f"clip @ git+https://example.org/a/CLIP.git@{COMMIT}\n"
    alone = make_kit(planned(tmp_path, {"requirements.txt": line}), Catalog()).files["Dockerfile"].text
    assert "--no-build-isolation /opt/hpcgen/build/git/clip" in alone
    hashed = f"h5py==3.11.0 --hash=sha256:{'1' * 64}\n{line}"
    beside = make_kit(planned(tmp_path, {"requirements.txt": hashed}), Catalog()).files["Dockerfile"].text
    assert "--no-build-isolation --no-deps /opt/hpcgen/build/git/clip" in beside


def test_a_session_sees_files_that_have_changed(tmp_path: Path) -> None:
    catalog, stack = Catalog(), tmp_path / "hpcgen.yaml"
    stack.write_text(STACK.format(files="requirements.txt", groups="", more=""), "utf-8")

    def asked(text: str) -> list[str]:
        (tmp_path / "held.txt").write_text(text, "utf-8")
        project = hpcgen.plan("workstation", str(stack), catalog=catalog).project
        assert project is not None
        return [each.asked for each in project.packages]

    (tmp_path / "requirements.txt").write_text("-r held.txt\n", "utf-8")
    assert asked("h5py==3.11.0\n") == ["h5py==3.11.0"]
    assert asked("h5py==3.12.0\n") == ["h5py==3.12.0"]
    (tmp_path / "requirements.txt").write_text("numpy\n-r held.txt\n", "utf-8")
    assert asked("h5py==3.12.0\n") == ["h5py==3.12.0", "numpy"]
