"""Which facts of a profile an image has to be built again for: what changes the plan hash that its label has."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hpcgen import api
from hpcgen.machine.resting import dependent, needs_build
from hpcgen.recipe.assemble import assemble
from tests.helpers.locks import CATALOG

NODE = "partitions.gpu"
JOBS_ONLY: dict[str, Any] = {
    "operator": "somebody",
    "scheduler.account": "none",
    "scheduler.default_time": "02:00:00",
    "layouts": [],
    "environment.FOO": "1",
    "unset_environment": ["BAR"],
    "system.kernel": "9.9",
    "system.user_namespaces": False,
    f"{NODE}.nodes": 5000,
    f"{NODE}.memory.total_gb": 5000,
    f"{NODE}.queues": [{"name": "other"}],
    f"{NODE}.directives": ["--x=y"],
    f"{NODE}.environment.FOO": "2",
    f"{NODE}.cpu.model": "other",
    f"{NODE}.cpu.sockets": 1,
    f"{NODE}.cpu.threads_per_core": 4,
    f"{NODE}.gpu.memory_gb": 5,
    f"{NODE}.performance.nccl_bus_bandwidth.value": 5,
    "containers.image_directory": "/other",
    "containers.build_on": ["login"],
    "containers.unprivileged_build": True,
    "containers.engines.singularity.modules": ["other"],
}
IMAGE: dict[str, Any] = {
    "image.distribution": "debian",
    f"{NODE}.cpu.target": "haswell",
    "mpi.version": "7",
    "system.glibc": "2.17",
}


def changed(path: str, value: Any) -> dict[str, Any]:
    data = {
        key: each for key, each in CATALOG.site_document("lumi-g").data.items() if key not in ("sources", "extends")
    }
    *above, last = path.split(".") if path else [""]
    holder = data = copy.deepcopy(data)
    for step in above:
        holder = holder.setdefault(step, {})
    if path:
        holder[last] = value
    return data


def planned(path: str = "", value: Any = None) -> Any:
    site = api.load_site(changed(path, value), catalog=CATALOG)
    return api.plan(site, CATALOG.stack("mpi-hello"), catalog=CATALOG, allow_unsupported=True, account="a")


def content(plan: Any) -> str:
    return assemble(plan, CATALOG).labels["io.hpcgen.content"]


@pytest.mark.parametrize("path", JOBS_ONLY)
def test_what_jobs_alone_rest_on_leaves_the_image_as_it_is(path: str) -> None:
    assert not needs_build(dependent("kit", planned(), CATALOG), path)
    assert content(planned(path, JOBS_ONLY[path])) == content(planned())


@pytest.mark.parametrize("path", IMAGE)
def test_what_the_build_rests_on_counts(path: str) -> None:
    assert needs_build(dependent("kit", planned(), CATALOG), path)


def test_the_plan_hash_sees_what_the_build_rests_on() -> None:
    assert content(planned("image.distribution", IMAGE["image.distribution"])) != content(planned())
