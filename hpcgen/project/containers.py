"""What the project's own container says: packages, variables and a command, where a stack has a place for them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import Position, Problems
from hpcgen.core.model.own_containers import ContainerFile
from hpcgen.core.model.own_project import FileWord
from hpcgen.core.model.project import PackageFile, PackageRequirement
from hpcgen.core.secret_rules import secret_in, secret_name
from hpcgen.core.support.units import counted, some
from hpcgen.project.command_words import in_image
from hpcgen.project.draft import Draft
from hpcgen.project.extensions import COMPILE
from hpcgen.project.found import Found
from hpcgen.project.imported import add_to_conda
from hpcgen.project.modules import conda_name
from hpcgen.project.packages import choose_frameworks, conda_listed, with_groups
from hpcgen.project.system_packages import FAMILY
from hpcgen.readers.conda_text import asked_with_cuda, spec_name
from hpcgen.readers.pip_text import Fault, requirement

# Which file of the project describes its container.

_DOCKERFILE = re.compile(
    r"(?:(?:docker|containers?|build|environments?|binder)/)?"
    r"((Docker|Container)file([.-](?!.*(ignore|sav|bak|orig)$)[\w.-]+)?|[\w-][\w.-]*\.Dockerfile)",
    re.IGNORECASE,
)
_DEFINITION = re.compile(r"(?:(?:singularity|apptainer|containers?)/)?([\w.+-]+\.def|Singularity[\w.-]*)")
_RECIPE = re.compile(r"(?:(?:hpccm|recipes|containers?|docker)/)?[\w-]*(hpccm|recipe|container)[\w-]*\.py")
_DEVCONTAINER = (".devcontainer/devcontainer.json", ".devcontainer.json")
_LARGEST, _MOST_FILES = 512 * 1024, 20
_OF_OTHERS = re.compile(r"[._-](amd|rocm|hip|intel|xpu|arm64?|aarch64|ppc64le|tpu|tests?|ci|dev|docs?)([._-]|$)")
"""In a name of a container file: for one vendor's machines that are fewer, or not for running the project."""


def read_container(found: Found, draft: Draft) -> ContainerFile | None:
    """The container file that is taken, of several the plainest; that of repo2docker where there is no other.

    What is wrong with such a file is no mistake of a project that others read as it is.
    """
    from hpcgen.readers.devcontainer import read_devcontainer
    from hpcgen.readers.dockerfile import read_dockerfile
    from hpcgen.readers.hpccm_recipe import read_hpccm
    from hpcgen.readers.repo2docker import FOLDERS, read_binder
    from hpcgen.readers.singularity_definition import read_definition

    quiet = found._replace(problems=Problems())
    small = [each.path for each in found.tree.files if each.size <= _LARGEST]
    small.sort(key=lambda path: (path.count("/"), bool(_OF_OTHERS.search(path.lower())), len(path), path))
    kinds = ((_DOCKERFILE, read_dockerfile), (_DEFINITION, read_definition), (_RECIPE, read_hpccm))
    taken: ContainerFile | None = None
    others = []
    for pattern, read in kinds:
        paths = [path for path in small if pattern.fullmatch(path)][:_MOST_FILES]
        files = [one for path in paths if (one := quiet.read(read, path)) is not None]
        if taken is None and files:
            # One project for several distributions is for that of most blocks, too.
            taken = min(files, key=lambda each: each.installed.manager in FAMILY)
        if pattern is not _RECIPE:
            others += [each.file for each in files if each is not taken]
    if taken is not None and others:
        draft.remark(
            f"{taken.file} is taken as the container; not read further: {some(others)}", Position(taken.file, 1, 1)
        )
    for below in FOLDERS if taken is None else ():
        taken = taken or quiet.read(read_binder, below)
    for path in _DEVCONTAINER if taken is None else ():
        taken = taken or (quiet.read(read_devcontainer, path) if (found.top / path).is_file() else None)
    return taken


