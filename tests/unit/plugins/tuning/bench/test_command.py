"""``hpcgen bench`` with an engine that starts nothing but Python, here, with a NumPy that is made up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hpcgen.api import default_catalog
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from tests.conftest import Command
from tests.unit.plugins.tuning.bench.test_programs import NUMPY

ENGINE = """\
#!/bin/bash
[ "$1" != --version ] || { echo 0.31; exit; }
while [ "$1" != python3 ]; do shift; done
PYTHONPATH=MODULES exec "$@"
"""
GEMM = ("--workload", "gemm", "--vary", "framework=numpy", "--rounds", "2", "--seconds", "1")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A folder with the kit of a stack that has no framework."""
    catalog = default_catalog()
    kit = make_kit(make_plan(catalog, catalog.site("supermuc"), catalog.stack("mpi-hello")), catalog)
    place = tmp_path / "image" / "opt" / "hpcgen" / "kit"
    for name, file in kit.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(file.text)
    (tmp_path / "image" / "ch").mkdir()
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "numpy.py").write_text(NUMPY)
    programs = {
        "ch-run": ENGINE.replace("MODULES", str(tmp_path / "modules")),
        "mpiexec": '#!/bin/bash\nshift 4\nexec "$@"\n',
        "sbatch": "#!/bin/sh\nfor script; do :; done\necho 7\n",
        "scontrol": "#!/bin/sh\n",
    }
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "own").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "env").write_text("module() { :; }")
    return tmp_path / "image"


def bench(
    hpcgen: Command, image: Path, *words: str, own: bool = False, job: str = "7"
) -> subprocess.CompletedProcess[str]:
    folder = image.parent
    env = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "BASH_ENV": str(folder / "env"), "SLURM_JOB_ID": job}
    before = ("--collection", str(folder / "own")) if own else ()
    return hpcgen(*before, "bench", str(image), *words, env=env, cwd=folder / "work")


def test_rows_go_to_the_own_collection_and_the_table_to_stdout(hpcgen: Command, image: Path) -> None:
    done = bench(hpcgen, image, *GEMM, "--vary", "threads=1,2", "--html", "page.html", own=True)
    assert done.returncode == 0, done.stderr
    page = ElementTree.fromstring((image.parent / "work" / "page.html").read_text().partition("</head>")[2][:-8])
    assert len(list(page.iter("{http://www.w3.org/2000/svg}circle"))) == 2, "a dot for each pair"
    assert "gemm      threads=1 framework=numpy  numpy  " in done.stdout
    kept = (image.parent / "own" / "measurements" / "bench.jsonl").read_text()
    rows = [json.loads(line) for line in kept.splitlines()]
    gflops = [row for row in rows if row["metric"] == "gflops"]
    assert [row["threads_per_rank"] for row in gflops] == [1, 2]
    assert gflops[0]["hardware"]["site"] == "supermuc" and "hpcgen" in gflops[0]["command"]
    assert "gemm: round 2 of 2; best so far" in done.stderr


def test_without_a_collection_nothing_is_kept_and_that_is_said(hpcgen: Command, image: Path) -> None:
    done = bench(hpcgen, image, *GEMM, "--json")
    told = json.loads(done.stdout)
    assert "results are not saved" in done.stderr and told["file"] is None
    assert len(told["variants"][0]["rates"]) == 2 and told["measurements"][0]["metric"] == "gflops"


def test_where_nothing_ran_the_job_failed(hpcgen: Command, image: Path) -> None:
    done = bench(hpcgen, image, "--workload", "mlp", "--json")
    assert done.returncode == 10
    assert "mlp: there is no program for it with the image's blocks, only with pytorch, tensorflow, jax" in done.stderr


def test_wrong_usage(hpcgen: Command, image: Path) -> None:
    for words, said in (
        ((), "give at least one IMAGE and --workload"),
        ((*GEMM, "--queue", "test"), "--queue requires --submit"),
        (("--workload", "gem"), "did you mean gemm?"),
        ((*GEMM, "--vary", "thread=1"), "did you mean threads?"),
        ((*GEMM, "--tasks", "2"), "--tasks requires --submit"),
        ((*GEMM, "--tasks", "3", "--submit"), "3 tasks for 2 rounds"),
        ((*GEMM, "--share", "2"), "--share requires --keep"),
        ((*GEMM, "--share", "2", "--keep", "rounds"), "--share is only for tasks of an array"),
    ):
        done = bench(hpcgen, image, *words)
        assert done.returncode in (2, 3, 4) and said in done.stderr, done.stderr


