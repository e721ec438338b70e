"""Options of blocks: class defaults, then the site's, then the stack's, then ``--set``; all typed."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from hpcgen.blocks.base import Block, Facts
from hpcgen.blocks.guarded import block_error
from hpcgen.core.errors import Problem, Problems, UnknownNameError, did_you_mean
from hpcgen.core.model.stack import OptionValue

RESERVED = ("version", "provider")
"""Words that ``--set`` takes for a virtual; for a block ``version``, besides its own options."""


class BlockChoice(msgspec.Struct, frozen=True):
    """The options of one block as they will be used.

    ``alternatives``: further ones, of :meth:`Block.alternatives`, each with the option in which it differs from these.
    """

    options: Any
    alternatives: tuple[tuple[str, BlockChoice], ...] = ()

    def as_data(self) -> dict[str, OptionValue]:
        """Plain values, sorted by name."""
        return dict(sorted(msgspec.to_builtins(self.options).items()))


@lru_cache(maxsize=512)
def option_fields(options: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a block's options; msgspec works them out anew each time it is asked."""
    return msgspec.structs.fields(options)


def literal_words(kind: Any) -> list[str]:
    """The words that an option's type allows, if it allows some words alone."""
    if typing.get_origin(kind) is typing.Literal:
        return [value for value in typing.get_args(kind) if isinstance(value, str)]
    return [word for part in typing.get_args(kind) for word in literal_words(part)]


def block_options(
    block: type[Block],
    facts: Facts,
    stack: Mapping[str, OptionValue],
    settings: Mapping[str, str],
    where: Any,
    enough: Mapping[str, str] | None = None,
) -> BlockChoice:
    """The options of a block.

    stack: the stack's values.
    settings: values of ``--set``, as text; lists are separated by commas.
    where: function of an option's name that tells where it was said.
    enough: values that stand before the block's own defaults.
    UnknownNameError: an option that the block does not have, or a value that the option does not take.
    """
    values, problems = _stated(block, (block.defaults(facts), enough or {}, stack, settings), where)
    problems.raise_as(UnknownNameError)
    said = {*(enough or {}), *stack, *settings}
    open_ = {name: others for name, others in block.alternatives(facts).items() if name not in said}
    try:
        chosen = msgspec.convert(values, block.Options, strict=False)
        others = [
            (name, BlockChoice(msgspec.convert({**values, name: value}, block.Options, strict=False)))
            for name, others in open_.items()
            for value in others
            if value != getattr(chosen, name)
        ]
        return BlockChoice(chosen, tuple(others))
    except msgspec.ValidationError as error:
        where_first = next((where(name) for name in (*settings, *stack)), None)
        raise UnknownNameError(
            f"the options of {block.name} do not go together: {error}",
            where_first,
            remedy=f"hpcgen show block {block.name} lists them with their values",
        ) from error
    except Exception as error:
        raise block_error(error, block.Options.__post_init__) from error  # type: ignore[attr-defined]


def option_problems(block: type[Block], options: Mapping[str, OptionValue], where: Any) -> Problems:
    """What is wrong with options whatever the site is; ``where`` as for :func:`block_options`."""
    return _stated(block, (options,), where)[1]


def _stated(
    block: type[Block], sources: Iterable[Mapping[str, OptionValue]], where: Any
) -> tuple[dict[str, Any], Problems]:
    """The values that sources give to options, the last wins, and all that is wrong with them."""
    problems = Problems()
    known = [field.encode_name for field in option_fields(block.Options)]
    values: dict[str, Any] = {}
    lists = {f.encode_name for f in option_fields(block.Options) if "list" in str(f.type) or "tuple" in str(f.type)}
    for source in sources:
        for name, value in source.items():
            if name not in known:
                problems.add(
                    f"block {block.name} has no option {name!r}",
                    where=where(name),
                    remedy=did_you_mean(name, known) if known else f"{block.name} has no options",
                )
            elif name in lists and isinstance(value, str):
                values[name] = [part for part in value.split(",") if part]
            else:
                values[name] = value
    problems.extend(_wrong_values(block, values, where))
    return values, problems


def _wrong_values(block: type[Block], values: Mapping[str, Any], where: Any) -> list[Problem]:
    """Each value tried alone, so that all wrong ones are told at once."""
    problems = Problems()
    for field in option_fields(block.Options):
        if field.encode_name not in values:
            continue
        value = values[field.encode_name]
        try:
            msgspec.convert(value, field.type, strict=False)
        except msgspec.ValidationError:
            from hpcgen.core.config.diagnostics import wrong_value

            wrong = wrong_value(value, field.type, f"{block.name}.{field.encode_name}")
            problems += [problem.at(where(field.encode_name)) for problem in wrong]
    return problems
