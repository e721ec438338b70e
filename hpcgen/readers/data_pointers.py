"""Files that stand for data which lies elsewhere: pointers of git-lfs and of DVC.

https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md, https://dvc.org/doc/user-guide/project-structure/dvc-files
"""

from __future__ import annotations

from hpcgen.core.errors import InputError
from hpcgen.readers.folder import ProjectFolder, ProjectTree

_LFS = "version https://git-lfs.github.com/spec/"
_SIZES = range(100, 1024)
"""Bytes of a pointer of git-lfs: fewer than 1024 by its specification."""
_MOST = 3000


def lfs_pointers(folder: ProjectFolder, tree: ProjectTree) -> list[str]:
    """The paths of pointers of git-lfs whose data was not fetched, where the folder says that it has such files."""
    if not folder.holds(".gitattributes"):
        return []
    try:
        if "filter=lfs" not in folder.text(".gitattributes"):
            return []
    except InputError:
        return []
    small = [each.path for each in tree.files if each.size in _SIZES][:_MOST]
    return [path for path in small if _is_pointer(ProjectFolder(folder.top), path)]


def _is_pointer(folder: ProjectFolder, path: str) -> bool:
    try:
        return folder.text(path).startswith(_LFS)
    except InputError:
        return False


def dvc_data(tree: ProjectTree) -> list[str]:
    """The paths of what files of DVC stand for; it lies beside each of them where it was fetched."""
    return [each.path.removesuffix(".dvc") for each in tree.files if each.path.endswith(".dvc")]
