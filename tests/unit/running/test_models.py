"""Models and data sets before a job: fetched once by hash, from a server on the loopback or from a bundle."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcgen.core.model.hub_cache import hub_repositories
from hpcgen.core.model.lock import Pins
from hpcgen.core.model.models import Model, ModelFile
from hpcgen.supply.bundle.create import Creation, create_bundle
from hpcgen.supply.pin.wanted import wanted
from tests.conftest import Command
from tests.helpers import locks
from tests.helpers.bundles import QUICK
from tests.helpers.file_server import FileServer, make_certificate, serving

WEIGHTS = os.urandom(300_000)
CONFIG = b'{"layers": 2}\n'
TOKEN = "hf_" + "aB3" * 11


@pytest.fixture(scope="module")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def server(tls_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("SSL_CERT_FILE", str(tls_files[1]))
    for name in ("HF_TOKEN", "HPCGEN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    with serving(tls_files) as running:
        running.files |= {"seg/model.onnx": WEIGHTS, "bert/w/model.safetensors": WEIGHTS, "bert/config.json": CONFIG}
        yield running


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def stack(server: FileServer, folder: Path, *more: dict[str, Any]) -> Path:
    parts = {"config.json": CONFIG, "w/model.safetensors": WEIGHTS}
    files = {path: {"sha256": sha(data), "size": len(data)} for path, data in parts.items()}
    models = [
        {"name": "seg", "from": server.url("seg/model.onnx"), "sha256": sha(WEIGHTS), "to": "/models/seg"},
        {"name": "bert", "from": server.url("bert"), "files": files, "to": "/models/bert"},
        *more,
    ]
    data = {
        "name": "reader",
        "title": "Reads models",
        "blocks": {"python": {}},
        "run": {"command": ["python3", "-V"], "mpi": False, "models": models},
    }
    path = folder / "hpcgen.yaml"
    path.write_text(json.dumps(data))
    return path


def fetch(hpcgen: Command, folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return hpcgen("data", "fetch", "--site", "workstation", *words, cwd=folder, env=env)


def kept(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_they_are_fetched_once_by_content_and_closed_to_changes(
    hpcgen: Command, server: FileServer, tmp_path: Path
) -> None:
    stack(server, tmp_path)
    done = fetch(hpcgen, tmp_path, "--json", HPCGEN_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    found = {each["name"]: each for each in json.loads(done.stdout)}
    seg, bert = Path(found["seg"]["folder"]), Path(found["bert"]["folder"])
    assert seg.parent == bert.parent == tmp_path / "cache" / "models"
    assert kept(seg) == {"model.onnx": WEIGHTS}
    assert kept(bert) == {"config.json": CONFIG, "w/model.safetensors": WEIGHTS}
    assert not (seg / "model.onnx").stat().st_mode & 0o222
    assert sorted(os.listdir(seg.parent)) == sorted([seg.name, bert.name])
    asked = len(server.requests)
    again = fetch(hpcgen, tmp_path, HPCGEN_CACHE=str(tmp_path / "cache"))
    assert again.returncode == 0 and "seg: there: 1 file" in again.stderr and len(server.requests) == asked


def test_what_a_site_has_removed_in_the_meantime_is_fetched_again(
    hpcgen: Command, server: FileServer, tmp_path: Path
) -> None:
    stack(server, tmp_path)
    assert fetch(hpcgen, tmp_path).returncode == 0
    store = tmp_path / ".cache" / "models"
    lost = next(store.glob("*/w/model.safetensors"))
    lost.unlink()
    server.requests.clear()
    done = fetch(hpcgen, tmp_path)
    assert done.returncode == 0 and lost.read_bytes() == WEIGHTS
    assert [path for path, _ in server.requests] == ["bert/w/model.safetensors"]


def test_an_interrupted_one_goes_on_and_a_wrong_one_never_gets_its_name(
    hpcgen: Command, server: FileServer, tmp_path: Path
) -> None:
    stack(server, tmp_path)
    server.faults["seg/model.onnx"] = ["drop:100000", "status:404"]
    done = fetch(hpcgen, tmp_path)
    assert done.returncode == 11, done.stderr
    assert "model.onnx (seg) was not fetched" in done.stderr and "hpcgen data fetch --bundle BUNDLE" in done.stderr
    assert not list((tmp_path / ".cache/models").glob("*/model.onnx"))
    server.faults.clear()
    server.requests.clear()
    assert fetch(hpcgen, tmp_path).returncode == 0
    assert server.asked("seg/model.onnx")[0]["range"] == "bytes=100000-"
    other = tmp_path / "other"
    other.mkdir()
    server.files["seg/model.onnx"] = b"another" + WEIGHTS
    stack(server, other)
    wrong = fetch(hpcgen, other)
    assert wrong.returncode == 11 and "its sha256 is" in wrong.stderr
    assert not list((other / ".cache/models").glob("*/model.onnx"))


def test_a_second_one_waits_until_the_first_is_done(server: FileServer, tmp_path: Path) -> None:
    path = stack(server, tmp_path)
    model = locks.CATALOG.stack(str(path)).run.models[0]
    place = tmp_path / ".cache" / "models" / f"{model.folder}.partial"
    place.mkdir(parents=True)
    held = os.open(place, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    words = [sys.executable, "-m", "hpcgen", "data", "fetch", "--site", "workstation"]
    second = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert second.stderr is not None
    assert second.stderr.readline() == "hpcgen: another process fetches seg: waiting for it\n"
    assert not server.requests
    os.close(held)
    assert second.wait(60) == 0 and len(server.asked("seg/model.onnx")) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sha256": None}, "nothing says what other must be"),
        ({"to": "/models"}, "/models and /models/seg are the same place, or one is inside the other"),
        ({"to": "/usr/lib/x"}, "would hide /usr of the image"),
        ({"to": "/other/../usr"}, "/other/../usr is no plain path"),
        ({"name": "seg"}, "two models are called seg"),
        ({"from": "http://example.org/m"}, "the https:// address"),
        ({"from": "https://example.org/a/../m"}, "the https:// address"),
        ({"files": {"a": {"sha256": "0" * 64}}}, "other is both one file and a folder"),
        ({"sha256": None, "files": {"../a": {"sha256": "0" * 64}}}, "a file's path below `from`"),
        ({"sha256": None, "files": {"a": {"sha256": "0" * 64}, "a/b": {"sha256": "0" * 64}}}, "a is a file, and a/b"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said(
    hpcgen: Command, server: FileServer, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    entry = {"name": "other", "from": "https://example.org/m", "sha256": "0" * 64, "to": "/other", **change}
    stack(server, tmp_path, {key: value for key, value in entry.items() if value is not None})
    done = hpcgen("job", "--site", "workstation", cwd=tmp_path)
    assert done.returncode == 3 and said in done.stderr


def test_a_script_binds_them_and_ends_where_they_are_not(hpcgen: Command, server: FileServer, tmp_path: Path) -> None:
    stack(server, tmp_path)
    done = hpcgen("job", "--site", "workstation", "-o", "job.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    script = (tmp_path / "job.sh").read_text()
    assert ":/models/seg:ro\n" in script and ":/models/bert:ro\n" in script
    (tmp_path / "docker").write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    (tmp_path / "docker").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    words = ["bash", "job.sh"]
    alone = subprocess.run(words, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert alone.returncode == 66 and "hpcgen data fetch brings it" in alone.stderr
    run = hpcgen("run", "--site", "workstation", cwd=tmp_path, env={"PATH": path, "HPCGEN_PREFLIGHT": "0"})
    assert run.returncode == 0 and "bert: fetched 300 kB" in run.stderr, run.stderr
    assert f"{tmp_path}/.cache/models/" in run.stdout
    again = subprocess.run(words, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def of_hub(server: FileServer, address: str, name: str, to: str) -> dict[str, Any]:
    server.files[f"{address}/resolve/{COMMIT}/config.json"] = CONFIG
    files = {"config.json": {"sha256": sha(CONFIG), "size": len(CONFIG)}}
    return {"name": name, "from": server.url(f"{address}/resolve/{COMMIT}"), "files": files, "to": to}


def started(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A job script in place of whose engine the words of it are printed."""
    (folder / "docker").write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    (folder / "docker").chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HPCGEN_PREFLIGHT": "0", **more}
    return subprocess.run(["bash", *words], cwd=folder, env=env, capture_output=True, text=True)


