"""The user's own config file: settings of one user, not of a site."""

from typing import Annotated

from hpcgen.core.model.fields import Account, Date, ImageRules, Name, PlanDefaults, matching

UserPath = Annotated[
    str,
    matching(
        r"^(~/|/)[A-Za-z0-9._/+@%:,=-]*$(?!\n)",
        "an absolute path, or one that begins with ~/, of letters, digits and . _ / + @ % : , = -",
        "~/images",
    ),
]
ArtifactPlace = Annotated[
    str,
    matching(
        r"^(https://|docker://|http://(localhost|127\.0\.0\.1)[:/]|~/|/)[A-Za-z0-9._/+@%:,=~-]+$(?!\n)",
        "an https address, docker:// and a repository of a registry, an absolute path, or one that begins with ~/",
        "https://example.org/artifacts",
    ),
]
TrustedCollection = Annotated[
    str,
    matching(
        r"^(sha256:[0-9a-f]{64}|(~/|/)[A-Za-z0-9._/+@%:,=-]*)$(?!\n)",
        "an absolute path, or one that begins with ~/, or sha256: and 64 hexadecimal digits",
        "~/fleet/ours",
    ),
]
DataBind = Annotated[
    str,
    matching(
        r"^[^:,\x00-\x1f\x7f-\x9f\u2028\u2029]+(:/[A-Za-z0-9._/+@%=-]*(:r[ow])?)?$(?!\n)",
        "SRC, SRC:DST or SRC:DST:ro: a path of the host, with $NAME and a ~/ at its beginning, and one in the image",
        "$SCRATCH/imagenet:/data:ro",
    ),
]


class UserConfig(PlanDefaults, frozen=True):
    """The user's own config file; paths are absolute once it is loaded.

    ``collections``: folders of profiles, recipes and blocks. ``accounts``, which win over ``account``, and
    ``image_directories`` by the name of the site. ``records``: where build records are kept.
    ``signers``: a file of allowed signers (ssh-keygen(1)); one of them must have signed the bundles, locks and
    artifacts that are built from, and the statements that ``verify`` reads. ``artifacts``: the folder in which
    compiled blocks are kept. ``artifact_sources``: folders, web servers that show such, and repositories of
    registries, from which those come that it lacks. ``licences``: the day on which each was accepted.
    ``trusted_collections``: the day on which the user said that the Python of a collection may run which a file
    names: of a folder, whatever is in it, or of one content, wherever it lies. ``images``: which may be started.
    ``binds``: by the name of the site, data that images see inside, as ``run.binds`` of a stack.
    """

    collections: list[UserPath] = []
    accounts: dict[Name, Account] = {}
    image_directories: dict[Name, UserPath] = {}
    records: UserPath | None = None
    signers: UserPath | None = None
    artifacts: UserPath | None = None
    artifact_sources: list[ArtifactPlace] = []
    licences: dict[Name, Date] = {}
    trusted_collections: dict[TrustedCollection, Date] = {}
    images: ImageRules = ImageRules()
    binds: dict[Name, list[DataBind]] = {}
