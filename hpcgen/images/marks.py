"""What engines keep of an image beside its files."""

from __future__ import annotations

import msgspec

ENVIRONMENT = "ch/environment"
"""Where Charliecloud looks for an image's variables. Source: ch-run(1), --set-env."""


class Marks(msgspec.Struct, frozen=True):
    """What an image says of itself beside its files: variables and labels.

    ``architecture``: of its programs, as registries call it; ``digest``: as its store has it. Empty where not known.
    """

    environment: dict[str, str] = {}
    labels: dict[str, str] = {}
    architecture: str = ""
    digest: str = ""
