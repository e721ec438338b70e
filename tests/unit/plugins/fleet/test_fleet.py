"""Fleets: every mistake of the file at once, what changed and what did not, the lock, publishing, arrays of builds."""

from __future__ import annotations

import base64
import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
import yaml

from hpcgen.builders.choosing import builders_reading
from hpcgen.core.errors import InputError
from hpcgen.plugins.fleet.changes import member_states
from hpcgen.plugins.fleet.file import load_fleet
from hpcgen.plugins.fleet.publish import credentials, push_commands
from hpcgen.plugins.fleet.records import LockedImage, lock_text, read_lock, update_lock
from tests.conftest import Command
from tests.unit.builders.test_build import docker
from tests.unit.images.test_observed import root
from tests.unit.running.test_build_job import BUILDING_SITE, OWN

SITES = ("supermuc", "workstation", "hlrs-testbed")
STACKS = ("mpi-hello", "tf-horovod")


def write_fleet(folder: Path, extra: str = "", **changed: str) -> Path:
    """Six members; ``changed`` are further lines of single members by name, with _ for -."""
    lines = ["registry: registry.example.org/hpc", "members:"]
    for stack in STACKS:
        for site in SITES:
            lines.append(f"  - stack: {stack}\n    site: {site}")
            key = f"{stack}-{site}".replace("-", "_")
            lines += [f"    {line}" for line in changed.get(key, "").splitlines()]
    file = folder / "fleet.yaml"
    file.write_text("\n".join(lines) + "\n" + extra)
    return file


def locked_as_planned(file: Path, tested: bool = True) -> Path:
    """A lock that says of every member that it was built as it is planned now."""
    loaded = load_fleet(file)
    images = {}
    for state in member_states(loaded, {}):
        assert state.plan is not None
        image = f"sif:images/{state.member.name}.sif"
        images[state.member.name] = LockedImage(
            content=state.content,
            format=state.plan.format,
            engine=next(iter(builders_reading(state.plan.format))),
            tested=tested,
            image=image,
        )
    update_lock(loaded.lock_path, images)
    return loaded.lock_path


