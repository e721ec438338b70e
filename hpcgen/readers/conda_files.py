"""Files of conda packages."""

from hpcgen.core.model.conda import CondaFile
from hpcgen.readers.conda_explicit import read_explicit
from hpcgen.readers.conda_lock import read_conda_lock
from hpcgen.readers.environment_yml import read_environment
from hpcgen.readers.pixi_lock import read_pixi_lock
from hpcgen.readers.readers import Readers

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
