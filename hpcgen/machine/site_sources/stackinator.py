"""The folder of a cluster for Stackinator → what is installed there.

Source: Stackinator's documentation, "Cluster Configuration", and eth-cscs/alps-cluster-config: ``packages.yaml`` and
``network.yaml`` have Spack's externals, ``network.yaml`` the MPIs that stacks are built with as well.
"""

from __future__ import annotations

import posixpath

from hpcgen.core.errors import InputError
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.asked import SourceSettings
from hpcgen.machine.site_sources.spack import read_files
from hpcgen.readers.folder import ProjectFolder

_FILES = ("packages.yaml", "network.yaml", "compilers.yaml", "upstreams.yaml", "mirrors.yaml")


def read_stackinator(folder: ProjectFolder, file: str, asked: SourceSettings) -> Seen:
    """The facts of a cluster's folder.

    Parameters
    ----------
    folder: that which holds it: files of clusters are often links to what several share.
    file: the cluster's folder in it.
    asked: is not used.

    Raises
    ------
    InputError: it is no such folder, or its files are not as Spack's are.
    """
    files = [path for name in _FILES if folder.holds(path := posixpath.normpath(f"{file}/{name}"))]
    if not any(path.endswith("packages.yaml") for path in files):
        expected = "a folder with packages.yaml, and network.yaml or compilers.yaml"
        raise InputError(
            "this is no cluster of Stackinator's", folder.shown(file), expected, "name the cluster's folder"
        )
    seen = read_files(folder, files)
    seen.notes.append(f"{folder.shown(file)}: recipes and environments of stacks do not describe the system")
    return seen
