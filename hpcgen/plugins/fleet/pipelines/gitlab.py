"""GitLab's pipeline of a fleet: a first job asks hpcgen what changed and writes a child pipeline with one job for each.

Keywords as in GitLab's CI/CD YAML reference: dynamic child pipelines (trigger:include:artifact), cache:fallback_keys
(16.0), artifacts:reports:junit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hpcgen._version import __version__
from hpcgen.core.support.quoting import sh
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
from hpcgen.recipe.formats import format_for

IMAGE = "debian:12"
CHILD = 1000
"""Jobs of a child pipeline. GitLab takes 2 MB of YAML, counted as objects in memory: an estimated 0.7 kB a job."""
LOCK = f"{WORK}/fleet.lock"
NO_ARM = "This image is for aarch64, and no runner is named for that: hpcgen ci gitlab --runner aarch64=TAG"
"""Tags alone tell GitLab's runners apart: which one has such a processor, only the project knows."""
RETRY = {"max": 2, "when": ["runner_system_failure", "api_failure", "scheduler_failure"]}
"""What is not the script's fault; a build that failed would only fail again, hours later."""
_LOCK_PART = f'"{WORK}/parts/$HPCGEN_MEMBER.lock"'
_ON_BRANCH = '[ "$CI_COMMIT_BRANCH" = "$CI_DEFAULT_BRANCH" ]'


def gitlab_pipeline(options: PipelineOptions) -> str:
    """.gitlab-ci.yml as text: lists what changed, writes the child pipeline and starts it."""
    files = [f"{WORK}/{part_name('jobs', number)}.yml" for number in range(options.parts)]
    needed = ["skopeo"] if options.registry else []
    data = {
        "stages": ["changed", "images"],
        "variables": _variables(options),
        "changed": {
            "stage": "changed",
            **_unscheduled(options),
            **_machine(options, ""),
            "cache": _cache("pull"),
            "script": [
                *_prepare(options, *needed),
                *_pull(options),
                f"hpcgen ci gitlab --jobs {_again(options)} -o {files[0]}",
            ],
            "artifacts": {"paths": files, "expire_in": "1 week"},
        },
    }
    for number, file in enumerate(files):
        include = [{"artifact": file, "job": "changed"}]
        data[part_name("images", number)] = {
            "stage": "images",
            **_unscheduled(options),
            "trigger": {"include": include, "strategy": "depend"},
        }
    if options.watch:
        data["watch"] = {
            "stage": "changed",
            "rules": [{"if": _SCHEDULED}],
            **_machine(options, "", minutes=60),
            "variables": watched(options),
            "script": [*_prepare(options, "curl"), watch(), issue("gitlab")],
            "artifacts": {"when": "always", "paths": [f"{WORK}/*.md"], "expire_in": "4 weeks"},
        }
    return dump(data, _head(options))


def gitlab_jobs(states: Sequence[MemberState], options: PipelineOptions) -> list[str]:
    """The child pipelines: a job for each member that is to be built, and in each child one that notes what was."""
    return [_child(todo, options) for todo in in_parts(states, options.parts, CHILD)]


def _child(todo: Sequence[MemberState], options: PipelineOptions) -> str:
    head = [f"Written by hpcgen {__version__}: hpcgen ci gitlab --jobs"]
    if not todo:
        empty = {"nothing changed": {"script": ["echo 'every image of the fleet is as its plan says'"]}}
        return dump(empty, head)
    data: dict[str, Any] = {"stages": ["build", "collect"], "variables": _variables(options)}
    machines = {each.member.name: (each.format or "docker", build_kind(each)) for each in todo}
    data |= {_template(*each): _build(*each, options) for each in sorted(set(machines.values()))}
    data |= {
        f"build {name}": {"extends": _template(*each), "variables": {"HPCGEN_MEMBER": name}}
        for name, each in machines.items()
    }
    data["collect"] = _collect(options)
    return dump(data, head)


_SCHEDULED = '$CI_PIPELINE_SOURCE == "schedule"'


def _unscheduled(options: PipelineOptions) -> dict[str, Any]:
    return {"rules": [{"if": _SCHEDULED, "when": "never"}, {"when": "on_success"}]} if options.watch else {}


def _template(form: str, machine: str) -> str:
    """What the jobs share that build one format on one kind of machine."""
    return f".{form}" if machine == form else f".{form}-{machine}"


def _head(options: PipelineOptions) -> list[str]:
    lines = heading("gitlab", "CI/CD variables", "a job's machine")
    if options.registry:
        lines += [
            "HPCGEN_REGISTRY_USER and HPCGEN_REGISTRY_PASSWORD (masked) log in to the registry; for the project's own",
            "registry GitLab's are taken.",
        ]
    if options.sign:
        lines.append("HPCGEN_SIGNING_KEY (type file, protected) is the SSH key, without a passphrase, that signs.")
    if options.watch:
        lines.append(
            "HPCGEN_ISSUE_TOKEN (masked), a project access token with the scope api, opens issues for schedules."
        )
    return lines


def _variables(options: PipelineOptions) -> dict[str, str]:
    return {**options.variables, **setups(IMAGE)}


def _machine(options: PipelineOptions, form: str, machine: str = "", minutes: int = 30) -> dict[str, Any]:
    """Which runner takes a job, the container that it runs in, how long and how often."""
    tags = options.runner(machine or form, [])
    limits = {"timeout": f"{minutes} minutes", "retry": RETRY}
    return {"image": options.image(form, IMAGE), **({"tags": tags} if tags else {}), **limits}


