"""Cases by number: a subject, one of its texts, a payload in it, and all the files that come of it.

A number always gives the same case, so the number of one that fails is all that is needed to look at it:
``python -m tests.attack.cases 12345``.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hpcgen import api
from hpcgen.backends import schedulers as batch_systems
from hpcgen.core.errors import HpcgenError
from hpcgen.core.support.writing import yaml_text
from hpcgen.kit.kit import make_kit
from hpcgen.kit.lockfile.lock import SEAL, for_build, parse_lock
from hpcgen.plugins.fleet.changes import member_states
from hpcgen.plugins.fleet.file import load_fleet
from hpcgen.plugins.fleet.pipelines.github import github_matrices, github_workflow
from hpcgen.plugins.fleet.pipelines.gitlab import gitlab_jobs, gitlab_pipeline
from hpcgen.plugins.fleet.pipelines.options import PipelineOptions
from hpcgen.supply.pin.wanted import check_lock
from tests.attack import payloads
from tests.attack.subjects import CATALOG, ENGINES, FLEET, JOB, KEY, PROFILE, SCHEDULERS, STACK, at, replaced, texts
from tests.helpers import locks

Files = dict[str, str]


class Case(NamedTuple):
    """Which text of which subject says what."""

    number: int
    subject: str
    path: tuple[str | int, ...]
    text: str

    def __str__(self) -> str:
        where = ".".join(map(str, self.path))
        return f"case {self.number}: {self.subject} {where} = {ascii(self.text)[:200]}"


@cache
def lock_data() -> dict[str, Any]:
    """What a lock says, as plain data without its seal."""
    from hpcgen.core.config.written_yaml import read_written

    data: dict[str, Any] = read_written(locks.lock("mpi-hello").text, "lock")
    return {key: value for key, value in data.items() if key != "seal"}


@cache
def places() -> list[tuple[str, tuple[str | int, ...]]]:
    """Every text of every subject."""
    subjects = {"profile": PROFILE, "stack": STACK, "job": JOB, "fleet": FLEET, "lock": lock_data()}
    found = [(name, path) for name, data in subjects.items() for path in texts(data)]
    # Of what a lock repeats for each package, the first is enough.
    seen = set()
    kept = []
    for name, path in found:
        loose = name == "lock"
        alike = (name, *("*" if loose and (n > 3 or type(step) is int) else step for n, step in enumerate(path)))
        if alike not in seen:
            seen.add(alike)
            kept.append((name, path))
    return kept


def total() -> int:
    return len(places()) * payloads.COUNT


def case(number: int) -> Case:
    """The case of a number below ``total()``; neighbours differ in their place, so every sample has all of them."""
    variant, place = divmod(number, len(places()))
    subject, path = places()[place]
    data = {"profile": PROFILE, "stack": STACK, "job": JOB, "fleet": FLEET, "lock": lock_data()}[subject]
    return Case(number, subject, path, payloads.variant(at(data, path), variant))


def files_of(one: Case, turn: int = 0) -> Files:
    """What is written for it, by name; another ``turn`` is another scheduler and engine.

    Raises
    ------
    HpcgenError: the text is refused.
    """
    if one.subject == "fleet":
        return _of_fleet(one)
    return _of_lock(one) if one.subject == "lock" else _of_plan(one, random.Random(f"{one.number} {turn}"))


def _of_plan(one: Case, chance: random.Random) -> Files:
    profile, stack, job = PROFILE, STACK, dict(JOB)
    if one.subject == "profile":
        profile = replaced(profile, one.path, one.text)
    elif one.subject == "stack":
        stack = replaced(stack, one.path, one.text)
    elif not str(one.path[-1]).startswith(KEY):
        job = replaced(job, one.path, one.text)
    for name, field, choices in (("scheduler", "kind", SCHEDULERS), ("containers", "preferred", tuple(ENGINES))):
        if one.path[:2] != (name, field) and name in profile:
            profile = {**profile, name: {**profile[name], field: chance.choice(choices)}}
    batch = profile.get("scheduler", {})
    if batch.get("kind") in SCHEDULERS:
        # What a batch system has no form for is refused, and nothing else would be tried with it.
        of = batch_systems.SCHEDULERS.find(batch["kind"])
        lacking = {"resources"} if not of.resource_form else set()
        lacking |= {"memory_request"} if batch["kind"] != "gridengine" else set()
        lacking -= {str(one.path[1])} if one.path[:1] == ("scheduler",) and len(one.path) > 1 else set()
        profile = {**profile, "scheduler": {key: value for key, value in batch.items() if key not in lacking}}
    if batch.get("kind") == "none" and one.path[0] not in ("queue", "account"):
        job = {key: value for key, value in job.items() if key not in ("queue", "account")}
    if one.path[:2] == ("run", "steps"):
        # Where a command is asked for, steps are not started.
        del job["command"]
    if chance.randrange(3) == 0 and one.path[:1] not in (("mpi",), ("sources",)):
        sources = {path: source for path, source in profile.get("sources", {}).items() if not path.startswith("mpi")}
        profile = {**profile, "mpi": None, "sources": sources}
    site = api.load_site(profile, catalog=CATALOG)
    plan = api.plan(site, api.load_stack(stack, catalog=CATALOG), catalog=CATALOG, allow_unsupported=True, **job)
    return {name: file.text for name, file in api.render(plan, catalog=CATALOG).files.items()}


def _of_fleet(one: Case) -> Files:
    data = replaced(FLEET, one.path, one.text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.yaml"
        try:
            path.write_text(yaml.safe_dump(data, allow_unicode=True), "utf-8")
        except UnicodeEncodeError:
            return {}
        loaded = load_fleet(path)
        states = member_states(loaded, {})
        options = PipelineOptions(fleet="fleet.yaml", registry=loaded.fleet.registry or "")
        jobs = gitlab_jobs(states, options)
        return {
            "github.yml": github_workflow(options),
            "gitlab.yml": gitlab_pipeline(options),
            "matrix.json": github_matrices(states, 1),
            **{f"child-{number}.yml": each for number, each in enumerate(jobs)},
        }


def _of_lock(one: Case) -> Files:
    try:
        body = "# x\n" + yaml_text(replaced(lock_data(), one.path, one.text))
        seal = hashlib.sha256(body.encode()).hexdigest()
    except UnicodeEncodeError:
        return {}
    lock = parse_lock(f"{body}{SEAL}{seal}\n", "hpcgen.lock")
    check_lock(lock, CATALOG)
    return {name: file.text for name, file in make_kit(for_build(lock, bundled=False), CATALOG, lock).files.items()}


def main() -> None:
    """Show a case and what becomes of it."""
    one = case(int(sys.argv[1]))
    print(one)
    try:
        print(json.dumps(files_of(one), indent=1)[:20_000])
    except HpcgenError as error:
        print(error)


if __name__ == "__main__":
    main()
