"""The GitHub Actions workflow of a fleet.

It never changes with the fleet's members: its first job asks hpcgen which of them changed, and a matrix builds these.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hpcgen.core.model.image_paths import NOTEST
from hpcgen.plugins.fleet.changes import MemberState
from hpcgen.plugins.fleet.pipelines.options import (
    ARM,
    RETRIED,
    SIGNING,
    WORK,
    PipelineOptions,
    build_kind,
    dump,
    heading,
    in_parts,
    part_name,
    setup_variable,
    setups,
)
from hpcgen.plugins.fleet.pipelines.watch import issue, watch, watched
from hpcgen.recipe.formats import FORMATS

ACTIONS = {
    "actions/cache": ("27d5ce7f107fe9357f9df03efb73ab90386fccae", "v5.0.5"),
    "actions/checkout": ("3d3c42e5aac5ba805825da76410c181273ba90b1", "v7.0.1"),
    "actions/download-artifact": ("3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c", "v8.0.1"),
    "actions/setup-python": ("5fda3b95a4ea91299a34e894583c3862153e4b97", "v7.0.0"),
    "actions/upload-artifact": ("bbbca2ddaa5d8feaa63e36b76fdaad77386f024f", "v7.0.0"),
}
"""Commits of the release tags in the actions' own repositories, read there on 2026-11-21."""

RIGHTS = {
    "packages: read": "ghcr.io: the list of builds",
    "packages: write": "ghcr.io: images, and the list of builds",
    "issues: write": "what is to be done",
}
"""What jobs may do beside reading the repository."""

RUNNER = "ubuntu-24.04"
ARM_RUNNER = "ubuntu-24.04-arm"
"""GitHub's own for aarch64, for public repositories.  Source: github.com/heroku/buildpacks-python, pull request 321."""
LOCK = f"{WORK}/fleet.lock"
_LOCK_PART = f'"{WORK}/parts/$HPCGEN_MEMBER.lock"'
CACHE, BLOCKS = "hpcgen-fleet", "hpcgen-blocks"
WEEKLY = "17 4 * * 1"
MATRIX = 256
"""Jobs that GitHub takes in one matrix."""
MOST_PARTS = 16
"""All lists together are outputs of one job, which may have 1 MB: 4,096 members, 110 characters of two bytes each."""


def github_workflow(options: PipelineOptions) -> str:
    """.github/workflows/fleet.yml as text."""
    own = options.registry.partition("/")[0] == "ghcr.io"
    build = _build(options, own)
    builds = {part_name("build", number): {**build, **_of_part(number)} for number in range(options.parts)}
    jobs: dict[str, Any] = {
        "changed": _changed(options, own),
        **builds,
        "collect": _collect(list(builds), options, own),
        **({"watch": _watch(options)} if options.watch else {}),
    }
    shared: dict[str, Any] = {name: build[name] for name in ("permissions", "env", "steps") if name in build}
    data = {
        "name": "fleet",
        "on": {
            "push": {"branches": [options.branch]},
            "pull_request": None,
            "workflow_dispatch": None,
            **({"schedule": [{"cron": WEEKLY}]} if options.watch else {}),
        },
        "permissions": {"contents": "read"},
        "concurrency": {"group": "fleet-${{ github.ref }}", "cancel-in-progress": False},
        "env": {
            **options.variables,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        },
        "jobs": jobs,
    }
    return _with_comments(dump(data, _head(options), shared if options.parts > 1 else None))


def github_matrices(states: Sequence[MemberState], parts: int) -> str:
    """What the first job tells the matrices: for each a line ``NAME=JSON``, its members with their formats."""
    lines = []
    for number, part in enumerate(in_parts(states, parts, MATRIX)):
        members = [{"name": each.member.name, "format": each.format, "machine": build_kind(each)} for each in part]
        lines.append(f"{_output(number)}={json.dumps(members, separators=(',', ':'))}\n")
    return "".join(lines)


def _output(number: int) -> str:
    return part_name("members", number)


def _of_part(number: int) -> dict[str, Any]:
    """What the jobs of one matrix do not share with those of the others."""
    members = f"needs.changed.outputs.{_output(number)}"
    return {
        "if": f"${{{{ {members} != '[]' }}}}",
        "strategy": {"fail-fast": False, "matrix": {"member": f"${{{{ fromJSON({members}) }}}}"}},
    }


def _head(options: PipelineOptions) -> list[str]:
    lines = heading("github", "Repository variables", "a runner")
    if options.registry:
        lines.append("Repository secrets: HPCGEN_REGISTRY_USER and HPCGEN_REGISTRY_PASSWORD log in to the registry.")
    if options.sign:
        lines.append("HPCGEN_SIGNING_KEY is the SSH key, without a passphrase, that signs what is published.")
    return lines


def _with_comments(text: str) -> str:
    """Each action's release beside its commit, where people and update bots look for it; what each right is for."""
    for right, why in RIGHTS.items():
        text = text.replace(f"{right}\n", f"{right} # {why}\n")
    for name, (commit, version) in ACTIONS.items():
        for part in (name, f"{name}/restore", f"{name}/save"):
            text = text.replace(f"uses: {part}@{commit}\n", f"uses: {part}@{commit} # {version}\n")
    return text