def test_the_same_command_is_a_job_with_submit(hpcgen: Command, image: Path) -> None:
    done = bench(hpcgen, image, *GEMM, "--submit", "--no-follow", "--account", "abc", "--time", "20m")
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    text = (image.parent / "work" / ".hpcgen/jobs/bench-mpi-hello-1/job.slurm").read_text()
    for option in ("--nodes=1", "--account=abc", "--time=00:20:00"):
        assert f"#SBATCH {option}\n" in text
    assert "bench" in text.splitlines()[-1] and "--submit" not in text and "framework=numpy" in text


def test_several_nodes_are_those_of_a_job(hpcgen: Command, image: Path) -> None:
    done = bench(hpcgen, image, *GEMM, "--nodes", "2", job="")
    assert done.returncode == 6 and "2 nodes require an allocation, and there is none here" in done.stderr
    assert "hpcgen bench --submit, or hpcgen bench inside: salloc" in done.stderr
    done = bench(hpcgen, image, *GEMM, "--nodes", "2", "--submit", "--no-follow", "--account", "abc", job="")
    assert done.returncode == 0, done.stderr
    text = (image.parent / "work" / ".hpcgen/jobs/bench-mpi-hello-1/job.slurm").read_text()
    assert "#SBATCH --nodes=2\n" in text and "--nodes 2" in text.splitlines()[-1]


def test_rounds_are_an_arrays_tasks_and_a_job_after_it_has_the_table(hpcgen: Command, image: Path) -> None:
    job = ("--submit", "--no-follow", "--account", "abc", "--tasks", "2")
    jobs = image.parent / "work" / ".hpcgen" / "jobs"
    for number, folder in enumerate(("bench-rounds-1", "bench-rounds-2"), 1):
        done = bench(hpcgen, image, *GEMM, *job)
        assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
        array, end = ((jobs / f"bench{part}-mpi-hello-{number}" / "job.slurm").read_text() for part in ("", "-end"))
        assert "#SBATCH --array=0-1\n" in array and "#SBATCH --dependency=afterany:7\n" in end
        assert array.rstrip().endswith(f"--keep {folder} --share 2") and end.rstrip().endswith(f"--keep {folder}")
    refused = bench(hpcgen, image, *GEMM, *job[:-1], "5000", "--rounds", "5000")
    assert refused.returncode == 6 and "an array of 5000 tasks" in refused.stderr
    assert sorted(path.name for path in (image.parent / "work").glob("bench-rounds-*")) == [
        "bench-rounds-1",
        "bench-rounds-2",
    ]


