"""The same question asked in another way, or of files that say the same in another way: the plan must be the same."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from hpcgen.catalog.catalog import FOLDERS, Catalog
from hpcgen.core.config.yamlfile import load
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.stack import OptionValue
from tests.helpers.shipped_plans import USED, Asked, answer, catalog, choice, differs, whole

OTHER_NAME = "somewhere-else"

# how a question is asked


def pins(plan: Plan) -> dict[str, OptionValue]:
    """Every version and provider of a plan, as settings."""
    chosen = {block.name: block for block in plan.blocks}
    said: dict[str, OptionValue] = {f"{name}.version": block.version for name, block in chosen.items()}
    named = [v for v, providers in catalog().virtuals.items() if set(providers) & set(chosen)]
    return said | {f"{v}.provider": next(p for p in catalog().virtuals[v] if p in chosen) for v in named}


def pinned(asked: Asked, plan: Plan | str) -> str:
    """What was chosen, set."""
    if isinstance(plan, str):
        return USED
    return differs(choice(plan), choice(answer(asked.saying(pins(plan)))))


def pinned_in_the_stack(asked: Asked, plan: Plan | str) -> str:
    """What was chosen for the blocks that the stack names, as the stack's own versions."""
    if isinstance(plan, str):
        return USED
    blocks = {}
    for name, said in plan.stack.blocks.items():
        block = plan.block(name)
        assert block is not None
        provider = block.name if name in catalog().virtuals else None
        blocks[name] = msgspec.structs.replace(said, version=f"=={block.version}", provider=provider)
    stack = msgspec.structs.replace(plan.stack, blocks=blocks)
    return differs(choice(plan), choice(answer(asked, stack=stack)))


def said_outright(asked: Asked, plan: Plan | str) -> str:
    """Each option of each planned block, an empty version, the providers."""
    if isinstance(plan, str):
        return USED
    said = {f"{b.name}.{option}": value for b in plan.blocks for option, value in b.options.items()}
    said |= {name: value for name, value in pins(plan).items() if name.endswith(".provider")}
    said |= {f"{block.name}.version": "" for block in plan.blocks}
    return differs(choice(plan), choice(answer(replace(asked, settings=(*said.items(), *asked.settings)))))


def partition_left_out(asked: Asked, plan: Plan | str) -> str:
    """The default partition, not named."""
    if asked.partition != catalog().site(asked.site).default_partition:
        return USED
    other = answer(replace(asked, partition=None))
    if isinstance(other, Plan) and isinstance(plan, Plan):
        other = msgspec.structs.replace(other, command=plan.command)
    return differs(whole(plan), whole(other))


# other files


def shuffled(value: Any, dice: random.Random, keep: tuple[str, ...] = ()) -> Any:
    """Plain data with the keys of its mappings in another order, but for those mappings whose order decides."""
    if isinstance(value, list):
        return [shuffled(each, dice, keep) for each in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    dice.shuffle(keys)
    return {
        key: {k: shuffled(v, dice, keep) for k, v in value[key].items()}
        if key in keep
        else shuffled(value[key], dice, keep)
        for key in keys
    }


@cache
def _shuffled_folder(seed: int) -> TemporaryDirectory[str]:
    """The shipped files with all keys in another order, as a collection."""
    dice, folder = random.Random(seed), TemporaryDirectory(prefix="hpcgen-shuffled-")
    for part in FOLDERS.values():
        (Path(folder.name) / part).mkdir()
        for path in (catalog().folders[-1] / part).glob("*.yaml"):
            # A stack's first block is the most important one, a site's first partition the first that a remedy names.
            data = shuffled(load(path).data, dice, ("blocks",) if part == "recipes" else ("partitions",))
            (Path(folder.name) / part / path.name).write_text(json.dumps(data))
    return folder


@cache
def _shuffled_catalog(seed: int) -> Catalog:
    return Catalog([_shuffled_folder(seed).name])


def keys_shuffled(asked: Asked, plan: Plan | str) -> str:
    """All files with their keys in another order: byte for byte the same."""
    seed = len(str(asked)) % 3
    said = whole(answer(asked, _shuffled_catalog(seed)))
    return differs(whole(plan), said.replace(f"{_shuffled_folder(seed).name}/", ""))


def site_renamed(asked: Asked, plan: Plan | str) -> str:
    """The profile under another name."""
    renamed = answer(replace(asked, site=OTHER_NAME), _renamed_catalog(asked.site))
    said = whole(renamed).replace(OTHER_NAME, asked.site).replace(f"{_renamed_folder(asked.site).name}/", "")
    return differs(whole(plan), said)


@cache
def _renamed_folder(site: str) -> TemporaryDirectory[str]:
    folder = TemporaryDirectory(prefix="hpcgen-renamed-")
    profiles = Path(folder.name) / FOLDERS["site"]
    profiles.mkdir()
    text = catalog().find("site", site).read_text()
    (profiles / f"{OTHER_NAME}.yaml").write_text(re.sub(r"(?m)^name: .*$", f"name: {OTHER_NAME}", text, count=1))
    return folder


@cache
def _renamed_catalog(site: str) -> Catalog:
    return Catalog([_renamed_folder(site).name])


RULES = (pinned, pinned_in_the_stack, said_outright, partition_left_out, keys_shuffled, site_renamed)
