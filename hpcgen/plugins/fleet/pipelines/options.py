"""What a pipeline depends on beside the fleet, and how its YAML is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hpcgen._version import __version__
from hpcgen.core.errors import InputError, Problem
from hpcgen.core.model.image_paths import NOTEST
from hpcgen.core.support.extras import requirements_of
from hpcgen.core.support.quoting import command, plain
from hpcgen.plugins.fleet.changes import MemberState
from hpcgen.plugins.fleet.pipelines.requirement import OPEN
from hpcgen.recipe.formats import FORMATS

ARM = "aarch64"
WORK = ".hpcgen"
"""Where a pipeline keeps its lock, the locks of single builds, and test reports."""


RETRIED = 'retried() { "$@" || { sleep 20; "$@"; } || { sleep 60; "$@"; }; }'
"""A function of the shell: what needs the network gets two more tries."""

SIGNING = """\
: "${HPCGEN_SIGNING_KEY:?the SSH key that signs, a secret of the pipeline, is not set}"
key=$(mktemp)
trap 'rm -f "$key"' EXIT
# GitLab's variables of the type file are paths.
if [ -f "$HPCGEN_SIGNING_KEY" ]; then cat "$HPCGEN_SIGNING_KEY"; else printf '%s\\n' "$HPCGEN_SIGNING_KEY"; fi > "$key"
"""
"""Writes the key to a file that only its owner can read, and that goes with the shell."""


class PipelineOptions(msgspec.Struct, frozen=True):
    """``fleet`` is the file from the repository's top; ``registry`` is empty where nothing is published.

    ``runners`` and ``images`` by recipe format, under ``""`` for all others: labels or tags of the machine
    that builds, and (GitLab) the container image that a job runs in. Those for images of aarch64 stand under
    that alone, since no other machine builds them.
    ``requirement`` is what pip installs. ``collections``: those that the fleet names, as in ``PATH``; their Python
    runs in the jobs. ``parts``: matrices (GitHub) or child pipelines (GitLab) that the jobs are spread over.
    ``minutes``: how long one image may take. ``store``: where compiled blocks are kept, as ``build --cache`` takes it.
    ``watch``: a scheduled job reports what is to be done. ``advisories``: those that keep images back, from the
    repository's top, from the severity ``fail_on`` on; "" for no such gate. ``sign``: what is published is signed by a
    secret of the pipeline.
    """

    fleet: str
    registry: str = ""
    runners: dict[str, list[str]] = {}
    images: dict[str, str] = {}
    requirement: str = OPEN
    branch: str = "main"
    collections: str = ""
    parts: int = 1
    minutes: int = 350
    store: str = ""
    watch: bool = False
    advisories: str = ""
    fail_on: str = "low"
    sign: bool = False

    def runner(self, form: str, default: Sequence[str]) -> list[str]:
        """Labels of the machine that builds a format."""
        own = self.runners.get(form)
        return own or list(default) if form == ARM else own or self.runners.get("") or list(default)

    @property
    def variables(self) -> dict[str, str]:
        """What all jobs are told: whoever lets the pipeline run trusts the collections that lie beside it."""
        told = {"HPCGEN_FLEET": self.fleet, "HPCGEN_REQUIREMENT": self.requirement}
        told |= {"HPCGEN_TRUST_COLLECTIONS": "1"} if self.collections else {}
        told |= {"HPCGEN_ADVISORIES": self.advisories} if self.advisories else {}
        return told | ({"HPCGEN_STORE": self.store} if self.store else {})

    def build_command(self, lock: str) -> str:
        """Builds one member, and tests it as far as a machine that is not its site's can."""
        store = ' --cache "$HPCGEN_STORE"' if self.store else ""
        return (
            f'hpcgen build --fleet "$HPCGEN_FLEET" --member "$HPCGEN_MEMBER" --lock {lock}{store} '
            f"--reports {WORK}/reports --skip-site-tests"
            + (f' --advisories "$HPCGEN_ADVISORIES" --fail-on {self.fail_on}' if self.advisories else "")
        )

    @property
    def install_command(self) -> str:
        """pip's options that install hpcgen, and what rates advisories where they are asked for."""
        rating = (requirements_of("advisories") or ["cvss"]) if self.advisories else []
        return " ".join(["-m pip install -q", '"$HPCGEN_REQUIREMENT"', *map(command, rating)])

    def publish_command(self, lock: str) -> str:
        """Publishes a member that was built; with a signature after :data:`SIGNING`, in the same shell."""
        sign = ' --sign "$key"' if self.sign else ""
        return f'hpcgen fleet publish --fleet "$HPCGEN_FLEET" --lock {lock}{sign} "$HPCGEN_MEMBER"'

    @property
    def kept_store(self) -> str:
        """The store's folder, where the service's cache has to bring it from one job to the next.

        Other places outlive a job: a folder of the machine, by its whole path, or a registry.
        """
        return "" if self.store.startswith("/") or "://" in self.store else self.store

    def image(self, form: str, default: str) -> str:
        """The container image that a format is built in."""
        return self.images.get(form) or self.images.get("") or default


