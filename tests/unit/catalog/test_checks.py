"""`hpcgen check` finds in a profile or recipe what planning would stumble over, each mistake at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command

SITE = """\
name: mine
extends: workstation
"""
STACK = """\
name: s
title: A stack
run: {command: [run]}
blocks:
"""
MPI = "mpi: {flavour: FLAVOUR, version: VERSION, abi: ABI, launcher: mpirun}\n"


def mpi(flavour: str = "openmpi", version: str = "4.1.6", abi: str = "openmpi") -> str:
    return MPI.replace("FLAVOUR", flavour).replace("VERSION", version).replace("ABI", abi)


def gpu(more: str) -> str:
    return f"partitions: {{main: {{gpu: {{vendor: nvidia, model: A100, {more}}}}}}}\n"


def queues(more: str) -> str:
    return f"partitions: {{main: {{queues: [{more}]}}}}\n"


WRONG_SITES = [
    (mpi(version="latest"), "3:34: 'latest' is not a version\n  expected: numbers with dots", "4.1.6"),
    (mpi(version="v4.1.6"), "3:34: 'v4.1.6' is not a version", "remedy: write 4.1.6"),
    (mpi(abi="mpich"), "3:46: openmpi does not have the binary interface of mpich", "expected: abi: openmpi"),
    (mpi("intel", "2021.4"), "intel does not have the binary interface of openmpi", "expected: abi: mpich"),
    (mpi("cray-mpich", "8.1.29"), "cray-mpich does not have the binary interface of openmpi", "abi: mpich"),
    (
        mpi(version="5.0.6", abi="mpi5"),
        "openmpi 5.0.6 does not have the binary interface of the MPI 5 standard",
        "expected: abi: openmpi, or openmpi 6.0 or newer",
    ),
    (mpi("intel", "2021.16.2", "mpi5"), "intel 2021.16.2 does not have the binary interface", "intel 2021.17 or newer"),
    (mpi("mpich", "4.3.2", "mpi5"), "mpich 4.3.2 does not have the binary interface", "mpich 5.0 or newer"),
    (gpu("capability: ampere"), "'ampere' is not a compute capability", "expected: two numbers such as 8.0"),
    (gpu("capability: sm_80"), "'sm_80' is not a compute capability", "8.0"),
    (gpu("count: 2, cpus: [0-3]"), "`cpus` has 1 list for 2 GPUs", "expected: 2 lists"),
    (gpu("count: 2, cpus: [0-3, 2-5]"), "GPUs 0 and 1 share the CPUs 2-3 and no others", "3:"),
    (gpu("count: 2, cpus: [0-3, 7-4]"), "'7-4' names no CPU", "write the smaller number first"),
    (gpu("driver: newest"), "'newest' is not a version", "3:"),
    ("fabric: {kind: slingshot, libfabric: new}\n", "'new' is not a version", ""),
    (
        gpu("driver: 6.10.5").replace("nvidia", "amd"),
        "6.10.5 is a version of AMD's kernel module",
        "remedy: write 6.3, the release that has it",
    ),
    ("containers: {engines: {podman: {version: v1.3-rc}}}\n", "3:42: 'v1.3-rc' is not a version", "expected: numbers"),
    ("system: {glibc: two}\n", "3:17: 'two' is not a version", ""),
    ("system: {glibc: 2.x}\n", "3:17: '2.x' is not a version", ""),
    (
        "partitions: {main: {memory: {total_gb: 16, usable_gb: 64}}}\n",
        "3:55: a job cannot use 64 GB of 16 GB",
        "",
    ),
    (
        "partitions: {main: {gpu: {vendor: amd, model: MI250X, capability: 9.0}}}\n",
        "a GPU of amd has no compute capability",
        "gfx90a",
    ),
    ("image: {distribution: ubunto}\n", "3:23: no distribution is called 'ubunto'", "did you mean ubuntu?"),
    (
        "network: {proxy: 'http://p:3128'}\n",
        "3:18: `proxy` must be a mapping",
        "expected: the keys http, https, no_proxy",
    ),
    (queues("{name: a, min_nodes: 2}"), "3:51: no job fits the queue a: main has fewer nodes", "at most 1"),
    (queues("{name: a, min_nodes: 1}, {name: a}"), "3:62: the queue a is listed twice for main", "remove one"),
    (queues("{name: a, min_nodes: 4, max_nodes: 2}"), "no job fits the queue a: min_nodes is 4 and max_nodes 2", ""),
]


@pytest.mark.parametrize(("text", "said", "also"), WRONG_SITES)
def test_a_fact_that_cannot_be_true_is_found(
    hpcgen: Command, collection: Path, text: str, said: str, also: str
) -> None:
    file = collection / "site_profiles" / "mine.yaml"
    file.write_text(SITE + text)
    done = hpcgen("check", str(file))
    assert done.returncode == 3
    assert said in done.stderr
    assert also in done.stderr
    assert done.stderr.count("hpcgen: error:") == 1


RIGHT_SITES = [
    mpi("parastation", "5.9.2-1", "mpich"),
    mpi("intel", "2021.4", "mpich"),
    mpi("openmpi", "5.0.0rc1"),
    gpu("capability: 8.0, driver: 550.54.15"),
    gpu("count: 4, cpus: ['0-3,8', '0-3,8', 4-7, 4-7]"),
    "containers: {engines: {podman: {version: 1.3.4-1.el9}}}\n",
    "containers: {engines: {docker: {version: 20.10.24+dfsg1}}}\n",
    queues("{name: a, directives: ['--qos=x']}, {name: a, directives: ['--qos=y']}"),
]


@pytest.mark.parametrize("text", RIGHT_SITES)
def test_what_machines_really_say_is_right(hpcgen: Command, collection: Path, text: str) -> None:
    file = collection / "site_profiles" / "mine.yaml"
    file.write_text(SITE + text)
    done = hpcgen("check", str(file))
    assert done.returncode == 0, done.stderr


def test_options_of_a_stack_are_held_to_its_blocks_all_at_once(hpcgen: Command, collection: Path) -> None:
    file = collection / "recipes" / "s.yaml"
    file.write_text(
        STACK
        + "  tensorflow:\n    options: {instal: pip, install: pipp}\n  pyhton: {}\n  cmake: {options: {jobs: 2}}\n"
    )
    done = hpcgen("check", str(file))
    assert done.returncode == 3
    assert "s.yaml:6:23: block tensorflow has no option 'instal'\n  remedy: did you mean install?" in done.stderr
    assert "s.yaml:6:37: `tensorflow.install` must be one of hub, intel, pip, source" in done.stderr
    assert "did you mean pip?" in done.stderr
    assert "s.yaml:7:" in done.stderr
    assert "s.yaml:8:27: block cmake has no option 'jobs'" in done.stderr
    assert "hpcgen: 4 errors" in done.stderr


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("cmake: {version: '>=99'}", "s.yaml:5:20: no release of cmake matches '>=99'\n  expected: one of 3."),
        ("cmake: {version: '>=4,<3'}", "no release of cmake matches '>=4,<3'"),
        ("mpi: {version: '>=99', provider: openmpi}", "no release of openmpi matches"),
    ],
)
def test_a_range_without_a_release_is_found(hpcgen: Command, collection: Path, asked: str, said: str) -> None:
    file = collection / "recipes" / "s.yaml"
    file.write_text(f"{STACK}  {asked}\n")
    done = hpcgen("check", str(file))
    assert done.returncode == 3
    assert said in done.stderr


SECRETS = [
    ("proxy: {https: 'http://jane:s3cret@proxy.example.org:3128'}", "a password", "APPTAINERENV_http_proxy"),
    ("proxy: {http: 'http://s3cret@proxy.example.org:3128'}", "a user's name", "APPTAINERENV_http_proxy"),
    (
        "mirrors: {apt: {ubuntu: {archive: 'http://jane:s3cret@mirror.example.org/u'}}}",
        "a password",
        "use a mirror that",
    ),
    (
        "mirrors: {pip: 'https://jane:s3cret@mirror.example.org/simple'}",
        "not 'https://…@mirror.example.org/simple'",
        "",
    ),
]


@pytest.mark.parametrize(("line", "message", "remedy"), SECRETS)
def test_a_password_in_a_profile_is_refused_and_not_shown(
    hpcgen: Command, tmp_path: Path, line: str, message: str, remedy: str
) -> None:
    (tmp_path / "mine.yaml").write_text(f"{SITE}network: {{internet: {{login: true, compute: true}}, {line}}}\n")
    for words in (["check", "mine.yaml"], ["render", "--site", "./mine.yaml", "--stack", "mpi-hello"]):
        done = hpcgen(*words)
        assert done.returncode == 3, (words, done.stdout)
        assert message in done.stderr and remedy in done.stderr and ":3:" in done.stderr, done.stderr
        assert "s3cret" not in done.stderr + done.stdout


def test_a_password_in_a_stack_is_refused(hpcgen: Command, tmp_path: Path) -> None:
    run = "run: {command: [run], environment: {INDEX: 'https://jane:s3cret@example.org'}}"
    (tmp_path / "s.yaml").write_text(f"name: s\ntitle: S\n{run}\nblocks: {{base: {{}}}}\n")
    done = hpcgen("check", "s.yaml")
    assert done.returncode == 3 and "this address contains a password" in done.stderr, done.stderr
    assert "s3cret" not in done.stderr


def test_a_git_user_is_no_secret(hpcgen: Command, tmp_path: Path) -> None:
    run = "run: {command: [run], environment: {SOURCE: 'ssh://git@example.org/x'}}"
    (tmp_path / "s.yaml").write_text(f"name: s\ntitle: S\n{run}\nblocks: {{base: {{}}}}\n")
    assert hpcgen("check", "s.yaml").returncode == 0


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\xa0"])
def test_a_directive_has_no_character_that_could_be_a_line_of_its_own(character: str) -> None:
    """Also where the batch system is none, so that nothing prints it."""
    from hpcgen.api import load_site
    from hpcgen.core.errors import InputError
    from tests.helpers.random_questions import SITE

    site = {**SITE, "scheduler": {"kind": "none", "directives": [f"--export=NONE{character}x"]}}
    with pytest.raises(InputError, match="must be one option"):
        load_site(site)
