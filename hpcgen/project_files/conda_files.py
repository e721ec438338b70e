"""Files of conda packages."""

from hpcgen.model.conda import CondaFile
from hpcgen.project_files.conda_explicit import read_explicit
from hpcgen.project_files.conda_lock import read_conda_lock
from hpcgen.project_files.environment_yml import read_environment
from hpcgen.project_files.pixi_lock import read_pixi_lock
from hpcgen.project_files.readers import Readers

_EXPECTED = "environment.yml, pixi.lock, conda-lock.yml, or an explicit list such as conda-linux-64.lock"
_CONDA: Readers[CondaFile] = Readers(
    "conda packages",
    _EXPECTED,
    (
        (r"pixi\.lock", read_pixi_lock),
        (r"(.+[.-])?conda-lock\.ya?ml", read_conda_lock),
        (r".+\.ya?ml", read_environment),
        (r".+\.(lock|txt)", read_explicit),
    ),
)
read_conda = _CONDA.read