def build_kind(state: MemberState) -> str:
    """What decides on the machine that builds a member: its format, or that it is for another processor."""
    plan = state.plan
    return ARM if plan is not None and plan.site.system.architecture == ARM else state.format or "docker"


def part_name(name: str, number: int) -> str:
    """What belongs to the part of that number, from 0: the first keeps the name."""
    return f"{name}-{number + 1}" if number else name


def in_parts(states: Sequence[MemberState], parts: int, most: int) -> list[list[MemberState]]:
    """What is to be built, spread over so many parts of at most so many members; the last ones may be empty.

    What does not fit is still to be built when the pipeline runs again.
    """
    todo = [each for each in states if each.to_build]
    return [todo[number * most : (number + 1) * most] for number in range(parts)]


def by_format(given: Sequence[str], option: str) -> dict[str, str]:
    """``FORMAT=VALUE``, ``aarch64=VALUE`` or ``VALUE`` for all others; InputError for another format."""
    result: dict[str, str] = {}
    for text in given:
        form, equals, value = text.partition("=")
        if not equals:
            form, value = "", text
        if (form and form != ARM and form not in FORMATS) or not value:
            known = "|".join([*FORMATS.names(), ARM])
            raise InputError(Problem(f"{text!r} does not name a format", option, f"{known}=VALUE, or VALUE"))
        result[form] = plain(value, option)
    return result


def setup_variable(form: str) -> str:
    """The variable whose command line prepares a machine to build a format."""
    return f"HPCGEN_SETUP_{re.sub('[.-]', '_', form.upper())}"


def setups(machine: str) -> dict[str, str]:
    """For each format the variable, and what makes a machine of a CI service ready to build it."""
    return {setup_variable(form): FORMATS.find(form).setup.get(machine, "") for form in FORMATS.names()}


def heading(service: str, variables: str, machine: str) -> list[str]:
    """What stands on top of a pipeline; what a service calls its variables, and where a job runs."""
    *names, last = map(setup_variable, FORMATS.names())
    return [
        f"Written by hpcgen {__version__}: hpcgen ci {service}",
        "Builds, tests and publishes the changed images of a fleet. It asks hpcgen which these are, so it",
        "need not be written again when the fleet changes.",
        "",
        f"{variables}: {', '.join(names)} and {last} are command",
        f"lines that make {machine} ready to build that format. HPCGEN_ACCEPT_LICENCES names the",
        f"licences that are accepted, separated by commas; {NOTEST}=1 leaves out the self-tests at the end of builds.",
    ]


def dump(data: dict[str, Any], head: Sequence[str], shared: Mapping[str, Any] | None = None) -> str:
    """A pipeline as YAML: keys in their order, scripts of several lines as blocks, ``head`` as comments.

    ``shared``: what is written once, under an anchor of that name, however often it occurs.
    """
    import yaml

    anchors = {id(value): name for name, value in (shared or {}).items()}
    named: dict[int, str] = {}

    class PipelineDumper(yaml.SafeDumper):
        """Lists are indented below their key, as pipelines are written by hand."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

        def represent_data(self, value: Any) -> yaml.Node:
            node: yaml.Node = super().represent_data(value)
            if (name := anchors.get(id(value))) is not None:
                named[id(node)] = name
            return node

        def generate_anchor(self, node: yaml.Node) -> str:
            return named[id(node)]

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    PipelineDumper.add_representer(str, text)
    # Without other aliases: readers differ in what they take.
    PipelineDumper.ignore_aliases = lambda self, data: id(data) not in anchors  # type: ignore[method-assign]
    body: str = yaml.dump(data, Dumper=PipelineDumper, sort_keys=False, allow_unicode=True, width=4096)
    return "".join(f"# {plain(line)}\n" if line else "#\n" for line in head) + body