# What its base image brings.

_VERSION = r"v?(\d+\.\d+(?:\.\d+)?)(?![\d.])"
_BASES: tuple[tuple[str, str, str], ...] = (
    (r"pytorch/pytorch", _VERSION, "torch"),
    (r"(.*/)?rocm/pytorch(-\w+)?", r".*pytorch_(?:release[-_])?(\d+\.\d+(?:\.\d+)?)", "torch"),
    (r"nvcr\.io/nvidia/pytorch", "", "torch"),
    (r"huggingface/(transformers-)?pytorch.*|.*/pytorch-notebook", "", "torch"),
    (r"tensorflow/tensorflow", _VERSION, "tensorflow"),
    (r"(.*/)?rocm/tensorflow(-\w+)?", r".*tf-?(\d+\.\d+(?:\.\d+)?)", "tensorflow"),
    (r"nvcr\.io/nvidia/tensorflow|.*/tensorflow-notebook", "", "tensorflow"),
    (r"(.*/)?rocm/jax(-\w+)?", r".*jax(\d+\.\d+\.\d+)", "jax"),
    (r"(nvcr\.io|ghcr\.io)/nvidia/jax(-\w+)?", "", "jax"),
    (r"vllm/vllm-openai", _VERSION, "vllm"),
)
"""Images by their names, where in their tags the version stands, and the package that it is of.

Source: the tags on the pages of these images, such as https://hub.docker.com/r/rocm/pytorch.
"""
_PLAIN = re.compile(
    r"|scratch|(.*/)?(ubuntu|debian|rockylinux|almalinux|centos|fedora|alpine|busybox|buildpack-deps|python|gcc|"
    r"miniconda3?|anaconda3?|mambaforge|miniforge3|micromamba|cuda|devcontainers/.+|leap|rocm-terminal|r-base|"
    r"r-ver|rstudio|tidyverse|julia|[\w-]+-notebook)"
)
"""Images whose own software hpcgen has from elsewhere, or chooses itself."""
_OF_CONDA = re.compile(r"(.*/)?(miniconda3?|anaconda3?|mambaforge|miniforge3|micromamba)")


def _image(base: FileWord) -> tuple[str, str]:
    """Its name and its tag."""
    plain = base.text.partition("@")[0].removeprefix("docker://").removeprefix("docker.io/").removeprefix("library/")
    name, colon, tag = plain.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (plain, "")


def _of_base(base: FileWord | None, draft: Draft) -> list[FileWord]:
    """The package that the base image is for, as a requirement; a remark for an image that nobody here knows."""
    if base is None:
        return []
    name, tag = _image(base)
    for pattern, version, package in _BASES:
        if re.fullmatch(pattern, name):
            match = re.match(version, tag) if version else None
            said = match[1] if match else ""
            if not said:
                draft.remark(
                    f"{base.text}: its tag names no version of {package}; the newest that fits is taken", base.where
                )
            exact = f"=={said}" if said.count(".") == 2 else f"=={said}.*" if said else ""
            return [FileWord(f"{package}{exact}", base.where)]
    if match := re.match(r"(\d+\.\d+)", tag) if re.fullmatch(r"(.*/)?python", name) else None:
        why = f"{base.text}: at least that Python; the packages may ask for another"
        draft.put(("blocks", "python"), {"version": f">={match[1]}"}, why, base.where)
    elif not _PLAIN.fullmatch(name):
        draft.remark(f"{base.text} is not taken as the base: name what it brings as blocks or packages", base.where)
    return []


# Packages.


