"""A cache folder in which programs find repositories of the Hugging Face hub by name, though no file was cached there.

The library looks up ``refs/main`` in the folder of a repository, ``models--ORG--NAME`` or ``datasets--ORG--NAME``, for
the commit, and the files in ``snapshots/COMMIT``. Source: huggingface/hub-docs, docs/hub/local-cache.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from hpcgen.core.model.models import Model

HUB_CACHE = "/hub"
"""Where jobs see the folder."""
_REPOSITORY = re.compile(
    r"https://[^/]+(/[^/]+)*?/(?P<data>datasets/)?(?P<name>[^/]+(/[^/]+)?)/resolve/(?P<commit>[0-9a-f]{40})"
)
"""Also below a folder of a mirror."""


class HubRepository(msgspec.Struct, frozen=True):
    """One that jobs find by name: its folder in the cache, its commit, and where they see the files of that.

    ``main``: the commit is that of its branch ``main``.
    """

    folder: str
    commit: str
    files: str
    main: bool


def hub_repositories(models: Sequence[Model]) -> list[HubRepository]:
    """Those among the models and data sets of a stack that are a repository at a commit.

    The first of several commits of one is its branch ``main``; of several entries for one commit the first counts.
    """
    found: dict[tuple[str, str], HubRepository] = {}
    for model in models:
        read = _REPOSITORY.fullmatch(model.from_) if model.files else None
        if read is not None:
            folder = "--".join(["datasets" if read["data"] else "models", *read["name"].split("/")])
            main = folder not in [name for name, _ in found]
            found.setdefault((folder, read["commit"]), HubRepository(folder, read["commit"], model.to, main))
    return list(found.values())


def cache_name(repositories: Sequence[HubRepository]) -> str:
    """The name of the cache folder: jobs with the same repositories in the same places share one."""
    from hpcgen.core.support.hashing import sha256_of

    listed = "".join(f"{each.folder} {each.commit} {each.files}\n" for each in repositories)
    return f"hub-{sha256_of(listed)}"