def test_repositories_of_the_hub_are_found_by_name_in_a_cache_folder_of_the_job(
    hpcgen: Command, server: FileServer, tmp_path: Path
) -> None:
    data_set = of_hub(server, "datasets/org/squad", "squad", "/data/squad")
    older = {**of_hub(server, "org/bert", "older", "/models/older"), "from": server.url(f"org/bert/resolve/{'b' * 40}")}
    server.files[f"org/bert/resolve/{'b' * 40}/config.json"] = CONFIG
    stack(server, tmp_path, of_hub(server, "org/bert", "mine", "/models/mine"), data_set, older)
    assert fetch(hpcgen, tmp_path).returncode == 0
    assert hpcgen("job", "--site", "workstation", "-o", "job.sh", cwd=tmp_path).returncode == 0
    for _ in range(2):
        done = started(tmp_path, "job.sh")
        assert done.returncode == 0, done.stderr
    cache = next((tmp_path / ".cache" / "models").glob("hub-*"))
    assert f"{cache}:/hub\n" in done.stdout and "/models/mine:ro" in done.stdout
    assert "export HF_HUB_CACHE=/hub\n" in (tmp_path / "job.sh").read_text()
    assert kept(cache) == {
        "models--org--bert/refs/main": COMMIT.encode(),
        "datasets--org--squad/refs/main": COMMIT.encode(),
    }
    links = {str(path.relative_to(cache)): str(path.readlink()) for path in cache.rglob("*") if path.is_symlink()}
    assert links == {
        f"models--org--bert/snapshots/{COMMIT}": "/models/mine",
        f"models--org--bert/snapshots/{'b' * 40}": "/models/older",
        f"datasets--org--squad/snapshots/{COMMIT}": "/data/squad",
    }
    # Where the models are, somebody else may have fetched them, and nothing can be written.
    own = tmp_path / "own"
    own.mkdir()
    shutil.copytree(tmp_path / ".cache" / "models", own / "models", symlinks=True)
    shutil.rmtree(own / "models" / cache.name)
    (own / "models" / cache.name).touch()
    shutil.rmtree(cache)
    done = started(tmp_path, "job.sh", HPCGEN_CACHE=str(own))
    assert done.returncode == 0 and f"{cache}:/hub\n" in done.stdout, done.stderr
    assert f"{own}/models/" in done.stdout
    # What a job has moved on is as the stack says when the next one starts.
    (cache / "models--org--bert/refs/main").write_text("c" * 40)
    assert started(tmp_path, "job.sh").returncode == 0
    assert (cache / "models--org--bert/refs/main").read_text() == COMMIT


