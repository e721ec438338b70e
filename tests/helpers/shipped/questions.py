"""Questions by their number: every profile, partition and stack in turn, and every other one about a made-up node."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, get_args, get_origin

import msgspec

from tests.helpers.shipped.problem import Question
from tests.helpers.shipped.tables import BLOCKS, STACKS, declared, real_nodes, stack, table, virtuals

CAPABILITIES = ["3.5", "3.7", "5.0", "5.2", "6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"]
DRIVERS = ["390.30", "410.48", "418.39", "440.33", "450.80.02", "460.32", "470.57", "495.29", "510.47"]
DRIVERS += ["525.60.13", "535.104", "550.54", "560.35", "570.26", "580.65", "600.1"]
TARGETS = ["gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"]
CPUS = {
    "x86_64": [
        "x86_64_v2",
        "x86_64_v3",
        "x86_64_v4",
        "haswell",
        "skylake_avx512",
        "zen2",
        "zen3",
        "zen4",
        "sapphirerapids",
    ],
    "aarch64": ["neoverse_n1", "neoverse_v1", "neoverse_v2", "a64fx"],
}
MPIS = {
    "intel": ("mpich", ["2018.4", "2019.7", "2019.12", "2021.4", "2021.9", "2021.17"]),
    "mpich": ("mpich", ["3.2", "3.3.2", "3.4.3", "4.0.2", "4.1.2", "4.3.0"]),
    "cray-mpich": ("mpich", ["7.7.10", "8.1.4", "8.1.28", "8.1.32", "9.0.1"]),
    "mvapich2": ("mpich", ["2.3.7"]),
    "parastation": ("mpich", ["5.9.2", "5.4.10"]),
    "openmpi": ("openmpi", ["2.1.6", "3.1.4", "4.0.5", "4.1.6", "5.0.3", "5.0.8"]),
}


def question(number: int) -> Question:
    """A question by its number."""
    dice = random.Random(number)
    nodes = real_nodes()
    if number % 2:
        it = made_up_site(dice)
        asked = Question(it, "main", dice.choice(STACKS))
    else:
        name, partition = nodes[number // 2 % len(nodes)]
        asked = Question(name, partition, STACKS[number // 2 // len(nodes) % len(STACKS)])
    if dice.random() < 0.15:
        asked.stack = _made_up_stack(dice)
    asked.added = [dice.choice([*BLOCKS, *virtuals()]) for _ in range(dice.choice([0, 0, 0, 0, 1, 1, 2]))]
    near = sorted(_near([*asked.stack_data["blocks"], *asked.added]))
    for _ in range(dice.choice([0, 0, 1, 1, 2, 2, 3, 4])):
        asked.settings |= _a_setting(dice, near)
    if dice.random() < 0.05:
        asked.kept = {name: dice.choice(list(table(name))) for name in dice.sample(near, 3) if name not in virtuals()}
    return asked


@cache
def _needed(name: str) -> frozenset[str]:
    found = {name}
    for each in virtuals().get(name, []):
        found |= _needed(each)
    if name not in virtuals():
        for need in declared(name).needs:
            found |= _needed(need.name)
    return frozenset(found)


def _near(names: list[str]) -> set[str]:
    """What may come up beside these."""
    return {"base", *virtuals()["base"], *(each for name in names for each in _needed(name))}


def a_range(dice: random.Random, block: str) -> str:
    """An exact version or a range around versions of a block."""
    known = list(table(block))
    one, other = sorted(dice.choices(range(len(known)), k=2), reverse=True)
    low, high = known[one], known[other]
    minor = ".".join(high.split(".")[:2])
    shapes = [high, high, f"=={minor}.*", f">={low}", f"<{high}", f"<={high}", f"!={high}", f">={low},<={high}", "99"]
    return dice.choices(shapes, weights=[4, 4, 3, 2, 3, 2, 1, 3, 0.2])[0]


def _a_setting(dice: random.Random, near: list[str]) -> dict[str, str]:
    name = dice.choice(near) if dice.random() < 0.97 else dice.choice(BLOCKS)
    if name in virtuals():
        provider = dice.choice(virtuals()[name])
        return {f"{name}.provider": provider} if dice.random() < 0.7 else {f"{name}.version": a_range(dice, provider)}
    options = _options(name)
    if options and dice.random() < 0.4:
        option = dice.choice(sorted(options))
        return {f"{name}.{option}": dice.choice(options[option])}
    return {f"{name}.version": a_range(dice, name)}


@cache
def _options(block: str) -> dict[str, list[str]]:
    """The options of a block that have few values, with these as texts."""
    found = {}
    for field in msgspec.structs.fields(declared(block).Options):
        if field.type is bool:
            found[field.encode_name] = ["true", "false"]
        elif get_origin(field.type) is not list and all(isinstance(each, str) for each in get_args(field.type)):
            found[field.encode_name] = list(get_args(field.type))
    return {name: values for name, values in found.items() if values}


def _made_up_stack(dice: random.Random) -> dict[str, Any]:
    if dice.random() < 0.3:
        blocks = {name: {**(said or {})} for name, said in stack("tf-horovod")["blocks"].items()}
        blocks["tensorflow"] = {"version": a_range(dice, "tensorflow")}
    else:
        # What an application is, a stack has to say: without that it is no stack.
        known = [name for name in (*BLOCKS, *virtuals()) if name != "application"]
        names = dice.sample(known, dice.choice([1, 2, 2, 3]))
        blocks = {name: {} for name in names}
        for name in names:
            if name in virtuals() and dice.random() < 0.4:
                blocks[name]["provider"] = dice.choice(virtuals()[name])
            elif name not in virtuals() and dice.random() < 0.3:
                blocks[name]["version"] = a_range(dice, name)
            elif name not in virtuals() and _options(name) and dice.random() < 0.3:
                option = dice.choice(sorted(_options(name)))
                value = dice.choice(_options(name)[option])
                blocks[name]["options"] = {option: {"true": True, "false": False}.get(value, value)}
    run = {"command": ["it"], "mpi": "mpi" in blocks and dice.random() < 0.8}
    return {"name": "it", "title": "a stack", "blocks": blocks, "run": run}


def made_up_site(dice: random.Random) -> dict[str, Any]:
    """A site with one kind of node, of facts that may not go together anywhere."""
    architecture = dice.choices(["x86_64", "aarch64"], weights=[3, 1])[0]
    kind = dice.choice(["none", "omni-path", "infiniband", "slingshot", "ethernet", "efa"])
    partition: dict[str, Any] = {
        "cpu": {"target": dice.choice(CPUS[architecture]), "cores": 8},
        "memory": {"total_gb": 32},
    }
    vendor = dice.choices(["", "nvidia", "amd", "intel"], weights=[3, 6, 3, 0.5])[0]
    if vendor:
        partition["gpu"] = {"vendor": vendor, "model": "one"}
    if vendor == "nvidia":
        partition["gpu"] |= {"capability": dice.choice(CAPABILITIES)} if dice.random() < 0.8 else {}
        partition["gpu"] |= {"driver": dice.choice(DRIVERS)} if dice.random() < 0.8 else {}
    if vendor == "amd" and dice.random() < 0.8:
        partition["gpu"]["target"] = dice.choice(TARGETS)
    site: dict[str, Any] = {
        "name": "it",
        "title": "a site",
        "system": {"os": "debian", "architecture": architecture},
        "partitions": {"main": partition},
        "default_partition": "main",
        "fabric": {"kind": kind},
        "containers": {"preferred": "docker", "engines": {"docker": {}}},
        "scheduler": {"kind": "none"},
        "network": {"internet": {"login": True, "compute": True}},
    }
    if dice.random() < 0.6:
        flavour = dice.choice(sorted(MPIS))
        abi, versions = MPIS[flavour]
        site["mpi"] = {"flavour": flavour, "version": dice.choice(versions), "abi": abi, "launcher": "mpirun"}
        if dice.random() < 0.6:
            site["mpi"] |= {"root": "/opt/mpi", "libraries": ["/opt/mpi/lib"]}
    if dice.random() < 0.4:
        site["image"] = {"distribution": dice.choice(virtuals()["base"])}
    return site
