"""The request to the planner, and the errors that another request may avoid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from hpcgen.core.errors import PolicyError, Problems, Remedy, UnknownNameError
from hpcgen.core.model.stack import Stack

_NOTHING: dict[str, Any] = {"version": "", "provider": None}


class PlanRequest(msgspec.Struct, frozen=True):
    """The user's overrides: the stack, the partition, ``--set``, ``--add``."""

    stack: Stack
    partition: str | None
    settings: tuple[str, ...]
    added: tuple[str, ...] = ()

    def after(self, remedy: Remedy) -> PlanRequest:
        """The same with a remedy's changes."""
        settings = [text for text in self.settings if text.partition("=")[0] not in remedy.settings]
        settings += [f"{name}={value}" for name, value in remedy.settings.items() if value is not None]
        blocks = dict(self.stack.blocks)
        for name, value in remedy.stack.items():
            block, _, what = name.rpartition(".")
            blocks[block] = msgspec.structs.replace(blocks[block], **{what: value or _NOTHING[what]})
        stack = msgspec.structs.replace(self.stack, blocks=blocks)
        added = tuple(name for name in (*self.added, *remedy.added) if name not in remedy.without)
        return PlanRequest(stack, remedy.partition or self.partition, tuple(settings), added)

    def names(self) -> list[str]:
        """Each BLOCK.OPTION that ``--set`` names."""
        return list(dict.fromkeys(text.partition("=")[0] for text in self.settings))

    def said(self, name: str) -> str | None:
        """The value of a BLOCK.OPTION in ``--set``."""
        values = [value for text in self.settings for key, _, value in [text.partition("=")] if key == name]
        return values[-1] if values else None


class MisfitError(PolicyError):
    """The job does not fit the machine, or breaks the contract with it; another job may be the remedy."""


class UnusedSettingError(UnknownNameError):
    """``--set`` names blocks that the plan does not have: ``names``."""

    def __init__(self, problems: Problems, names: Sequence[str]) -> None:
        super().__init__(problems)
        self.names = names