@pytest.mark.parametrize(
    ("address", "folder"),
    [
        (f"https://example.org/org/bert/resolve/{COMMIT}", "models--org--bert"),
        (f"https://example.org/gpt2/resolve/{COMMIT}", "models--gpt2"),
        (f"https://example.org/datasets/org/squad/resolve/{COMMIT}", "datasets--org--squad"),
        (f"https://example.org/datasets/squad/resolve/{COMMIT}", "datasets--squad"),
        (f"https://example.org/mirror/api/hub/org/bert/resolve/{COMMIT}", "models--org--bert"),
        (f"https://example.org/mirror/datasets/org/squad/resolve/{COMMIT}", "datasets--org--squad"),
        ("https://example.org/org/bert/resolve/main", None),
        (f"https://example.org/org/bert/resolve/{COMMIT}/onnx", None),
    ],
)
def test_the_name_on_the_hub_is_read_from_the_address(address: str, folder: str | None) -> None:
    model = Model(name="m", from_=address, to="/m", files={"config.json": ModelFile(sha256="0" * 64)})
    assert [each.folder for each in hub_repositories([model])] == ([folder] if folder else [])


def test_no_cache_of_the_hub_where_none_is_of_it_and_the_users_own_in_its_stead(
    hpcgen: Command, server: FileServer, tmp_path: Path
) -> None:
    stack(server, tmp_path)
    assert "/hub" not in hpcgen("job", "--site", "workstation", cwd=tmp_path).stdout
    stack(server, tmp_path, of_hub(server, "org/bert", "mine", "/models/mine"))
    (tmp_path / "own").mkdir()
    done = hpcgen("job", "--site", "workstation", "--bind", "own:/hub", cwd=tmp_path)
    assert f"{tmp_path}/own:/hub\n" in done.stdout and "hub-" not in done.stdout, done.stderr
    why = hpcgen("explain", "/hub", "--site", "workstation", "--stack", "hpcgen.yaml", cwd=tmp_path)
    assert "run.models" in why.stdout, why.stderr
    stack(server, tmp_path, of_hub(server, "org/bert", "mine", "/hub/mine"))
    refused = hpcgen("job", "--site", "workstation", cwd=tmp_path)
    assert refused.returncode == 3 and "/hub/mine and /hub" in refused.stderr


