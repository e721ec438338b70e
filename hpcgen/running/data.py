"""Data that is asked for at a start: of the config file, the stack and the options, looked for on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from hpcgen.core.config.user_config import configured
from hpcgen.core.errors import InputError, Problems
from hpcgen.core.model.host_data import NamedData, parse_data
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.stack import Staging
from hpcgen.core.support.quoting import with_values
from hpcgen.launch.data import check_data, hub_named, models_named
from hpcgen.recipe.bind_targets import data_targets


class DataRequest(msgspec.Struct, frozen=True):
    """The data that somebody asks for when an image is started.

    ``given``: of options, whose paths are from the present folder. ``stack_folder``: the one that paths of the stack
    are from, the present one if it is in no file. ``checked``: whether it has to be on this machine. ``stage``:
    as ``run.stage`` of a stack, which it wins over.
    """

    given: tuple[str, ...] = ()
    stack_folder: Path = Path()
    checked: bool = True
    stage: Staging | None = None

    def named(self, plan: Plan, own_stack: bool) -> dict[str, NamedData]:
        """All data by its place in the image; of two for one place the later counts: those of the config file, of the
        stack where its word counts on the host, of the options. InputError for one that cannot be read.
        """
        site, found = plan.site.name, dict[str, NamedData]()
        ways = [
            (configured("binds", {}).get(site, []), f"binds.{site} of your config file", "/"),
            (plan.stack.run.binds if own_stack else [], "run.binds", str(self.stack_folder.absolute())),
            (self.given, "--bind", str(Path.cwd())),
        ]
        for texts, where, base in ways:
            each = [parse_data(text, where, base) for text in texts]
            found |= {data.target or data.source: data for data in each}
        return found


def with_data(plan: Plan, asked: DataRequest | None, recorded: Plan | None = None, own_stack: bool = True) -> Plan:
    """The plan with all data that its job sees in ``run.binds``, every relative path made absolute, and its models.

    asked: None for a start that sees no data.
    recorded: the plan that the image was built from, which says what folders it has; the plan itself if None.
    own_stack: the stack is the user's, whose word counts on the host.
    InputError: one cannot be read, would hide what the image needs, or is not on this machine.
    """
    found: dict[str, NamedData] = {}
    if asked is not None:
        found = asked.named(plan, own_stack)
        check_data(plan, [*found.values()], data_targets(recorded or plan))
        if asked.checked:
            _check_here(found.values(), os.environ)
    stage = (asked.stage if asked is not None else None) or plan.stack.run.stage
    # What is bound onto the place of a model is taken in its stead.
    models = [each for each in plan.stack.run.models if asked is not None and own_stack and each.to not in found]
    hub = hub_named(models)
    cache = [hub] if hub is not None and hub.target not in found else []
    check_data(plan, [*models_named(models, plan), *cache], data_targets(recorded or plan))
    run = replace(plan.stack.run, binds=[data.text for data in found.values()], models=models, stage=stage)
    return replace(plan, stack=replace(plan.stack, run=run))


def _check_here(data: Iterable[NamedData], environment: Mapping[str, str]) -> None:
    """InputError for what is not on this machine; what a variable names that has no value here may be elsewhere."""
    problems = Problems()
    for each in data:
        values = {name: environment.get(name, "") for name in each.variables}
        if not all(values.values()):
            continue
        path = with_values(each.source, values)
        if not Path(path).exists():
            problems.add(
                f"{each.text}: there is no {path} on this machine",
                each.where,
                remedy="correct the path, or add --no-bind-check if only the nodes of the job have it",
            )
    problems.raise_as(InputError)
