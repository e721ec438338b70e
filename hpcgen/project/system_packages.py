"""Packages of the distribution that the project's container or its README installs, and nothing else brings."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpcgen.core.model.own_containers import ContainerFile
from hpcgen.core.model.own_project import FileWord
from hpcgen.core.support.units import counted, some
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found
from hpcgen.project.library_rows import DRAWS_MPI, block_for

_BROUGHT = re.compile(
    r"python\d?(\.\d+)?(-(pip|dev|devel|venv|setuptools|wheel|distutils|is-python3|full|minimal))?|python-is-python3|"
    r"build-essential|gcc(-\d+|-c\+\+)?|g\+\+(-\d+)?|make|ca-certificates|apt-(utils|transport-https)|gnupg2?|"
    r"software-properties-common|lsb-release|dirmngr|locales|tzdata|sudo|openssh-(server|client)s?|vim(-\w+)?|nano|emacs|"
    r"htop|tmux|less|man-db|zsh|fish|cuda(-.+)?|(lib)?(cudnn|nccl|cublas|nvinfer|cupti)[\w.+-]*|nvidia-.+|rocm.*|"
    r"lib(cufft|cufile|curand|cusolver|cusparse|npp|nvfatbin|nvjitlink|nvjpeg|nvrtc|nvvm)(-dev)?-\d+-\d+|"
    r"dumb-init|tini|supervisor|epel-release|dnf-plugins-core|yum-utils|which|r-base(-core|-dev)?|julia|pip|docker.*|"
    r"xfce4(-\w+)?|xorg|tigervnc-\w+|dbus-x11|x11-xserver-utils"
)
"""What blocks bring, what only serves to make an image, and what people at a terminal or a desktop use."""
_MPI = re.compile(r"(lib)?(openmpi|mpich|mpi-default)(-bin|-dev|-devel|-common|\d+)?")
_RENAMED = {"libgl1-mesa-glx": "libgl1", "libglib2.0-dev-bin": "libglib2.0-dev", "netcat": "netcat-openbsd"}
"""What newer releases of Debian and Ubuntu call packages. Source: package lists of Debian 12."""
FAMILY = {"dnf": "rockylinux", "zypper": "opensuse_leap"}
"""The base for a container file that installs by another package manager than apt."""
_STARTED = re.compile(
    r"ffmpeg|(lib)?sox(-fmt-\S+)?|libsndfile1(-dev)?|espeak(-ng)?|graphviz|gnuplot(-nox)?|imagemagick|ghostscript|"
    r"lib(gl1|egl1|gles2|osmesa6|glew|glfw3|glib2\.0-0|sm6|xext6|xrender1|gomp1|aio1?)(-\S+)?|xvfb|patchelf|"
    r"tesseract-ocr\S*|poppler-utils|git(-lfs)?|wget|curl|aria2|rsync|unzip|zstd|pigz|jq|parallel|subversion|"
    r"hmmer|ncbi-blast\+|mafft|muscle|fasttree|clustalo|samtools|bcftools|bedtools|openbabel|dssp|"
    r"(default-jre|openjdk-\d+-jre)(-headless)?"
)
"""Programs and libraries that programs start or open by their names, so that no list of Python packages brings them.

What else a README installs may be the project itself, a service, or what compiles it.
"""


def choose_container_os_packages(file: ContainerFile, found: Found, draft: Draft) -> None:
    """Those of the container's lines that nothing else brings, beside what is chosen already."""
    installed = file.installed
    mpi = next((each for each in installed.system if _MPI.fullmatch(each.text)), None)
    if mpi is not None:
        draft.add_block("mpi", f"{mpi.text} is an MPI; the site decides which one", mpi.where)
    names = _named(each for each in installed.system if not _MPI.fullmatch(each.text))
    over_mpi = "mpi" in draft.blocks or (found.build is not None and found.build.mpi is not None)
    if over_mpi and (drawing := [name for name in names if DRAWS_MPI.fullmatch(name)]):
        text = f"not installed, since the distribution's own MPI comes with them: {some(drawing)}"
        draft.remark(f"{text}; blocks bring over the image's MPI what they can", names[drawing[0]].where)
        for name in drawing:
            if block := block_for(name):
                draft.add_block(block, f"{name}, over the image's MPI", names[name].where)
        names = {name: each for name, each in names.items() if name not in drawing}
    if _add(names, file.file, draft) and (base := FAMILY.get(installed.manager)):
        why = f"the names of the packages that {file.file} installs are this distribution's"
        draft.add_block(base, why, next(iter(names.values())).where)


def choose_shown_os_packages(found: Found, draft: Draft) -> None:
    """What the README has people install by apt and a program needs while it runs."""
    names = _named(each for each in found.readme.system if _STARTED.fullmatch(each.text))
    if names:
        _add(names, next(iter(names.values())).where.file, draft)


def _named(packages: Iterable[FileWord]) -> dict[str, FileWord]:
    """By their names of today, without what blocks bring."""
    return {_RENAMED.get(each.text, each.text): each for each in packages if not _BROUGHT.fullmatch(each.text)}


def _add(names: dict[str, FileWord], file: str, draft: Draft) -> bool:
    """Put packages to those that are there; whether any is new."""
    there = draft.options_of("os_packages").get("packages", [])
    new = [name for name in names if name not in there]
    if new:
        why = f"{counted(len(new), 'package')} that {file} installs"
        draft.add_block("os_packages", why, names[new[0]].where, packages=there)
        draft.blocks["os_packages"].setdefault("options", {})["packages"] = [*there, *new]
    return bool(new)