def _action(name: str, /, **inputs: Any) -> dict[str, Any]:
    base = "/".join(name.split("/")[:2])
    return {"uses": f"{name}@{ACTIONS[base][0]}", **({"with": inputs} if inputs else {})}


def _start(options: PipelineOptions) -> list[dict[str, Any]]:
    """The repository and hpcgen; no token is left in the checkout."""
    return [
        _action("actions/checkout", **{"persist-credentials": False}),
        _action("actions/setup-python", **{"python-version": "3.12"}),
        {"name": "Install hpcgen", "run": f"{RETRIED}\nretried python {options.install_command}\n"},
    ]


def _changed(options: PipelineOptions, own: bool) -> dict[str, Any]:
    parts = options.parts
    script = f"""\
mkdir -p {WORK}
# A member without a plan is in the list too, and fails in a separate job.
hpcgen ci github --jobs --parts {parts} --fleet "$HPCGEN_FLEET" --lock {LOCK} >> "$GITHUB_OUTPUT"
"""
    names = [_output(number) for number in range(parts)]
    return {
        "name": "What changed",
        **({"if": "${{ github.event_name != 'schedule' }}"} if options.watch else {}),
        "runs-on": RUNNER,
        "timeout-minutes": 30,
        **_rights(own, "read"),
        "outputs": {name: f"${{{{ steps.list.outputs.{name} }}}}" for name in names},
        "steps": [
            *_start(options),
            {
                "name": "Restore the list of last builds",
                **_restore(),
            },
            *_pull(options, own),
            {"name": "List the images to build", "id": "list", "run": script},
        ],
    }


def _cache_key() -> str:
    # A cache is never changed: each run saves its own, and the newest with the prefix is restored.
    return f"{CACHE}-${{{{ github.ref_name }}}}-${{{{ github.run_id }}}}-${{{{ github.run_attempt }}}}"


def _build(options: PipelineOptions, own: bool) -> dict[str, Any]:
    publish = [_publish(own, options.branch, options.publish_command(_LOCK_PART))] if options.registry else []
    if publish and options.sign:
        publish[0]["env"]["HPCGEN_SIGNING_KEY"] = "${{ secrets.HPCGEN_SIGNING_KEY }}"
        publish[0]["run"] = SIGNING + publish[0]["run"]
    job: dict[str, Any] = {
        "name": "${{ matrix.member.name }}",
        "needs": "changed",
        **_of_part(0),
        "runs-on": _runs_on(options),
        "timeout-minutes": options.minutes,
        **_rights(own, "write"),
        "env": {
            "HPCGEN_MEMBER": "${{ matrix.member.name }}",
            "HPCGEN_FORMAT": "${{ matrix.member.format }}",
            "HPCGEN_ACCEPT_LICENCES": "${{ vars.HPCGEN_ACCEPT_LICENCES }}",
            NOTEST: f"${{{{ vars.{NOTEST} }}}}",
        },
        "steps": [*_start(options), _setup(), *_build_steps(options), _reports(), *publish, _part()],
    }
    return job


def _runs_on(options: PipelineOptions) -> Any:
    labels = {form: options.runner(form, [RUNNER]) for form in FORMATS.names()}
    labels[ARM] = options.runner(ARM, [ARM_RUNNER])
    # A quote in an expression's text is doubled. Without spaces YAML needs no quotes around it.
    text = json.dumps(labels, sort_keys=True, separators=(",", ":")).replace("'", "''")
    return f"${{{{ fromJSON('{text}')[matrix.member.machine] }}}}"


def _setup() -> dict[str, Any]:
    cases = "".join(f"  {form}) setup=${setup_variable(form)} ;;\n" for form in FORMATS.names())
    script = f"""\
setup=
case "$HPCGEN_FORMAT" in
{cases}esac
{RETRIED}
if [ -n "$setup" ]; then
  retried bash -euo pipefail -c "$setup"
fi
if [ "$RUNNER_ENVIRONMENT" = github-hosted ]; then
  # 14 GB is all that GitHub promises: what no build uses makes room for images and their layers.
  sudo rm -rf /usr/local/lib/android /usr/share/dotnet /opt/ghc /opt/hostedtoolcache/CodeQL
fi
df -h .
"""
    quoted = {name: command.replace("'", "''") for name, command in setups(RUNNER).items()}
    variables = {name: f"${{{{ vars.{name} || '{command}' }}}}" for name, command in quoted.items()}
    return {"name": "Make the runner ready", "env": variables, "run": script}


def _build_steps(options: PipelineOptions) -> list[dict[str, Any]]:
    """The build; what blocks compiled is brought to it and kept of it, where only the service's cache can do so."""
    script = f"mkdir -p {WORK}/parts {WORK}/reports\n{options.build_command(_LOCK_PART)}\n"
    build = {"name": "Build and test", "run": script}
    if not options.kept_store:
        return [build]
    member = f"{BLOCKS}-${{{{ matrix.member.name }}}}-"
    key = f"{member}${{{{ github.run_id }}}}-${{{{ github.run_attempt }}}}"
    older = {"restore-keys": f"{member}\n{BLOCKS}-\n"}
    restore = _action("actions/cache/restore", path=options.kept_store, key=key, **older)
    save = _action("actions/cache/save", path=options.kept_store, key=key)
    # What was compiled before the build failed need not be compiled again.
    return [restore, build, {"if": "${{ !cancelled() }}", **save}]