def choose_container_packages(file: ContainerFile, found: Found, catalog: Catalog, draft: Draft) -> None:
    """Packages of Python and conda that the container has; a list in a file of its own wins over its lines."""
    installed = file.installed
    listed = [name for name in ("python_packages", "conda_packages") if "files" in draft.options_of(name)]
    of_base = _of_base(file.base, draft)
    if not listed and (paths := _files(file, found)):
        _take_list(paths[0], found, catalog, draft)
        listed = [name for name in ("python_packages", "conda_packages") if name in draft.blocks]
    asked = _requirements([*of_base, *installed.python], file, draft)
    if listed:
        _beside_list(listed[0], asked[: len(of_base)], asked[len(of_base) :], draft)
        with_groups(installed.groups, found, catalog, draft)
        return
    of_conda = bool(installed.conda) and (not asked or bool(file.base and _OF_CONDA.fullmatch(_image(file.base)[0])))
    if asked or of_conda:
        for name in [name for name in draft.blocks if name in catalog.distributions.values()]:
            # What sources import is a hint only where nothing says the version.
            _forget(draft, name)
    if of_conda:
        _conda(file, draft)
    elif installed.conda:
        names = some([each.text for each in installed.conda])
        text = f"also installed by conda: {names}; `conda_packages` installs such packages, into its own Python"
        draft.remark(text, installed.conda[0].where)
    if asked and not of_conda:
        lines = [each.asked for each in asked]
        why = (
            f"{counted(len(lines), 'package')} of {file.file}; `hpcgen lock` chooses the versions that they leave open"
        )
        options = {**draft.options_of("python_packages"), "requirements": lines}
        draft.put(("blocks", "python_packages"), {"options": options}, why, asked[0].where)
        choose_frameworks(PackageFile(file=file.file, kind="requirements", requirements=asked), catalog, draft)
    elif asked:
        text = f"also installed by pip: {some([each.asked for each in asked])}; `pip:` in an environment.yml takes both"
        draft.remark(text, asked[0].where)


def _forget(draft: Draft, name: str) -> None:
    del draft.blocks[name]
    draft.guesses = [each for each in draft.guesses if each.path != ("blocks", name)]


def _requirements(words: Sequence[FileWord], file: ContainerFile, draft: Draft) -> list[PackageRequirement]:
    """What pip is asked for, as far as it can be read."""
    found: dict[str, PackageRequirement] = {}
    wrong = []
    for each in words:
        try:
            one = requirement(each.text.strip(), each.where)
        except Fault:
            wrong.append(each)
            continue
        if one.name in found and found[one.name].specifier:
            continue
        found[one.name] = one
    if wrong:
        draft.remark(f"not taken: pip install {some([each.text for each in wrong])}", wrong[0].where)
    return list(found.values())


def _files(file: ContainerFile, found: Found) -> list[FileWord]:
    """Lists of packages that its commands name, by their paths in the project."""
    there = {each.path for each in found.tree.files}
    below = file.file.rpartition("/")[0]
    paths = []
    for each in file.installed.files:
        plain = re.sub(r"^(\./)+", "", each.text)
        for copied in file.copied:
            plain = plain.removeprefix(f"{copied}/") if copied != "/" else plain
        name = plain.rpartition("/")[2]
        choices = (plain, f"{below}/{plain}", name, f"{below}/{name}")
        paths += [FileWord(path, each.where) for path in choices if path in there][:1]
    for below in ("binder/", ".binder/"):
        for name in ("environment.yml", "requirements.txt"):
            if (found.top / below / name).is_file():
                paths.append(FileWord(below + name, Position(below + name, 1, 1)))
    return paths


def _take_list(path: FileWord, found: Found, catalog: Catalog, draft: Draft) -> None:
    why = f"the list that {path.where.file} installs" if path.where.file != path.text else "the list of repo2docker"
    if path.text.endswith((".yml", ".yaml")):
        if (conda := found.conda(path.text)) is not None:
            draft.put(("blocks", "conda_packages"), {"options": {"files": [path.text]}}, why, path.where)
            listed = conda_listed(conda, draft)
            for name in [name for name in draft.blocks if name in catalog.distributions.values()]:
                _forget(draft, name)
            _into_conda(set(listed.names), path.where, draft)
    elif (packages := found.packages(path.text)) is not None and packages.requirements:
        draft.put(("blocks", "python_packages"), {"options": {"files": [path.text]}}, why, path.where)
        choose_frameworks(packages, catalog, draft)