def test_tasks_measure_and_the_last_job_adds_the_rows_once(
    hpcgen: Command, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = ("--keep", "rounds")
    for task in ("0", "1"):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", task)
        done = bench(hpcgen, image, *GEMM, *keep, "--share", "2", own=True)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    monkeypatch.delenv("SLURM_ARRAY_TASK_ID")
    assert not (image.parent / "own" / "measurements").exists()
    done = bench(hpcgen, image, *GEMM, *keep, "--json", own=True)
    assert done.returncode == 0 and "round 1" not in done.stderr, done.stderr
    assert len(json.loads(done.stdout)["variants"][0]["rates"]) == 2
    kept = image.parent / "own" / "measurements" / "bench.jsonl"
    before = kept.read_text()
    again = bench(hpcgen, image, *GEMM, *keep, own=True)
    assert "nothing is added: these rounds of rounds were added before" in again.stderr and kept.read_text() == before
    more = bench(hpcgen, image, *GEMM, *keep, "--rounds", "3", own=True)
    assert "round 3 of 3" in more.stderr and "round 2" not in more.stderr
    assert json.loads(kept.read_text().splitlines()[-1])["repetitions"] == 3


# without one of hpcgen's


# What comes before the program are variables of the image, by which this machine's would not be found.
ANY = """\
#!/bin/bash
[ "$1" != --version ] || { echo 0.31; exit; }
while [ "$1" != -- ]; do shift; done
while [ "$1" != -c ]; do program=$1; shift; done
PYTHONPATH=MODULES exec "$program" "$@"
"""


@pytest.fixture
def foreign(image: Path) -> Path:
    """A folder that hpcgen did not build, beside the other, and an engine that starts whatever it is told."""
    folder = image.parent
    (folder / "bin" / "ch-run").write_text(ANY.replace("MODULES", str(folder / "modules")))
    (folder / "foreign" / "bin").mkdir(parents=True)
    return folder / "foreign"


def rows_in(path: Path) -> dict[str, dict[str, Any]]:
    """The software of the rates, by what started it and whose image it is."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    found = [row for row in rows if row["metric"] == "gflops"]
    return {row["software"]["engine"] + row["software"].get("foreign", ""): row for row in found}


def test_a_foreign_image_and_no_container_are_compared_with_ours(hpcgen: Command, image: Path, foreign: Path) -> None:
    rows, python = image.parent / "rows.jsonl", foreign.parent / "bin" / "own-python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={foreign.parent / "modules"} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    more = ("--here", "--python", str(python), "--to", str(rows))
    done = bench(hpcgen, image, str(foreign), *GEMM[:2], "--vary", "framework=numpy", *more)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("gemm ")]
    assert "no container" in lines[0] and "the baseline of the comparison" in lines[0] and len(lines) == 3
    assert f"{foreign}: not built by hpcgen: sha256:" in done.stdout
    found = rows_in(rows)
    assert set(found) == {"none", "charliecloud", f"charliecloud{foreign}"}
    its, ours = found[f"charliecloud{foreign}"]["software"], found["charliecloud"]["software"]
    assert its["content"].startswith("sha256:") and its["unknown"] == ["install", "blocks"] and "stack" not in its
    assert "unknown" not in ours and ours["stack"] == "mpi-hello"
    # All with the threads of the image that says how many.
    assert len({each["threads_per_rank"] for each in found.values()}) == 1
    assert {each["hardware"]["site"] for each in found.values()} == {"supermuc"}


def test_the_users_own_command_is_the_baseline_of_the_same_rounds(hpcgen: Command, image: Path) -> None:
    modules = image.parent / "modules"
    words = ("--against", f"env 'PYTHONPATH={modules}' {sys.executable}", "--vary", "threads=1,2", "--json")
    done = bench(hpcgen, image, *GEMM, *words)
    assert done.returncode == 0, done.stderr
    first, _, ours, _ = json.loads(done.stdout)["variants"]
    assert (first["image"], first["engine"], first["first"]) == ("against", "none", True)
    assert ours["engine"] == "charliecloud" and len(ours["rates"]) == len(ours["cpu_seconds"]) == 2
    for words, said in (
        (("--against", "'"), "is not a command"),
        (("--against", " "), "--against requires a command"),
        (("--against", "no-such-python -I"), "no-such-python"),
        (("--against", "python3", "--nodes", "2"), "--against measures one node"),
        (("--repeat", "2", "--keep", "rounds"), "--repeat measures rounds again"),
    ):
        done = bench(hpcgen, image, *GEMM, *words)
        assert done.returncode in (2, 69) and said in done.stderr, done.stderr


def test_a_foreign_image_alone_needs_a_site(hpcgen: Command, foreign: Path) -> None:
    done = bench(hpcgen, foreign, *GEMM)
    assert done.returncode == 3 and "--site NAME|FILE" in done.stderr and "has no record of a site" in done.stderr
    words = ("--site", "supermuc", "--workload", "mlp,gemm", "--rounds", "1", "--seconds", "1")
    done = bench(hpcgen, foreign, *words, "--layout", "1x2", "--layout", "2x1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("several ranks cannot be started in an image that hpcgen did not build") == 1
    line, _ = [line for line in done.stdout.splitlines() if line.startswith("mlp ")]
    assert "there is no program for it with /" in line and "only with pytorch, tensorflow, jax" in line


def test_what_means_nothing_without_a_container_is_refused(hpcgen: Command, image: Path) -> None:
    for words, said in (
        (("--python", "python3"), "--python requires --here"),
        (("--here", "--nodes", "2"), "--here measures one node"),
    ):
        done = bench(hpcgen, image, *GEMM, *words)
        assert done.returncode == 2 and said in done.stderr