def test_a_plan_says_what_is_fetched_and_a_line_why_it_is_there(
    hpcgen: Command, server: FileServer, tmp_path: Path
) -> None:
    stack(server, tmp_path)
    plan = " ".join(hpcgen("plan", "--site", "workstation", cwd=tmp_path).stdout.split())
    assert f"bert 2 300 kB {server.url('bert')} /models/bert" in plan
    assert f"seg 1 size unknown {server.url('seg/model.onnx')} /models/seg" in plan
    why = hpcgen("explain", "/models/bert", "--site", "workstation", "--stack", "hpcgen.yaml", cwd=tmp_path)
    assert f"run.models.1.from: {server.url('bert')}" in why.stdout, why.stderr


def test_a_bind_takes_the_place_of_a_model(hpcgen: Command, server: FileServer, tmp_path: Path) -> None:
    stack(server, tmp_path)
    (tmp_path / "mine").mkdir()
    done = hpcgen("job", "--site", "workstation", "--bind", "mine:/models/seg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/mine:/models/seg" in done.stdout and "/models/bert:ro" in done.stdout
    assert done.stdout.count(":/models/seg") == 1


def test_scratch_of_an_account_needs_one(hpcgen: Command, server: FileServer, tmp_path: Path) -> None:
    stack(server, tmp_path)
    done = hpcgen("data", "fetch", "--site", "lumi-c", cwd=tmp_path, env={"SLURM_JOB_ACCOUNT": ""})
    assert done.returncode == 3 and "$SLURM_JOB_ACCOUNT has no value here" in done.stderr
    assert "--account NAME, or set HPCGEN_CACHE" in done.stderr


def test_the_hub_is_not_asked_where_models_are_named(hpcgen: Command, server: FileServer, tmp_path: Path) -> None:
    path = stack(server, tmp_path)
    data = json.loads(path.read_text())
    data["blocks"]["python_packages"] = {"options": {"packages": ["transformers==4.46.0"]}}
    path.write_text(json.dumps(data))
    job = hpcgen("job", "--site", "workstation", cwd=tmp_path).stdout
    assert "export HF_HUB_OFFLINE=1\n" in job
    data["run"]["environment"] = {"HF_HUB_OFFLINE": "0"}
    path.write_text(json.dumps(data))
    assert "export HF_HUB_OFFLINE=0\n" in hpcgen("job", "--site", "workstation", cwd=tmp_path).stdout
    data["run"]["models"] = []
    data["run"]["environment"] = {}
    path.write_text(json.dumps(data))
    assert "HF_HUB_OFFLINE" not in hpcgen("job", "--site", "workstation", cwd=tmp_path).stdout


def test_a_bundle_has_them_for_where_no_network_is(hpcgen: Command, server: FileServer, tmp_path: Path) -> None:
    lock = locks.lock(str(stack(server, tmp_path)), "workstation", pinned=Pins())
    files = [each for each in wanted(lock, locks.CATALOG, tmp_path, own=False) if each.kind == "model"]
    assert sorted((each.name, each.file) for each in files) == [
        ("bert", "config.json"),
        ("bert", "model.safetensors"),
        ("seg", "model.onnx"),
    ]
    create_bundle(lock, files, tmp_path / "b.tar", Creation(policy=QUICK, catalog=locks.CATALOG))
    server.files.clear()
    server.requests.clear()
    away = tmp_path / "away"
    away.mkdir()
    done = hpcgen("data", "fetch", "--bundle", "../b.tar", cwd=away)
    assert done.returncode == 0 and not server.requests, done.stderr
    assert set(kept(away / ".cache").values()) == {WEIGHTS, CONFIG}
    # Of a stack that names more than the lock's did.
    other = {"name": "other", "from": "https://example.org/m", "sha256": "0" * 64, "to": "/other"}
    stack(server, away, other)
    lacking = fetch(hpcgen, away, "--stack", "hpcgen.yaml", "--bundle", "../b.tar")
    assert lacking.returncode == 3 and "b.tar does not have m of other" in lacking.stderr


def test_clean_removes_what_was_not_used_for_long_and_is_not_named_here(
    hpcgen: Command, server: FileServer, tmp_path: Path
) -> None:
    stack(server, tmp_path, of_hub(server, "org/bert", "mine", "/models/mine"))
    cache = {"HPCGEN_CACHE": str(tmp_path / "cache"), "HPCGEN_PREFLIGHT": "0"}
    assert fetch(hpcgen, tmp_path, **cache).returncode == 0
    store = tmp_path / "cache" / "models"
    assert hpcgen("job", "--site", "workstation", "-o", "job.sh", cwd=tmp_path).returncode == 0
    assert started(tmp_path, "job.sh", **cache).returncode == 0
    there = sorted(os.listdir(store))
    assert len(there) == 4
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    words = ["clean", "models", "--site", "workstation"]

    def listed(folder: Path) -> list[str]:
        found = json.loads(hpcgen(*words, "--json", cwd=folder, env=cache).stdout)
        return sorted(name for things in found for name in things["names"])

    def aged() -> None:
        for path in [store, *store.rglob("*")]:
            os.utime(path, (0, 0), follow_symlinks=False)

    assert listed(elsewhere) == []
    aged()
    assert listed(elsewhere) == there and listed(tmp_path) == []
    # A job that starts uses them.
    assert started(tmp_path, "job.sh", **cache).returncode == 0
    assert listed(elsewhere) == []
    aged()
    assert fetch(hpcgen, tmp_path, **cache).returncode == 0
    assert listed(elsewhere) == [name for name in there if name.startswith("hub-")]
    aged()
    (store / "mine").mkdir()
    assert listed(elsewhere) == there
    everything = hpcgen("clean", "--dry-run", "--site", "workstation", cwd=elsewhere, env=cache)
    assert "models and data sets" not in everything.stdout
    done = hpcgen(*words, "--yes", cwd=elsewhere, env=cache)
    assert done.returncode == 0 and "removed 4 of 4" in done.stderr, done.stderr
    assert os.listdir(store) == ["mine"]
    assert "--site is missing" in hpcgen("clean", "models", cwd=elsewhere, env=cache).stderr


def git_name(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def hub(server: FileServer) -> str:
    """A repository of a hub as its interface describes one; the commit that main is."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    siblings = [
        {"rfilename": ".gitattributes", "size": 3, "blobId": git_name(b"a\nb")},
        {"rfilename": "config.json", "size": len(CONFIG), "blobId": git_name(CONFIG)},
        {
            "rfilename": "w/model.safetensors",
            "size": len(WEIGHTS),
            "blobId": "1" * 40,
            "lfs": {"sha256": sha(WEIGHTS), "size": len(WEIGHTS), "pointerSize": 134},
        },
    ]
    answer = json.dumps({"sha": commit, "siblings": siblings}).encode()
    server.files["api/models/org/bert/revision/main?blobs=true"] = answer
    server.files[f"org/bert/resolve/{commit}/config.json"] = CONFIG
    return commit


def test_a_repository_of_the_hub_is_pinned_by_commit_and_hashes(
    hpcgen: Command, server: FileServer, tmp_path: Path
) -> None:
    commit = hub(server)
    endpoint = server.url("")[:-1]
    given = {"HF_ENDPOINT": endpoint, "HF_TOKEN": TOKEN}
    done = hpcgen("data", "pin", f"{endpoint}/org/bert", env=given)
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout) == [
        {
            "name": "bert",
            "from": f"{endpoint}/org/bert/resolve/{commit}",
            "to": "/models/bert",
            "files": {
                "config.json": {"sha256": sha(CONFIG), "size": len(CONFIG)},
                "w/model.safetensors": {"sha256": sha(WEIGHTS), "size": len(WEIGHTS)},
            },
        }
    ]
    assert "left out: '.gitattributes'" in done.stderr and TOKEN not in done.stdout + done.stderr
    assert {headers["authorization"] for _, headers in server.requests} == {f"Bearer {TOKEN}"}
    # What the weights are is known without them.
    assert not server.asked(f"org/bert/resolve/{commit}/w/model.safetensors")
    some = hpcgen("data", "pin", f"{endpoint}/org/bert", "--include", "w/*", env=given)
    assert list(yaml.safe_load(some.stdout)[0]["files"]) == ["w/model.safetensors"]
    server.files[f"org/bert/resolve/{commit}/config.json"] = CONFIG + b" "
    wrong = hpcgen("data", "pin", f"{endpoint}/org/bert", env=given)
    assert wrong.returncode == 11 and "is not the file that the commit names" in wrong.stderr


def test_a_file_is_pinned_by_what_it_is_now(hpcgen: Command, server: FileServer) -> None:
    done = hpcgen("data", "pin", server.url("seg/model.onnx"))
    assert done.returncode == 0, done.stderr
    assert "reading: 1 file, 300 kB" in done.stderr
    entry = {"name": "model-onnx", "from": server.url("seg/model.onnx"), "to": "/models/model-onnx"}
    assert yaml.safe_load(done.stdout) == [{**entry, "sha256": sha(WEIGHTS), "size": len(WEIGHTS)}]


def test_a_token_goes_to_the_hub_alone_and_is_never_said(
    hpcgen: Command, server: FileServer, tls_files: tuple[Path, Path], tmp_path: Path
) -> None:
    with serving(tls_files) as elsewhere:
        elsewhere.files["weights"] = WEIGHTS
        server.faults["seg/model.onnx"] = [f"to:{elsewhere.url('weights')}"]
        stack(server, tmp_path)
        done = fetch(hpcgen, tmp_path, HF_ENDPOINT=server.url("")[:-1], HF_TOKEN=TOKEN)
        assert done.returncode == 0, done.stderr
        assert server.asked("seg/model.onnx")[0]["authorization"] == f"Bearer {TOKEN}"
        assert "authorization" not in elsewhere.asked("weights")[0]
    server.requests.clear()
    other = tmp_path / "other"
    other.mkdir()
    stack(server, other)
    server.faults = {"bert/config.json": ["status:401"], "seg/model.onnx": ["ok"]}
    refused = fetch(hpcgen, other, HF_TOKEN=TOKEN)
    assert "it requires a user name and a password, or a token" in refused.stderr
    assert TOKEN not in refused.stderr and not [each for _, each in server.requests if "authorization" in each]
    assert TOKEN.encode() not in b"".join([*kept(tmp_path).values()])