def _beside_list(
    block: str, of_base: Sequence[PackageRequirement], more: Sequence[PackageRequirement], draft: Draft
) -> None:
    """What the container has beside a list: the framework of its base image, and a remark on what else it installs."""
    said = " ".join(each.why for each in draft.guesses if each.path[:1] == ("blocks",))
    for each in of_base:
        name = {"torch": "pytorch"}.get(each.name, each.name)
        if block == "python_packages" and name not in draft.blocks and each.name not in said:
            why = f"{each.asked} comes with the image that {each.where.file} starts from"
            option = {"version": each.specifier.replace(".*", "") if each.version else each.specifier}
            draft.put(("blocks", name), option if each.specifier and each.version else {}, why, each.where)
    if more:
        text = f"also installed by pip: {some([each.asked for each in more])}; if the list lacks them, add them to it"
        draft.remark(text, more[0].where)


def _conda(file: ContainerFile, draft: Draft) -> None:
    good = [each for each in file.installed.conda if spec_name(each.text) not in ("", "pip", "conda", "mamba")]
    if not good:
        return
    options = {"packages": [each.text for each in good]}
    if channels := [each for each in file.installed.channels if each != "defaults"]:
        options["channels"] = channels
    why = f"{counted(len(good), 'package')} that {file.file} installs by conda; `hpcgen lock` chooses the builds"
    draft.put(("blocks", "conda_packages"), {"options": options}, why, good[0].where)
    draft.gpu_package = next(iter(asked_with_cuda([each.text for each in good])), "")
    names = {spec_name(each.text) for each in good}
    draft.torch_of_conda = "pytorch" in names
    if _into_conda(names, good[0].where, draft):
        options["channels"] = list(dict.fromkeys([*options.get("channels", []), "conda-forge"]))


def _into_conda(names: Collection[str], where: Position, draft: Draft) -> bool:
    """Take what is imported from conda too, since programs see the packages of one Python; whether there is any."""
    imported = draft.options_of("python_packages").get("requirements", [])
    if not imported or "files" in draft.options_of("python_packages"):
        return False
    _forget(draft, "python_packages")
    new = {name: where for name in imported if not {name, conda_name(name)} & {*names}}
    add_to_conda(draft, new, "imported, and not among these")
    return True


# Variables and the command.

_NOT_OF_JOBS = re.compile(
    r"DEBIAN_FRONTEND|DEBCONF_\w+|PIP_\w+|UV_\w+|CONDA_\w+|MAMBA_\w+|POETRY_\w+|NVIDIA_\w+|NV_\w+|CUDA_\w+|ROCM_\w+|"
    r"\w*_(VERSION|TAG|REPO|BRANCH|COMMIT)|\w*CUDA_ARCH\w*|FORCE_CUDA|MAX_JOBS|LANG|LC_\w+|LANGUAGE|TZ|TERM|SHELL|USER|HOME|\w*_HOME|\w*PATH|"
    r"LD_\w+|VIRTUAL_ENV|JUPYTER\w*|(OMP|KMP|SLURM|PBS|I_MPI|MPICH|OMPI|PMIX?|FI|UCX|NCCL|RCCL|GOMP|CUDA|ROCR|HIP)_\w*|"
    r"MASTER_(ADDR|PORT)|WORLD_SIZE|RANK|LOCAL_RANK|TMPDIR|CC|CXX|FC|CFLAGS|CXXFLAGS|LDFLAGS|MAKEFLAGS|NB_\w+|GID|UID|"
    r"GIT_\w+|PYTHONHTTPSVERIFY|\w*(SSL|TLS)_?(NO_)?VERIFY|NODE_TLS_\w+"
)
"""Variables that build an image, belong to its own system, are the site's, or put an end to checks of certificates."""
_NO_PROGRAMS = re.compile(
    r"(ba|z|da)?sh|jupyter(-.*)?|start[\w-]*\.sh|tini|dumb-init|sleep|tail|uvicorn|gunicorn|flask|streamlit|npm|node|"
    r"nginx|supervisord|sshd|service|true|entrypoint\.sh|docker-entrypoint\.sh|cat|echo|hostname"
)
_ACCEPTS = re.compile(r"(^|_)(EULA|LICEN[CS]E|CONSENT)(_|$)")
"""Variables by which a user accepts a licence."""
_PROGRAM = re.compile(r"python(\d(\.\d+)?)?|Rscript|julia|R")


