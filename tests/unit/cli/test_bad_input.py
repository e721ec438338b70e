"""Bad input: one clear message with the place and the remedy, the documented exit code, nothing written or run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import GOLDEN, ROOT, Command

WORKSTATION = (ROOT / "site_profiles" / "workstation.yaml").read_text("utf-8")


def site(collection: Path, text: str, name: str = "mine") -> str:
    (collection / "site_profiles" / f"{name}.yaml").write_text(text)
    return name


def child(more: str, name: str = "mine") -> str:
    return f"name: {name}\nextends: workstation\n{more}"


def render(hpcgen: Command, *words: str, site: str = "workstation", stack: str = "mpi-hello") -> tuple[int, str]:
    """Exit code and messages of a render that must fail; words before ``render`` go before the subcommand."""
    before: tuple[str, ...] = ()
    if "render" in words:
        before, words = words[: words.index("render")], words[words.index("render") + 1 :]
    done = hpcgen(*before, "render", "--site", site, "--stack", stack, *words)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


UNKNOWN = [
    (
        ["--site", "supermuk", "--stack", "mpi-hello"],
        ["no site is called 'supermuk'", "did you mean supermuc or supermuc-phase2?"],
    ),
    (
        ["--site", "supermuc", "--stack", "tf-horovodd"],
        ["no stack is called 'tf-horovodd'", "did you mean tf-horovod or tf-horovod-xla or mxnet-horovod?"],
    ),
    (
        ["--site", "workstation", "--stack", "tf-horovod", "--set", "tensorflw.install=pip"],
        ["--set: no block is called 'tensorflw'", "did you mean tensorflow or tensorrt?"],
    ),
    (
        ["--site", "workstation", "--stack", "tf-horovod", "--set", "tensorflow.instal=pip"],
        ["--set: block tensorflow has no option 'instal'", "did you mean install?"],
    ),
    (
        ["--site", "workstation", "--stack", "tf-horovod", "--set", "tensorflow.install=pipp"],
        ["--set: `tensorflow.install` must be one of hub, intel, pip, source", "not 'pipp'", "did you mean pip?"],
    ),
    (
        ["--site", "workstation", "--stack", "mpi-hello", "--set", "mpi.provider=psm2"],
        ["--set: 'psm2' does not provide mpi"],
    ),
    (
        ["--site", "supermuc", "--stack", "mpi-hello", "--partition", "thinn"],
        ["--partition: supermuc has no partition 'thinn'", "did you mean thin?"],
    ),
    (
        ["--site", "workstation", "--stack", "mpi-hello", "--set", "cmake.jobs=1"],
        ["block cmake has no option 'jobs'"],
    ),
]


@pytest.mark.parametrize(("words", "said"), UNKNOWN)
def test_unknown_name_is_told_with_the_nearest(hpcgen: Command, words: list[str], said: list[str]) -> None:
    done = hpcgen("render", *words)
    assert (done.returncode, done.stdout) == (4, "")
    for text in said:
        assert text in done.stderr


def test_two_mistakes_are_told_at_once(hpcgen: Command) -> None:
    done = hpcgen("render", "--site", "workstation", "--stack", "mpi-hello", "--set", "x.y=1", "--set", "nonsense")
    assert done.returncode == 3
    assert "'nonsense' is not a setting" in done.stderr
    assert "no block is called 'x'" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes", "0"], "'--nodes': '0' is not a whole number of at least 1"),
        (["--gpus", "1.5"], "'--gpus': '1.5' is not a whole number of at least 0"),
        (["--memory-per-rank", "0"], "'--memory-per-rank': '0' is not a number more than 0"),
        (["--memory-per-rank", "nan"], "'--memory-per-rank': 'nan' is not a number more than 0"),
    ],
)
def test_a_number_that_is_none_is_wrong_usage_in_plain_words(hpcgen: Command, words: list[str], said: str) -> None:
    code, message = render(hpcgen, *words)
    assert (code, said in message) == (2, True), message


@pytest.mark.parametrize("version", ["2.12; rm -rf /", "$(touch pwned)", "2.12\nRUN true", "`id`"])
def test_hostile_version_is_refused_and_nothing_runs(hpcgen: Command, version: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    code, said = render(hpcgen, "--set", f"mpich.version={version}")
    assert code == 3
    assert "--set" in said
    assert sorted(tmp_path.iterdir()) == before


FILES = [
    ("a: [1, 2\nb: 3\n", "mine.yaml:1:4: a `[` or `{` that is not closed"),
    ("name: mine\nname: mine\n", "mine.yaml:2:1"),
    (child("system: {os: debian, os_versio: 12}\n"), "did you mean os_version?"),
    (child("partitions: {cpu: {cpu: {cores: four}}}\n"), "'four'"),
    (child("default_partition: gpu\n"), "no partition is called 'gpu'"),
    (child("title: 'a\\tb'\n").replace("'a\\tb'", '"a\\tb"'), "title"),
    ("name: mine\ntitle: nothing else\n", "partitions"),
    ("", "empty"),
    ("- a\n- b\n", "mapping"),
    ("name: &a mine\ntitle: *a\n", "anchor"),
    ("name: !!python/object/apply:os.system ['touch pwned']\n", "tag"),
    (
        child("mpi: {flavour: intel, version: 2021.4, abi: mpich, root: '/opt/$(id)', launcher: mpiexec}\n"),
        "'/opt/$(id)'",
    ),
    (
        child(
            "mpi: {flavour: intel, version: 2021.4, abi: mpich, root: /opt/mpi, launcher: mpiexec,"
            ' binds: [{source: "/opt/a\'b", target: /opt/b}]}\n'
        ),
        "source",
    ),
    (
        child("network: {internet: {login: true, compute: true}, mirrors: {pip: http://example.org/simple}}\n"),
        "https://",
    ),
]


@pytest.mark.parametrize(("text", "said"), FILES)
def test_bad_profile_is_refused_with_its_place(hpcgen: Command, collection: Path, text: str, said: str) -> None:
    site(collection, text)
    code, message = render(hpcgen, "--collection", str(collection), "render", site="mine")
    assert code == 3, message
    assert "mine.yaml:" in message
    assert said in message


def test_name_with_a_line_break_is_refused(hpcgen: Command, collection: Path) -> None:
    site(collection, child('title: "x"\nsystem: {os: "debian\\nRUN id"}\n'))
    code, message = render(hpcgen, "--collection", str(collection), "render", site="mine")
    assert code == 3
    assert "mine.yaml:4:" in message


def test_circle_of_parents_is_named(hpcgen: Command, collection: Path) -> None:
    site(collection, "name: a\nextends: b\n", "a")
    site(collection, "name: b\nextends: a\n", "b")
    code, message = render(hpcgen, "--collection", str(collection), "render", site="a")
    assert code == 3
    assert "b.yaml:2:10: the site profile extends itself: a → b → a" in message


def test_unknown_parent_is_named_with_the_nearest(hpcgen: Command, collection: Path) -> None:
    site(collection, "name: mine\nextends: workstatoin\n")
    code, message = render(hpcgen, "--collection", str(collection), "render", site="mine")
    assert code == 3
    assert "mine.yaml:2:10: extends names 'workstatoin', which is no site profile" in message
    assert "did you mean workstation?" in message


def test_check_tells_every_mistake_of_every_file(hpcgen: Command, collection: Path) -> None:
    site(collection, child("system: {os: debian, os_versio: 12}\ndefault_partition: 7\nlayouts: [{partition: x}]\n"))
    (collection / "recipes" / "r.yaml").write_text(
        'name: r\ntitle: t\nblocks:\n  tensorflo: {}\n  horovod: {version: "=>0.28"}\nrun: {command: []}\n'
    )
    done = hpcgen("check", str(collection / "site_profiles" / "mine.yaml"), str(collection / "recipes" / "r.yaml"))
    assert (done.returncode, done.stdout) == (3, "")
    for said in (
        "mine.yaml:3:22:",
        "mine.yaml:5:",
        "r.yaml:4:",
        "did you mean tensorflow or tensorrt?",
        "r.yaml:5:22:",
    ):
        assert said in done.stderr, done.stderr


def test_check_is_content_with_every_file_of_the_built_in_collection(hpcgen: Command) -> None:
    files = [*ROOT.glob("site_profiles/*.yaml"), *ROOT.glob("recipes/*.yaml"), *ROOT.glob("building_blocks/*.yaml")]
    done = hpcgen("check", *map(str, files))
    assert done.returncode == 0, done.stderr


def test_forbidden_format_is_refused_with_the_reason_unless_allowed(hpcgen: Command) -> None:
    code, message = render(hpcgen, "--format", "docker", site="supermuc")
    assert code == 6
    assert "supermuc does not allow docker" in message
    assert "--allow-unsupported" in message
    done = hpcgen("render", "--site", "supermuc", "--stack", "mpi-hello", "--format", "docker", "--allow-unsupported")
    assert done.returncode == 0
    assert done.stdout.startswith("# syntax=")
    assert "warning: supermuc does not allow docker" in done.stderr


def test_job_that_does_not_fit_is_refused_with_every_reason(hpcgen: Command) -> None:
    words = ["--ranks-per-node", "96", "--threads", "12", "--memory-per-rank", "2", "--nodes", "100000"]
    code, message = render(hpcgen, *words, site="supermuc")
    assert code == 6
    assert message.count("hpcgen: error:") >= 3
    assert "77" in message


def test_output_folder_that_is_no_kit_is_left_alone(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    code, message = render(hpcgen, "-o", "mine")
    assert code == 7
    assert "mine" in message
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_output_that_is_a_file_is_left_alone(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "kit").write_text("not a folder")
    code, _ = render(hpcgen, "-o", "kit")
    assert code == 7
    assert (tmp_path / "kit").read_text() == "not a folder"


def test_output_folder_that_cannot_be_written(hpcgen: Command) -> None:
    # No user, root neither, can make a folder there.
    code, message = render(hpcgen, "-o", "/proc/kit")
    assert code == 7
    assert "/proc/kit" in message


def test_rendering_again_replaces_the_kit_and_keeps_foreign_files(hpcgen: Command, tmp_path: Path) -> None:
    words = ["render", "--site", "workstation", "--stack", "mpi-hello", "-o", "kit"]
    assert hpcgen(*words).returncode == 0
    (tmp_path / "kit" / "notes.txt").write_text("mine")
    (tmp_path / "kit" / "Dockerfile").write_text("stale")
    assert hpcgen(*words).returncode == 0
    assert (tmp_path / "kit" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "kit" / "Dockerfile").read_text().startswith("# syntax=")


def test_a_lock_beside_a_users_own_dockerfile_makes_no_kit_of_the_folder(hpcgen: Command, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "Dockerfile").write_text("FROM scratch\n")
    kit = ["render", "--site", "workstation", "--stack", "mpi-hello", "-o"]
    assert hpcgen(*kit, "kit").returncode == 0
    for content in ("", "packages: []\n", (tmp_path / "kit" / "hpcgen.lock").read_text()):
        (mine / "hpcgen.lock").write_text(content)
        done = hpcgen(*kit, "mine")
        assert done.returncode == 7 and "this folder is not empty and not a kit" in done.stderr, done.stderr
        assert (mine / "Dockerfile").read_text() == "FROM scratch\n"


def test_traceback_only_with_debug(hpcgen: Command) -> None:
    words = ["render", "--site", "nowhere", "--stack", "mpi-hello"]
    assert "Traceback" not in hpcgen(*words).stderr
    assert "Traceback" in hpcgen("--debug", *words).stderr


def test_check_finds_names_that_do_not_exist_and_blocks_that_need_each_other(collection: Path, hpcgen: Command) -> None:
    blocks = collection / "building_blocks"
    for name, other in (("a", "b"), ("b", "a")):
        (blocks / f"{name}.py").write_text(
            f"from hpcgen.blocks.base import Block, need\nclass It(Block):\n    '''A test block.'''\n"
            f"    name = {name!r}\n    needs = (need({other!r}),)\n"
        )
        (blocks / f"{name}.yaml").write_text(
            f'block: {name}\nreleases:\n  "1": {{accepts: {{pyhton: ">=3"}}, on: {{ubunto: "==22.04"}}}}\n'
        )
    done = hpcgen("--collection", str(collection), "check", str(blocks / "a.yaml"))
    assert done.returncode == 3
    assert "a.yaml:1:8: a needs b, which needs a: none of them can be built first" in done.stderr
    assert "a.yaml:3:19: no block is called 'pyhton'\n  remedy: did you mean python or pytorch?" in done.stderr
    assert "a.yaml:3:40: no distribution is called 'ubunto'\n  remedy: did you mean ubuntu?" in done.stderr


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("laptop", "workstation"),
        ("LAPTOP", "workstation"),
        ("supermuc-ng", "supermuc or supermuc-phase2"),
        ("lumi-gpu", "lumi-g"),
        ("mare-nostrum", "marenostrum5"),
        ("MareNostrum-5", "marenostrum5"),
        ("piz daint", "alps"),
        ("gpu-clustr", "slurm-nvidia or slurm-cpu or slurm-intel"),
    ],
)
def test_what_people_call_a_site_leads_to_its_profile(hpcgen: Command, name: str, meant: str) -> None:
    code, message = render(hpcgen, site=name)
    assert (code, message) == (4, f"hpcgen: error: no site is called {name!r}\n  remedy: did you mean {meant}?\n")


def test_an_abstract_profile_names_the_sites_that_extend_it(hpcgen: Command) -> None:
    code, message = render(hpcgen, site="lumi")
    assert code == 3 and "lumi is an abstract profile" in message
    assert "remedy: name a site that extends it: lumi-c or lumi-g" in message


def test_other_names_of_a_profile_are_its_own_alone(hpcgen: Command, collection: Path) -> None:
    site(collection, child("aliases: [bench-machine]\ntitle: Mine\n"))
    words = ["--collection", str(collection), "render"]
    code, message = render(hpcgen, *words, site="benchmachine")
    assert (code, "did you mean mine?" in message) == (4, True)
    code, message = render(hpcgen, *words, site="laptop")
    assert (code, "did you mean workstation?" in message) == (4, True)
    plan = hpcgen("--collection", str(collection), "plan", "--site", "mine", "--stack", "mpi-hello", "--json").stdout
    assert '"site"' in plan and "bench-machine" not in plan


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--set", "mpich.version=4.2.1", "--gpus", "0"], "--gpus, --set"),
        (["--latest-base"], "--latest-base"),
        (["--submit", "--add", "ucx", "--time", "1h"], "--add"),
    ],
)
def test_what_a_kit_cannot_follow_any_more_is_refused(hpcgen: Command, words: list[str], named: str) -> None:
    """It was passed over in silence, and the image was another one than people thought."""
    done = hpcgen("build", str(GOLDEN / "supermuc" / "mpi-hello"), "--dry-run", *words)
    assert done.returncode == 2, done.stderr
    assert f"error: {named}: a kit is a finished plan; give --site and --stack instead" in done.stderr


def test_a_package_that_is_no_block_is_proposed_as_one(hpcgen: Command) -> None:
    done = hpcgen("plan", "--site", "workstation", "--stack", "mpi-hello", "--add", "h5py")
    assert done.returncode == 4 and "--add pip:h5py is a Python package" in done.stderr


SITE = """
name: lab
title: A lab
system: {os: linux, distribution: plan9}
partitions: {a: {nodez: 1, cpu: {target: zen99, cores: 4}, memory: {total_gb: 4}}}
default_partition: b
scheduler: {kind: slurm}
network: {internet: {login: true, compute: true}}
containers: {preferred: apptainer, engines: {singularity: {}}}
sources:
  partitions.z.cpu: {from: a page}
"""
STACK = """
name: mine
titel: x
blocks: {pytorch: {versoin: "2"}, nosuchblock: {}, mpi: {options: {a: 1}}, openmpi: {version: ">=9"}}
"""


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("lab", SITE, ["`distribution` is not known", "`nodez`", "`checked` is missing", "zen99", "apptainer", "'b'"]),
        ("mine", STACK, ["`run` is missing", "`titel`", "`versoin`", "'nosuchblock'", "an option 'a'", "'>=9'"]),
    ],
)
def test_check_tells_in_one_run_what_later_ones_would(
    name: str, text: str, told: list[str], hpcgen: Command, tmp_path: Path
) -> None:
    (tmp_path / f"{name}.yaml").write_text(text)
    said = hpcgen("check", f"{name}.yaml").stderr
    assert [each for each in told if each not in said] == [], said
