"""What a build takes from outside: a file and a class for each kind, with all that the rest of hpcgen asks of it.

Another kind is a file here and a row of :data:`KINDS`.
"""

from hpcgen.blocks.inputs.archive import Archive
from hpcgen.blocks.inputs.base import Input
from hpcgen.blocks.inputs.bazel import BazelFiles
from hpcgen.blocks.inputs.conda import CondaFiles
from hpcgen.blocks.inputs.git_tree import GitTree
from hpcgen.blocks.inputs.spack import SpackSources
from hpcgen.blocks.inputs.wheel_file import WheelFile
from hpcgen.blocks.inputs.wheels import Wheels

KINDS: dict[str, type[Input]] = {
    kind.key: kind for kind in (Archive, WheelFile, Wheels, BazelFiles, GitTree, CondaFiles, SpackSources)
}
"""The kinds that blocks name as inputs, by what a lock calls them; base images have a place of their own there."""