def test_six_members_of_which_none_was_built(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    done = hpcgen("fleet", "--json")
    rows = json.loads(done.stdout)
    assert done.returncode == 0
    assert [row["name"] for row in rows] == [f"{stack}-{site}" for stack in STACKS for site in SITES]
    assert {row["state"] for row in rows} == {"new"}
    assert len({row["content"] for row in rows}) == 6
    assert rows[0]["publish"] == f"registry.example.org/hpc/mpi-hello-supermuc:{rows[0]['content'][:12]}"


def test_one_setting_changes_one_member(hpcgen: Command, tmp_path: Path) -> None:
    locked_as_planned(write_fleet(tmp_path))
    unchanged = hpcgen("fleet", "--changed", "--json")
    assert (json.loads(unchanged.stdout), unchanged.returncode) == ([], 0)
    write_fleet(tmp_path, mpi_hello_workstation="settings: [gnu.fortran=true]")
    rows = json.loads(hpcgen("fleet", "--changed", "--json").stdout)
    assert [(row["name"], row["state"]) for row in rows] == [("mpi-hello-workstation", "changed")]
    assert hpcgen("fleet", "--changed").stdout.count("\n") == 2


def test_another_engine_format_or_a_missing_test_is_a_change(tmp_path: Path) -> None:
    lock = locked_as_planned(write_fleet(tmp_path))
    file = write_fleet(tmp_path, mpi_hello_supermuc="engine: charliecloud", tf_horovod_workstation="engine: buildah")
    locked_now = read_lock(lock)
    hlrs = locked_now["mpi-hello-hlrs-testbed"]
    locked_now["mpi-hello-hlrs-testbed"] = msgspec.structs.replace(hlrs, format="docker")
    states = {s.member.name: s.reason for s in member_states(load_fleet(file), locked_now) if s.to_build}
    assert states == {
        "mpi-hello-hlrs-testbed": "the format was docker",
        "tf-horovod-workstation": "built by podman, not by buildah",
    }
    untested = read_lock(locked_as_planned(write_fleet(tmp_path), tested=False))
    states_untested = member_states(load_fleet(write_fleet(tmp_path)), untested)
    assert {s.reason for s in states_untested} == {"built but never tested"}
    file = write_fleet(tmp_path, "defaults: {test: false}\n")
    assert not [s for s in member_states(load_fleet(file), untested) if s.to_build]


def test_another_job_layout_changes_nothing(hpcgen: Command, tmp_path: Path, collection: Path) -> None:
    """The queues and layouts of a profile decide on jobs, not on what is in the image."""
    site = collection / "site_profiles" / "mine.yaml"
    text = "name: mine\nextends: supermuc\ntitle: mine\n"
    site.write_text(text)
    file = tmp_path / "fleet.yaml"
    file.write_text("collections: [collection]\nmembers: [{stack: mpi-hello, site: mine}]\n")
    before = json.loads(hpcgen("fleet", "--json").stdout)
    site.write_text(text + "layouts: [{partition: thin, ranks_per_node: 3, threads_per_rank: 2}]\n")
    assert json.loads(hpcgen("fleet", "--json").stdout) == before


def test_a_member_without_a_plan_is_told_with_its_place_and_the_others_are_listed(
    hpcgen: Command, tmp_path: Path
) -> None:
    write_fleet(tmp_path, tf_horovod_supermuc="partition: nowhere")
    done = hpcgen("fleet")
    assert done.returncode == 3
    assert done.stdout.count("never built") == 5
    assert "no plan" in done.stdout
    assert "fleet.yaml:9:5: tf-horovod-supermuc: supermuc has no partition 'nowhere'" in done.stderr


def test_a_member_may_be_what_its_site_does_not_support(hpcgen: Command, tmp_path: Path) -> None:
    forbidden = "format: docker\nengine: podman"
    write_fleet(tmp_path, mpi_hello_supermuc=forbidden)
    refused = hpcgen("fleet")
    assert refused.returncode == 3
    assert refused.stdout.count("no plan") == 1
    assert "mpi-hello-supermuc: " in refused.stderr
    write_fleet(tmp_path, mpi_hello_supermuc=f"{forbidden}\nallow_unsupported: true")
    assert hpcgen("fleet").stdout.count("never built") == 6


def test_base_images_by_their_moving_tags_for_one_member_or_all_others(tmp_path: Path) -> None:
    def latest(text: str) -> list[bool]:
        file = tmp_path / "fleet.yaml"
        members = "  - {stack: mpi-hello, site: workstation, name: one, latest_base: false}\n"
        file.write_text(f"members:\n{members}  - {{stack: mpi-hello, site: workstation, name: two{text}")
        return [bool(state.plan and state.plan.latest_base) for state in member_states(load_fleet(file), {})]

    assert latest(", latest_base: true}\n") == [False, True]
    assert latest("}\ndefaults: {latest_base: true}\n") == [False, True]


def test_all_mistakes_of_a_fleet_at_once_each_at_its_place(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(
        "build_on: supermug\n"
        "members:\n"
        "  - {stack: mpi-helo, site: supermuc}\n"
        "  - {stack: mpi-hello, site: workstaton}\n"
        "  - {stack: mpi-hello}\n"
        "  - {stack: mpi-hello, site: supermuc, settings: [tensorflo.install=pip, nonsense]}\n"
        "  - {stack: mpi-hello, site: supermuc}\n"
        "  - {stack: ours/x.yaml, site: supermuc, format: docker, engine: ch-image, test_site: workstatoin}\n"
    )
    done = hpcgen("check", "fleet.yaml")
    assert done.returncode == 3
    for text in (
        "fleet.yaml:1:11: no site is called 'supermug'\n  remedy: did you mean supermuc or supermuc-phase2?",
        "fleet.yaml:3:13: no stack is called 'mpi-helo'\n  remedy: did you mean mpi-hello or mpi-python?",
        "fleet.yaml:4:30: no site is called 'workstaton'\n  remedy: did you mean workstation?",
        "fleet.yaml:5:5: `site` is missing",
        "fleet.yaml:6:51: no block is called 'tensorflo'\n  remedy: did you mean tensorflow or tensorrt?",
        "fleet.yaml:6:74: 'nonsense' is not a setting",
        "fleet.yaml:7:5: two members are called mpi-hello-supermuc",
        "fleet.yaml:8:13: there is no file ours/x.yaml",
        "fleet.yaml:8:5: ch-image does not build recipes in the format docker\n  expected: format: charliecloud",
        "no site is called 'workstatoin'\n  remedy: did you mean workstation?",
        "10 errors",
    ):
        assert text in done.stderr, done.stderr


def test_types_and_unknown_keys_are_told_with_what_was_meant(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(
        "registry: https://registry.example.org/hpc\n"
        "collection: [x]\n"
        "members:\n"
        "  - {stack: mpi-hello, site: supermuc, test: yes, name: Upper}\n"
    )
    done = hpcgen("fleet")
    assert done.returncode == 3
    for text in ("fleet.yaml:1:11", "did you mean collections?", "write true", "4:57: `name`"):
        assert text in done.stderr, done.stderr


def test_sites_stacks_and_collections_lie_beside_the_fleet(hpcgen: Command, tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    (folder / "site_profiles").mkdir(parents=True)
    (folder / "site_profiles" / "lab.yaml").write_text("name: lab\nextends: workstation\ntitle: lab\n")
    (folder / "own.yaml").write_text(
        "name: own\ntitle: own\nblocks: {gnu: {}}\nrun: {command: [gcc, --version], mpi: false}\n"
    )
    (folder / "fleet.yaml").write_text("collections: ['.']\nmembers: [{stack: own.yaml, site: lab}]\n")
    done = hpcgen("fleet", "--fleet", "ours/fleet.yaml", "--json")
    assert [row["name"] for row in json.loads(done.stdout)] == ["own-lab"], done.stderr


def test_a_member_may_start_from_an_image_of_others(hpcgen: Command, tmp_path: Path) -> None:
    root(tmp_path / "ours" / "theirs")
    (tmp_path / "ours" / "own.yaml").write_text(
        "name: own\ntitle: own\nfrom: theirs\nblocks: {}\nrun: {command: [ls], mpi: false}\n"
    )
    members = "[{stack: own.yaml, site: supermuc}, {stack: own.yaml, site: lumi-c}]"
    (tmp_path / "ours" / "fleet.yaml").write_text(f"members: {members}\n")
    done = hpcgen("fleet", "--fleet", "ours/fleet.yaml", "--json")
    first, other = json.loads(done.stdout)
    assert first["state"] == "new", done.stderr
    assert other["state"] == "no plan" and "cannot start from theirs" in other["reason"]


def test_an_unknown_member_is_answered_with_the_nearest(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    done = hpcgen("fleet", "--member", "mpi-hello-supermug")
    assert (done.returncode, "did you mean mpi-hello-supermuc" in done.stderr) == (4, True)


def test_the_schema_describes_the_file(hpcgen: Command, tmp_path: Path) -> None:
    import jsonschema

    shape = json.loads(hpcgen("schema", "fleet").stdout)
    assert '"enum": ["docker", "singularity", "charliecloud"]' in json.dumps(shape)
    good = yaml.safe_load(write_fleet(tmp_path).read_text())
    jsonschema.validate(good, shape)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, "members": []}, shape)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, "defaults": {"format": "dokcer"}}, shape)


def locked(content: str = "0" * 64, **fields: str) -> LockedImage:
    return msgspec.convert(
        {"content": content, "format": "docker", "engine": "buildah", "tested": True, **fields}, LockedImage
    )


def test_many_writers_of_one_lock_lose_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "fleet.lock"
    names = [f"image-{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: update_lock(lock, {name: locked()}), names))
    assert sorted(read_lock(lock)) == sorted(names)


def test_the_lock_reads_back_and_does_not_depend_on_the_order(tmp_path: Path) -> None:
    one, two = locked(image="podman:localhost/x"), locked("f" * 64)
    text = lock_text({"b": two, "a": one})
    assert text == lock_text({"a": one, "b": two})
    (tmp_path / "fleet.lock").write_text(text)
    assert read_lock(tmp_path / "fleet.lock") == {"a": one, "b": two}


def test_a_broken_lock_is_told_with_its_place_and_stays(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    (tmp_path / "fleet.lock").write_text("fleet_lock: 1\nimages: {x: {content: abc}}\n")
    done = hpcgen("fleet")
    assert (done.returncode, "fleet.lock:2:23" in done.stderr) == (3, True), done.stderr
    with pytest.raises(InputError):
        update_lock(tmp_path / "fleet.lock", {"y": locked()})
    assert "abc" in (tmp_path / "fleet.lock").read_text()


def test_single_locks_are_merged_into_the_fleets(hpcgen: Command, tmp_path: Path) -> None:
    for name in ("one", "two"):
        update_lock(tmp_path / f"{name}.part", {name: locked()})
    update_lock(tmp_path / "fleet.lock", {"three": locked(), "one": locked("f" * 64)})
    assert hpcgen("fleet", "merge", "one.part", "two.part").returncode == 0
    merged = read_lock(tmp_path / "fleet.lock")
    assert (sorted(merged), merged["one"].content) == (["one", "three", "two"], "0" * 64)


@pytest.mark.parametrize(
    ("engine", "image", "expected"),
    [
        ("buildah", "podman:localhost/x", ["buildah push --digestfile T/digest localhost/x docker://R/x:1"]),
        ("podman", "podman:localhost/x", ["podman push --digestfile T/digest localhost/x docker://R/x:1"]),
        ("docker", "docker:x", ["docker tag x R/x:1", "docker push R/x:1"]),
        ("apptainer", "sif:/i/x.sif", ["apptainer push /i/x.sif oras://R/x:1"]),
        ("singularity", "sif:/i/x.sif", ["singularity push /i/x.sif oras://R/x:1"]),
        ("ch-image", "ch-image:x", ["ch-image push x R/x:1"]),
        (
            "ch-image",
            "squashfs:/i/x.sqfs",
            ["ch-convert -i squash -o dir /i/x.sqfs T/image", "ch-image push --image T/image R/x:1"],
        ),
    ],
)
def test_each_kind_of_image_is_pushed_by_its_own_program(engine: str, image: str, expected: list[str]) -> None:
    words = push_commands(locked(engine=engine, image=image), "R/x:1", Path("T"))
    assert [" ".join(command) for command in words] == expected


def test_a_folder_of_apptainer_is_pushed_by_nothing() -> None:
    with pytest.raises(InputError, match="directory"):
        push_commands(locked(engine="apptainer", image="directory:/i/x"), "R/x:1", Path("T"))


def test_passwords_reach_programs_by_variables_and_a_file_for_the_user_alone(tmp_path: Path) -> None:
    given = {"HPCGEN_REGISTRY_USER": "me", "HPCGEN_REGISTRY_PASSWORD": "secret"}
    names = credentials(given, "registry.example.org/hpc/x:1", tmp_path)
    file = Path(names["REGISTRY_AUTH_FILE"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["auths"] == {"registry.example.org": {"auth": "bWU6c2VjcmV0"}}
    assert (names["CH_IMAGE_PASSWORD"], names["APPTAINER_DOCKER_PASSWORD"]) == ("secret", "secret")


def test_gitlabs_password_goes_to_gitlabs_registry_alone(tmp_path: Path) -> None:
    job = {"CI_REGISTRY": "git.example.org:5050", "CI_REGISTRY_USER": "ci", "CI_REGISTRY_PASSWORD": "secret"}
    assert credentials(job, "registry.example.org/x:1", tmp_path) == {}
    assert credentials(job, "git.example.org:5050/group/x:1", tmp_path)["CH_IMAGE_USERNAME"] == "ci"


def test_publishing_notes_the_digest_and_skips_what_is_there(hpcgen: Command, tmp_path: Path) -> None:
    """There is no registry here, so a program in buildah's place takes the push and writes a digest as it does."""
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "buildah"
    fake.write_text('#!/bin/sh\necho "$@" >> pushed\n[ "$1" = push ] || exit 1\nprintf sha256:abc > "$3"\n')
    fake.chmod(0o755)
    write_fleet(tmp_path)
    for name in ("mpi-hello-supermuc", "mpi-hello-workstation"):
        update_lock(tmp_path / "fleet.lock", {name: locked(image=f"podman:localhost/{name}")})
    env = {"PATH": f"{programs}:/usr/bin:/bin"}
    shown = hpcgen("fleet", "publish", "--dry-run", "mpi-hello-supermuc", env=env)
    assert shown.stdout.startswith("buildah push --digestfile ")
    assert not (tmp_path / "pushed").exists()
    done = hpcgen("fleet", "publish", env=env)
    assert done.stdout.split() == [
        f"registry.example.org/hpc/mpi-hello-{site}:{'0' * 12}" for site in ("supermuc", "workstation")
    ], done.stderr
    now = read_lock(tmp_path / "fleet.lock")["mpi-hello-supermuc"]
    assert (now.digest, now.published) == ("sha256:abc", f"registry.example.org/hpc/mpi-hello-supermuc:{'0' * 12}")
    assert hpcgen("fleet", "publish", env=env).stdout == ""
    fake.write_text("#!/bin/sh\necho no such host >&2\nexit 125\n")
    failed = hpcgen("fleet", "publish", "mpi-hello-supermuc", env=env)
    assert (failed.returncode, "no such host" in failed.stderr, "status 125" in failed.stderr) == (7, True, True)


def test_a_policy_has_the_openpgp_keys_of_the_signers(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"
    (tmp_path / "signers").write_text(f"alice@example.org ssh-ed25519 AAAA\n{key}")
    words = ["fleet", "policy", "--signer", "signers", "--lookaside", "https://sigs.example.org/hpc"]
    assert hpcgen(*words, "-o", "made").returncode == 0
    policy = json.loads((tmp_path / "made/policy.json").read_text())
    assert policy["default"] == [{"type": "insecureAcceptAnything"}]
    (demanded,) = policy["transports"]["docker"]["registry.example.org/hpc"]
    assert base64.b64decode(demanded.pop("keyData")).decode() == key
    assert demanded == {"type": "signedBy", "keyType": "GPGKeys"}
    where = (tmp_path / "made/registries.d/registry.example.org-hpc.yaml").read_text()
    assert yaml.safe_load(where)["docker"]["registry.example.org/hpc"]["lookaside"] == "https://sigs.example.org/hpc"
    printed = hpcgen(*words).stdout
    assert (tmp_path / "made/policy.json").read_text() in printed and where in printed
    refused = hpcgen(*words[:-1], "sigs.example.org")
    assert refused.returncode == 3 and "not a lookaside address" in refused.stderr
    (tmp_path / "signers").write_text("alice@example.org ssh-ed25519 AAAA\n")
    refused = hpcgen(*words)
    assert refused.returncode == 3 and "has no OpenPGP key" in refused.stderr


def with_docker(folder: Path) -> dict[str, str]:
    """A PATH with nothing but a stand-in for docker, as no engine of it is on the machines that tests run on."""
    programs = folder / "bin"
    programs.mkdir()
    docker(programs)
    for tool in ("sh", "cat"):
        (programs / tool).symlink_to(f"/bin/{tool}")
    return {"PATH": str(programs), "HPCGEN_RECORDS": str(folder / "records")}


def test_a_failing_build_keeps_none_of_the_others_back(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path, "defaults: {test: false}\n", tf_horovod_supermuc="partition: nowhere")
    env = with_docker(tmp_path)
    done = hpcgen("build", "--all", "--json", env=env)
    results = {row["name"]: row["result"] for row in json.loads(done.stdout)}
    assert results == {f"{stack}-{s}": "built" if s == "workstation" else "failed" for stack in STACKS for s in SITES}
    assert done.returncode == 69
    assert "2 built, 4 failed" in done.stderr
    assert "hpcgen: mpi-hello-supermuc, 1 of 6: never built\nhpcgen: error: ch-image is needed" in done.stderr
    now = read_lock(tmp_path / "fleet.lock")
    assert sorted(now) == ["mpi-hello-workstation", "tf-horovod-workstation"]
    assert now["mpi-hello-workstation"].image == "docker:mpi-hello-workstation:latest"
    assert now["mpi-hello-workstation"].tested is False
    again = hpcgen("build", "--member", "mpi-hello-workstation", env=env)
    assert (again.returncode, again.stdout, "nothing to build" in again.stderr) == (0, "", True)
    forced = hpcgen("build", "--member", "mpi-hello-workstation", "--force", "--json", env=env)
    assert json.loads(forced.stdout)[0]["result"] == "built"


def test_a_dry_run_prints_the_commands_and_changes_nothing(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    done = hpcgen("build", "--all", "--dry-run", env=with_docker(tmp_path))
    assert done.stdout.count("docker buildx build") == 2
    assert done.returncode == 69
    assert not (tmp_path / "fleet.lock").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--all", "--site", "supermuc"), "--site cannot be used with --all"),
        (("--all", "-o", "x"), "-o cannot be used with --all"),
        (("--all", "--time", "2h"), "--time requires --array"),
        (("--all", "--limit", "2"), "--limit requires --array"),
        (("--force", "kit"), "--force requires --all or --member"),
        (("--no-follow", "kit"), "--no-follow requires --submit"),
        (("--submit",), "give one KIT"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(
    hpcgen: Command, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    write_fleet(tmp_path)
    done = hpcgen("build", *words)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_an_array_needs_one_site_and_says_how_to_name_it(hpcgen: Command, tmp_path: Path, collection: Path) -> None:
    (collection / "site_profiles" / "mine.yaml").write_text(BUILDING_SITE)
    write_fleet(tmp_path)
    done = hpcgen("build", "--all", "--array")
    assert (done.returncode, "build_on: SITE" in done.stderr) == (3, True)
    words = ("--collection", "collection", "build", "--all", "--array", "--on", "mine", "--account", "abc", "--dry-run")
    script = hpcgen(*words).stdout
    assert "#SBATCH --array=0-5\n" in script
    last = script.splitlines()[-1]
    assert f"{OWN} --collection collection build --member" in last
    write_fleet(tmp_path, "build_on: mine\ncollections: [collection]\n")
    assert "#SBATCH --array=0-5%2\n" in hpcgen("build", *words[3:5], "--limit", "2", *words[7:]).stdout


def test_what_members_compile_alike_is_counted_once(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(
        "members:\n  - {stack: mpi-hello, site: workstation}\n  - {stack: gromacs, site: workstation}\n"
    )
    said = hpcgen("build", "--all", "--dry-run", "--cache", "store").stderr
    assert "5 blocks of 2 images are 3 different ones: 3 to compile, 0 in" in said
    assert "different ones" not in hpcgen("build", "--all", "--dry-run").stderr