def choose_container_run(file: ContainerFile, found: Found, draft: Draft) -> None:
    """Variables that programs read, and the command where no job script says what is started; then what is left."""
    secret, images, licences = [], [], []
    for each in file.variables:
        name, _, value = each.text.partition("=")
        if _NOT_OF_JOBS.fullmatch(name) or name in draft.data["run"].get("environment", {}):
            continue
        if secret_name(name, value) or secret_in(value):
            secret.append(each)
        elif "$" in value or value.startswith("/"):
            images.append(each)
        elif _ACCEPTS.search(name):
            licences.append(each)
        else:
            draft.put(("run", "environment", name), value, f"{file.file} sets it", each.where)
    if secret:
        names = ", ".join(each.text.partition("=")[0] for each in secret)
        draft.remark(f"{names} may be secret, and a stack and an image can be read by everybody", secret[0].where)
    if licences:
        names = ", ".join(each.text for each in licences)
        draft.remark(f"{names} accepts a licence: set it yourself if you do", licences[0].where)
    if images:
        names = some([each.text.partition("=")[0] for each in images])
        draft.remark(f"variables that name places of that image are not taken: {names}", images[0].where)
    if file.command and file.command_where is not None:
        _command(file, found, draft)
    if file.installed.system and file.installed.manager == "":
        draft.remark("packages of another system are not taken", file.installed.system[0].where)
    compiled = COMPILE in draft.data.get("build", {}).get("commands", [])
    left = [each for each in file.installed.left if not (compiled and re.search(r"\bsetup\.py\b", each.text))]
    for each in left[:_MOST_LEFT]:
        draft.remark(f"{each.text}: not taken", each.where)
    if len(left) > _MOST_LEFT:
        draft.remark(f"{len(left) - _MOST_LEFT} more lines are not taken", left[_MOST_LEFT].where)


_MOST_LEFT = 10


def _command(file: ContainerFile, found: Found, draft: Draft) -> None:
    """The container's command as that of the stack, if it starts a program of the project."""
    assert file.command_where is not None
    words = [_own(word, file) for word in file.command]
    there = {each.path for each in found.tree.files}
    starts = [word for word in words[:4] if re.sub(r"^(\./)+", "", word) in there or word.startswith("-m")]
    name = words[0].rpartition("/")[2]
    program = bool(starts) and (bool(_PROGRAM.fullmatch(name)) or words[0] in starts)
    if not program or _NO_PROGRAMS.fullmatch(name) or any("$" in word or "`" in word for word in words):
        if not _NO_PROGRAMS.fullmatch(name):
            draft.remark(f"the container starts `{' '.join(words)[:80]}`: not taken", file.command_where)
    elif not any(job.launched for job in found.jobs) and not draft.programs:
        draft.guesses = [each for each in draft.guesses if each.path != ("run", "command")]
        draft.data["run"].pop("steps", None)
        taken = in_image(words, found, draft)
        draft.put(("run", "command"), taken, f"what the container of {file.file} starts", file.command_where)


def _own(word: str, file: ContainerFile) -> str:
    """A path of the container as that of the project's file."""
    for copied in file.copied:
        if word.startswith(f"{copied}/"):
            return word[len(copied) + 1 :]
    return word