def _prepare(options: PipelineOptions, *programs: str) -> list[str]:
    """hpcgen in an environment of its own; Python and other programs are there, or come from Debian."""
    # pip fetches a repository by git.
    named = [*programs, *(["git"] if "git+" in options.requirement else [])]
    missing = "".join(f" || ! command -v {each} > /dev/null" for each in named)
    packages = " ".join(["python3-venv", "ca-certificates", *named])
    return [
        RETRIED,
        f"if ! python3 -c 'import ensurepip' 2> /dev/null{missing}; then retried apt-get -q update; "
        f"retried apt-get -qy --no-install-recommends install {packages}; fi",
        f"mkdir -p {WORK}/parts {WORK}/reports",
        f"python3 -m venv {WORK}/venv",
        f"retried {WORK}/venv/bin/python {options.install_command}",
        f'export PATH="$PWD/{WORK}/venv/bin:$PATH"',
    ]


def _pull(options: PipelineOptions) -> list[str]:
    """The registry's list of builds: a cache may be gone."""
    read = f'retried hpcgen fleet pull-lock --fleet "$HPCGEN_FLEET" --lock {LOCK}'
    # Another branch may not be allowed to read it.
    return [f"{read} || ! {_ON_BRANCH}"] if options.registry else []


def _again(options: PipelineOptions) -> str:
    """The options of this very pipeline, for the job that writes the child."""
    words = ["--parts", str(options.parts)] if options.parts > 1 else []
    words += ["--minutes", str(options.minutes)]
    words += ["--cache", '"$HPCGEN_STORE"'] if options.store else []
    words += ["--advisories", '"$HPCGEN_ADVISORIES"', "--fail-on", options.fail_on] if options.advisories else []
    words += ["--sign"] if options.sign else []
    words += ["--fleet", '"$HPCGEN_FLEET"', "--hpcgen", '"$HPCGEN_REQUIREMENT"', "--lock", LOCK]
    given = {"--runner": {form: ",".join(tags) for form, tags in options.runners.items()}, "--image": options.images}
    for option, values in given.items():
        for form, value in sorted(values.items()):
            words += [option, sh(f"{form}={value}" if form else value)]
    return " ".join(words)


def _cache(policy: str) -> dict[str, Any]:
    return {
        "key": "hpcgen-fleet-$CI_COMMIT_REF_SLUG",
        "fallback_keys": ["hpcgen-fleet-$CI_DEFAULT_BRANCH"],
        "paths": [LOCK],
        "policy": policy,
    }


def _build(form: str, machine: str, options: PipelineOptions) -> dict[str, Any]:
    """What all jobs share that build one format on one kind of machine."""
    if machine == ARM and not options.runner(ARM, []):
        return {"stage": "build", "script": [f"echo {sh(NO_ARM)} >&2", "exit 1"]}
    unprivileged = format_for(form).unprivileged
    setup = setup_variable(form)
    # Artifacts are kept of a job that failed, too: of its report, not of a build that was not published.
    built = f"{WORK}/built.lock"
    script = [
        *_prepare(options),
        f'if [ -n "${setup}" ]; then retried bash -euo pipefail -c "${setup}"; fi',
        "df -h .",
        options.build_command(built),
    ]
    if options.registry:
        publish = f"retried {options.publish_command(built)}"
        if options.sign:
            keygen = "retried apt-get -q update; retried apt-get -qy --no-install-recommends install openssh-client"
            script.append(f"if {_ON_BRANCH} && ! command -v ssh-keygen > /dev/null; then {keygen}; fi")
            publish = f"(\n{SIGNING}{publish}\n)"
        script.append(f"if {_ON_BRANCH}; then {publish}; fi")
    script.append(f"if [ -f {built} ]; then mv {built} {_LOCK_PART}; fi")
    blocks = {"key": "hpcgen-blocks-$HPCGEN_MEMBER", "paths": [options.kept_store], "when": "always"}
    return {
        "stage": "build",
        **_machine(options, form, machine, options.minutes),
        **({"cache": blocks} if options.kept_store else {}),
        **({"variables": dict(unprivileged)} if unprivileged else {}),
        "script": script,
        "artifacts": {
            "when": "always",
            "paths": [f"{WORK}/parts/*.lock"],
            "reports": {"junit": f"{WORK}/reports/*.xml"},
            "expire_in": "1 week",
        },
    }


def _collect(options: PipelineOptions) -> dict[str, Any]:
    needed = ["skopeo"] if options.registry else []
    command = f'retried hpcgen fleet push-lock --fleet "$HPCGEN_FLEET" --lock {LOCK}'
    push = [f"if {_ON_BRANCH}; then {command}; fi"] if options.registry else []
    return {
        "stage": "collect",
        # What was built is noted even if another member failed.
        "when": "always",
        # Children and pipelines take turns: the cache, and the registry's list, are what the last one wrote.
        "resource_group": "hpcgen-fleet-$CI_COMMIT_REF_SLUG",
        **_machine(options, ""),
        "cache": _cache("pull-push"),
        "script": [
            *_prepare(options, *needed),
            *_pull(options),
            f'find {WORK}/parts -name "*.lock" -exec hpcgen fleet merge --fleet "$HPCGEN_FLEET" --lock {LOCK} {{}} +',
            *push,
        ],
    }
