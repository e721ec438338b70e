"""What belongs to one user and to no site: the user's own config file."""

from typing import Annotated

from hpcgen.model.fields import Date, Name, Record, matching

UserPath = Annotated[
    str,
    matching(
        r"^(~/|/)[A-Za-z0-9._/+@%:,=-]*$(?!\n)",
        "an absolute path, or one that begins with ~/, of letters, digits and . _ / + @ % : , = -",
        "~/images",
    ),
]
Account = Annotated[
    str,
    matching(r"^[A-Za-z0-9][A-Za-z0-9._@:/+-]*$(?!\n)", "an account or project as the batch system knows it", "pn12ab"),
]


class UserConfig(Record, frozen=True):
    """The user's own config file; paths are absolute once it is loaded.

    ``collections``: folders of profiles, recipes and blocks. ``accounts`` and ``image_directories`` by the name of
    the site. ``records``: where build records are kept. ``licences``: the day on which each was accepted.
    """

    collections: list[UserPath] = []
    accounts: dict[Name, Account] = {}
    image_directories: dict[Name, UserPath] = {}
    records: UserPath | None = None
    licences: dict[Name, Date] = {}
