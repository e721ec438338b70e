"""requirements.txt as people write it, and what is refused in it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.project import GitRequirement, PackageFile
from hpcgen.readers.folder import PartlyReadError
from hpcgen.readers.python_files import read_packages

DEFAULT = importlib.import_module("pip._internal.models.index").PyPI
"""pip's own index."""
ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64


def read(folder: Path, text: str, **others: str) -> PackageFile:
    (folder / "requirements.txt").write_text(text)
    for name, content in others.items():
        (folder / f"{name}.txt").write_text(content)
    return read_packages(folder, "requirements.txt")


def refused(folder: Path, text: str, **others: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(folder, text, **others)
    return [str(each).replace(f"{folder}/", "") for each in caught.value.problems]


def test_a_requirement_has_its_normal_name_and_its_place(tmp_path: Path) -> None:
    found = read(tmp_path, "# tools\n\n  Scikit_Learn[plot, Tests] >=1.4 , <2 ; python_version<'3.13'  # why\nnumpy\n")
    first, second = found.requirements
    assert first.line == 'scikit-learn[plot,tests]<2,>=1.4 ; python_version < "3.13"'
    assert (first.origin, first.where.column) == ("requirements.txt:3", 3)
    assert (second.line, second.version, found.locked) == ("numpy", "", False)


def test_hashes_go_on_over_lines_and_make_a_lock(tmp_path: Path) -> None:
    found = read(tmp_path, f"--require-hashes\nh5py==3.11.0 \\\n    --hash={ONE} \\\n    --hash {TWO}\nsix==1.16\n")
    assert found.requirements[0].hashes == [ONE, TWO]
    assert (found.requirements[0].version, found.requirements[1].origin) == ("3.11.0", "requirements.txt:5")
    assert not found.locked, "six has no hash"
    assert read(tmp_path, f"h5py==3.11.0 --hash={ONE}\n").hashed


def test_a_file_of_another_editor_is_read(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes("\ufeffnumpy==1.26.4\r\npandas\r\n".encode())
    assert [each.line for each in read_packages(tmp_path, "requirements.txt").requirements] == [
        "numpy==1.26.4",
        "pandas",
    ]


def test_included_files_are_read_once_and_constraints_only_hold(tmp_path: Path) -> None:
    (tmp_path / "deps").mkdir()
    (tmp_path / "deps" / "base.txt").write_text("numpy\n-r ../requirements.txt\n-c held.in\n")
    (tmp_path / "deps" / "held.in").write_text("numpy<2\n")
    found = read(tmp_path, "-r deps/base.txt\n--requirement=deps/base.txt\npandas\n")
    assert [each.origin for each in found.requirements] == ["deps/base.txt:1", "requirements.txt:3"]
    assert [(each.line, each.origin) for each in found.constraints] == [("numpy<2", "deps/held.in:1")]
    assert sorted(found.read) == ["deps/base.txt", "deps/held.in", "requirements.txt"]


def test_everything_that_is_refused_is_said_at_once_with_its_place(tmp_path: Path) -> None:
    said = refused(
        tmp_path,
        "--extra-index-url https://example.org/cu121\n"
        "torch @ https://example.org/torch.whl\n"
        "git+https://example.org/own.git@abc1234\n"
        "-e ../other\n"
        "./wheels/own.whl\n"
        "numpy=>1\n"
        "a==1 --global-option=x\n"
        "${TOKEN}\n"
        "--indx-url x\n"
        "b==1 --hash=md5:00\n"
        "-r missing.txt\n",
    )
    assert [each.partition(": ")[0] for each in said] == [f"requirements.txt:{line}:1" for line in range(1, 12)]
    for message, word in zip(
        said,
        (
            "network.mirrors.pip",
            "by an address",
            "`git ls-remote https://example.org/own.git abc1234` prints the commit",
            "a path on this machine",
            "a path on this machine",
            "'numpy=>1' is not a requirement",
            "--global-option behind a requirement",
            "${TOKEN} is a variable",
            "did you mean --index-url",
            "is not a sha256",
            "'missing.txt' is not there",
        ),
        strict=True,
    ):
        assert word in message


def test_no_file_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret.txt").write_text("secret\n")
    (inner / "link.txt").symlink_to("../secret.txt")
    said = refused(inner, "-r ../secret.txt\n-r link.txt\n-c /etc/passwd\n-r https://example.org/a.txt\n")
    assert ["leads out" in each or "no file of this folder" in each for each in said] == [True] * 4


def test_a_file_without_end_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "requirements.txt").open("wb") as stream:
        stream.truncate(1 << 33)
    with pytest.raises(InputError, match="too large"):
        read_packages(tmp_path, "requirements.txt")


def test_another_kind_of_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a file of Python packages"):
        read_packages(tmp_path, "Pipfile.lock")


def test_a_list_that_nobody_writes_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("".join(f"a{number}==1\n" for number in range(250_000)))
    with pytest.raises(InputError, match="at most 2097152 bytes"):
        read_packages(tmp_path, "requirements.txt")


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    "line",
    [
        "--extra-index-url https://download.pytorch.org/whl/cu117",
        "--index-url=https://download.pytorch.org/whl/cpu",
        "-f https://download.pytorch.org/whl/torch_stable.html",
        "--find-links https://storage.googleapis.com/jax-releases/jax_cuda_releases.html",
        "--extra-index-url https://pypi.nvidia.com",
        f"-i {DEFAULT.simple_url}",
        f"--index-url https://{DEFAULT.netloc.partition('.')[0]}.python.org/simple/",
    ],
)
def test_an_index_that_decides_nothing_is_a_note(tmp_path: Path, line: str) -> None:
    found = read(tmp_path, f"numpy\n{line}\n")
    assert [(note.where.line, line.split("=")[0].split()[0] in note.text) for note in found.notes] == [(2, True)]
    assert [each.name for each in found.requirements] == ["numpy"]