def _reports() -> dict[str, Any]:
    return {
        "name": "Keep the test report",
        "if": "${{ !cancelled() }}",
        **_action(
            "actions/upload-artifact",
            name="tests-${{ matrix.member.name }}",
            path=f"{WORK}/reports/",
            **{"if-no-files-found": "ignore", "include-hidden-files": True},
        ),
    }


def _publish(own: bool, branch: str, command: str, name: str = "Publish") -> dict[str, Any]:
    """For pushes to the branch, and runs that somebody starts on it; not for those on another one."""
    here = f"refs/heads/{branch}".replace("'", "''")
    return {
        "name": name,
        "if": f"${{{{ github.event_name != 'pull_request' && github.ref == '{here}' }}}}",
        "env": _login(own),
        "run": f"{RETRIED}\nretried {command}\n",
    }


def _login(own: bool) -> dict[str, str]:
    if own:
        return {
            "HPCGEN_REGISTRY_USER": "${{ github.actor }}",
            "HPCGEN_REGISTRY_PASSWORD": "${{ secrets.GITHUB_TOKEN }}",
        }
    return {
        "HPCGEN_REGISTRY_USER": "${{ secrets.HPCGEN_REGISTRY_USER }}",
        "HPCGEN_REGISTRY_PASSWORD": "${{ secrets.HPCGEN_REGISTRY_PASSWORD }}",
    }


def _rights(own: bool, packages: str) -> dict[str, Any]:
    """What a job may do beside reading the repository, where GitHub's own registry has the images."""
    return {"permissions": {"contents": "read", "packages": packages}} if own else {}


def _pull(options: PipelineOptions, own: bool) -> list[dict[str, Any]]:
    """The registry's list of builds: a cache may be gone. A pull request may not be allowed to read it."""
    step = {
        "name": "Read the registry's list of builds",
        "continue-on-error": "${{ github.event_name == 'pull_request' }}",
        "env": _login(own),
        "run": f'mkdir -p {WORK}\n{RETRIED}\nretried hpcgen fleet pull-lock --fleet "$HPCGEN_FLEET" --lock {LOCK}\n',
    }
    return [step] if options.registry else []


def _part() -> dict[str, Any]:
    return {
        "name": "Hand over the builds",
        **_action(
            "actions/upload-artifact",
            name="lock-${{ matrix.member.name }}",
            path=f"{WORK}/parts/*.lock",
            **{"retention-days": 7, "include-hidden-files": True},
        ),
    }


def _collect(builds: Sequence[str], options: PipelineOptions, own: bool) -> dict[str, Any]:
    script = f"""\
shopt -s nullglob
hpcgen fleet merge --fleet "$HPCGEN_FLEET" --lock {LOCK} {WORK}/parts/*.lock
"""
    command = f'hpcgen fleet push-lock --fleet "$HPCGEN_FLEET" --lock {LOCK}'
    push = [_publish(own, options.branch, command, "Note them in the registry")] if options.registry else []
    return {
        "name": "Note the builds",
        "needs": ["changed", *builds],
        "if": "${{ !cancelled() && needs.build.result != 'skipped' }}",
        "runs-on": RUNNER,
        "timeout-minutes": 30,
        **_rights(own, "write"),
        "steps": [
            *_start(options),
            _restore(),
            *_pull(options, own),
            _action(
                "actions/download-artifact",
                pattern="lock-*",
                path=f"{WORK}/parts",
                **{"merge-multiple": True},
            ),
            {"name": "Merge", "shell": "bash", "run": script},
            *push,
            _action("actions/cache/save", path=LOCK, key=_cache_key()),
        ],
    }


def _watch(options: PipelineOptions) -> dict[str, Any]:
    return {
        "name": "What is to be done",
        "if": "${{ github.event_name == 'schedule' }}",
        "runs-on": RUNNER,
        "timeout-minutes": 60,
        "permissions": {"contents": "read", "issues": "write"},
        "env": {**watched(options), "GH_REPO": "${{ github.repository }}"},
        "steps": [
            *_start(options),
            {"name": "Ask", "shell": "bash", "run": f"{RETRIED}\n{watch()}"},
            {"name": "Open an issue", "env": {"GH_TOKEN": "${{ github.token }}"}, "run": issue("github")},
        ],
    }


def _restore() -> dict[str, Any]:
    """The newest lock of this branch, or of the default branch."""
    branches = ("github.ref_name", "github.event.repository.default_branch")
    keys = "".join(f"{CACHE}-${{{{ {branch} }}}}-\n" for branch in branches)
    return _action("actions/cache/restore", path=LOCK, key=_cache_key(), **{"restore-keys": keys})