@pytest.mark.parametrize("host", ["download.pytorch.org.example.org/whl", "example.org/download.pytorch.org/whl"])
def test_an_index_of_a_similar_name_is_refused(tmp_path: Path, host: str) -> None:
    assert "network.mirrors.pip" in refused(tmp_path, f"--extra-index-url https://{host}\n")[0]


@pytest.mark.parametrize(
    ("line", "name", "folder"),
    [
        (f"clip @ git+https://example.org/a/CLIP.git@{COMMIT}", "clip", ""),
        (f"git+https://git@example.org/a/CLIP.git@{COMMIT}#egg=clip", "clip", ""),
        (f"-e git+https://example.org/a/CLIP@{COMMIT}#subdirectory=py/api&egg=Open_Clip", "open-clip", "py/api"),
        (f"git+https://example.org/a/CLIP.git@{COMMIT}  # why", "clip", ""),
    ],
)
def test_a_repository_at_a_commit_is_a_package(tmp_path: Path, line: str, name: str, folder: str) -> None:
    (found,) = read(tmp_path, f"{line}\n").requirements
    assert isinstance(found, GitRequirement)
    assert (found.name, found.commit, found.folder) == (name, COMMIT, folder)
    assert found.url.startswith("https://example.org/a/CLIP")


@pytest.mark.parametrize(
    ("line", "reference"),
    [
        ("git+https://example.org/a.git", "HEAD"),
        ("a @ git+https://example.org/a.git@feature/x", "feature/x"),
        ("git+https://example.org/a@v1.0", "v1.0"),
    ],
)
def test_a_branch_or_a_tag_stays_one_until_a_lock_is_made(tmp_path: Path, line: str, reference: str) -> None:
    (found,) = read(tmp_path, f"{line}\n").requirements
    assert isinstance(found, GitRequirement)
    assert (found.name, found.commit, found.reference) == ("a", None, reference)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("git+https://example.org/a.git@abc1234", "git ls-remote https://example.org/a.git abc1234"),
        ("git+https://example.org/a.git@../b", "prints the commit"),
        ("git+https://example.org/a.git@--upload-pack=id", "prints the commit"),
        (f"git+ssh://git@example.org/a.git@{COMMIT}", "not the https address"),
        (f"git+https://user:word@example.org/a.git@{COMMIT}", "not the https address"),
        (f"git+https://example.org/a.git@{COMMIT}#subdirectory=../b", "not a folder of a repository"),
        ("git+https://example.org/a.git@$(id)", "prints the commit"),
    ],
)
def test_a_repository_that_nothing_can_be_fetched_from_is_refused(tmp_path: Path, line: str, said: str) -> None:
    assert said in refused(tmp_path, f"{line}\n")[0]


def test_the_project_itself_counts_with_what_its_pyproject_asks_for(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "own"\ndependencies = ["torch>=2"]\n[project.optional-dependencies]\nplot = ["seaborn"]\n'
    )
    found = read(tmp_path, "-e .[plot]\n.\nnumpy\n")
    assert sorted(each.name for each in found.requirements) == ["numpy", "seaborn", "torch"]
    assert "the project itself" in found.notes[0].text


def test_the_rest_of_a_file_with_mistakes_is_known(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.9.1\n--extra-index-url https://example.org/own\n")
    with pytest.raises(PartlyReadError) as caught:
        read_packages(tmp_path, "requirements.txt")
    assert [each.name for each in caught.value.file.requirements] == ["torch"]


def test_packages_that_are_not_wanted_do_no_harm_by_their_lines(tmp_path: Path) -> None:
    text = "tqdm\nodd @ https://example.org/odd.whl\n--index-url https://packages.example.org/simple\nplain>=1\n"
    (tmp_path / "requirements.txt").write_text(text, "utf-8")
    with pytest.raises(PartlyReadError) as caught:
        read_packages(tmp_path, "requirements.txt", ["ODD", "plain"])
    assert [each.where.line for each in caught.value.problems if isinstance(each.where, Position)] == [3]
    (tmp_path / "requirements.txt").write_text(text.replace("--index-url https://packages.example.org/simple", ""))
    found = read_packages(tmp_path, "requirements.txt", ["ODD", "plain"])
    assert [each.name for each in found.requirements] == ["tqdm"]
