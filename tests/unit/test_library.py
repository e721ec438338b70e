"""The library in one process: interleaved and threaded renders are the same bytes as separate ones."""

from __future__ import annotations

import inspect
import os
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.lock import Pins
from hpcgen.core.model.plan import Finding, PlannedLicence
from hpcgen.core.model.stack import StackBlock
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from hpcgen.supply.pin.locking import lock_of
from tests.conftest import ROOT

HERE = {**os.environ, "PYTHONPATH": str(ROOT)}
FORMATS = {"supermuc": "charliecloud", "hlrs-testbed": "singularity", "workstation": "docker"}
CASES = [
    (site, stack, format, settings)
    for site in FORMATS
    for stack in ("tf-horovod", "mpi-hello")
    for format in ("docker", "singularity", "charliecloud")
    for settings in ((), ("base.provider=debian",) if site == "workstation" else ("gnu.fortran=true",))
]


def rendered(case: tuple[str, str, str, tuple[str, ...]], catalog: Catalog | None = None) -> dict[str, str]:
    site, stack, format, settings = case
    catalog = catalog or Catalog()
    plan = make_plan(
        catalog,
        catalog.site(site),
        catalog.stack(stack),
        settings=settings,
        format=format,  # type: ignore[arg-type]
        allow_unsupported=True,
    )
    return {name: file.text for name, file in make_kit(plan, catalog).files.items()}


def test_sixteen_threads_give_the_bytes_of_separate_renders() -> None:
    separate = [rendered(case) for case in CASES]
    work = [(number, case) for number, case in enumerate(CASES)] * 4
    random.Random(7).shuffle(work)
    shared = Catalog()
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda item: (item[0], rendered(item[1], shared)), work))
    assert len(results) == 4 * len(CASES)
    for number, files in results:
        assert files == separate[number], CASES[number]


def test_hpccm_globals_are_as_they_were() -> None:
    import hpccm.config

    before = (hpccm.config.g_ctype, hpccm.config.g_linux_distro, hpccm.config.g_singularity_version)
    for case in CASES[:6]:
        rendered(case)
    assert (hpccm.config.g_ctype, hpccm.config.g_linux_distro, hpccm.config.g_singularity_version) == before


def test_hash_seed_does_not_change_a_byte() -> None:
    command = [sys.executable, "-m", "hpcgen", "render", "--site", "supermuc", "--stack", "tf-horovod", "--json"]
    outputs = {
        subprocess.run(
            command, env={"PYTHONHASHSEED": seed, "PATH": ""}, cwd=ROOT, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1


def test_the_interface_shows_itself_and_no_module_hides_a_function() -> None:
    import hpcgen.planning.planner
    import hpcgen.running.here

    assert {"plan", "render", "write_kit", "Site", "Plan", "Kit", "JobRequest", "InputError"} <= set(dir(hpcgen))
    for name in dir(hpcgen):
        assert not isinstance(getattr(hpcgen, name), ModuleType), name


def test_importing_the_library_loads_nothing_of_it() -> None:
    code = "import hpcgen, sys; print(sorted(name for name in sys.modules if name.startswith('hpcgen')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['hpcgen', 'hpcgen._version']"


FUNCTIONS = [name for name in dir(hpcgen) if name[0].islower() and name != "need"]  # whose words are in Need


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_of_a_public_function_is_typed_and_explained(name: str) -> None:
    function = getattr(hpcgen, name)
    text = inspect.getdoc(function) or ""
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty
        assert re.search(rf"\b{parameter.name}\b", text), f"{name}() does not say what {parameter.name} is"


@pytest.mark.parametrize(
    ("walltime", "option"), [("90m", "90m"), (timedelta(minutes=90), "01:30:00"), (timedelta(days=2), "48:00:00")]
)
def test_a_time_limit_is_text_or_a_timedelta(walltime: str | timedelta, option: str) -> None:
    plan = hpcgen.plan("supermuc", "mpi-hello", walltime=walltime)
    assert plan.command.endswith(f"--time {option}")


@pytest.mark.parametrize(
    ("walltime", "said"),
    [
        (3600, "plan(): walltime: 3600 has no unit\n.*\n  remedy: write '3600s' for seconds, or '3600m' for minutes"),
        (timedelta(0), "walltime: 0:00:00 is not a time limit"),
        (timedelta(seconds=1.5), "0:00:01.500000 is not a time limit\n  expected: whole seconds"),
        ([1], "`walltime` must be"),
    ],
)
def test_a_time_limit_of_unknown_unit_is_refused(walltime: Any, said: str) -> None:
    with pytest.raises(hpcgen.InputError, match=said.replace("(", r"\(").replace(")", r"\)")):
        hpcgen.plan("supermuc", "mpi-hello", walltime=walltime)


def test_a_plan_and_a_kit_show_themselves_briefly() -> None:
    plan = hpcgen.plan("supermuc", "mpi-hello", nodes=2)
    assert repr(plan) == (
        "<Plan mpi-hello for supermuc (thin): charliecloud, 6 blocks, 2 nodes × 4 ranks × 12 threads, 1 warning>"
    )
    told = Finding(name="name", severity="warning", message="<script>alert(1)</script>", remedy='"a" & b')
    page = msgspec.structs.replace(plan, findings=[told])._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt; (&quot;a&quot; &amp; b)" in page and "<script" not in page
    assert "<td>2 nodes × 4 ranks × 12 threads, " in page and "intel_mpi 2019" in page
    kit = hpcgen.render(plan)
    assert re.fullmatch(r"<Kit of \d+ files: build\.sh, job\.slurm, preflight\.sh, plan\.json and \d+ more>", repr(kit))
    hostile = msgspec.structs.replace(kit, notices=["<b>"])
    assert "<td>build.sh</td>" in hostile._repr_html_() and "<td>&lt;b&gt;</td>" in hostile._repr_html_()


def test_a_lock_is_rendered_as_the_command_does(tmp_path: Path) -> None:
    plan = hpcgen.plan("workstation", "mpi-hello", to_lock=True)
    lock = lock_of(plan, Catalog(), Pins())
    assert repr(lock) == f"<Lock of mpi-hello for workstation: plan hash {lock.content[:12]}>"
    (tmp_path / "hpcgen.lock").write_text(lock.text)
    words = ["render", "--locked", "hpcgen.lock"]
    done = subprocess.run(
        [sys.executable, "-m", "hpcgen", *words], cwd=tmp_path, env=HERE, capture_output=True, text=True, check=True
    )
    assert hpcgen.render(hpcgen.read_lock(tmp_path / "hpcgen.lock")).recipe == done.stdout
    assert "from=bundle" in hpcgen.render(lock, bundle=tmp_path).recipe


def test_a_bundle_is_of_the_lock_that_is_built_from_it(tmp_path: Path) -> None:
    locks = [lock_of(hpcgen.plan("workstation", stack), Catalog(), Pins()) for stack in ("mpi-hello", "pytorch")]
    with pytest.raises(hpcgen.InputError, match="cannot be read: No such file"):
        hpcgen.render(locks[0], bundle=tmp_path / "bundle")
    (tmp_path / "hpcgen.lock").write_text(locks[1].text)
    with pytest.raises(hpcgen.InputError, match="is of another lock"):
        hpcgen.build(locks[0], bundle=tmp_path)


def test_nothing_is_locked_or_built_before_its_licences_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HPCGEN_ACCEPT_LICENCES")
    licence = PlannedLicence(name="eula", title="The EULA", url="https://example.org/eula")
    plan = msgspec.structs.replace(hpcgen.plan("workstation", "mpi-hello"), licences=[licence])
    for function in (hpcgen.lock, hpcgen.build):
        with pytest.raises(hpcgen.PolicyError, match="The EULA must be accepted by the user"):
            function(plan)


def test_a_plan_for_a_lock_needs_no_network_where_it_is_built() -> None:
    site = {"name": "far", "extends": "workstation", "network": {"internet": {"build": False}}}
    far = hpcgen.load_site(site)
    with pytest.raises(hpcgen.PolicyError, match="the building host has no internet"):
        hpcgen.plan(far, "mpi-hello")
    assert hpcgen.plan(far, "mpi-hello", to_lock=True).blocks


def test_what_is_no_image_is_an_error_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "text.sif").write_text("no image")
    for function in (hpcgen.run, hpcgen.test, hpcgen.submit):
        with pytest.raises(hpcgen.InputError, match="is not a container image of a known kind"):
            function(tmp_path / "text.sif")
    failed = hpcgen.BuildRecord(
        id="1-a-b",
        hpcgen="1",
        started="",
        site="a",
        stack="b",
        partition="p",
        format="docker",
        content="c",
        engine="podman",
        result="failed",
    )
    assert repr(failed) == "<BuildRecord 1-a-b: failed in 0 s by podman>"
    with pytest.raises(hpcgen.InputError, match="the build 1-a-b made no image"):
        hpcgen.run(failed)


def test_a_record_made_in_python_is_checked_like_a_file() -> None:
    site = hpcgen.load_site("workstation")
    wrong = msgspec.structs.replace(site, title="two\nlines", default_partition="none")
    with pytest.raises(hpcgen.InputError) as caught:
        hpcgen.plan(wrong, "mpi-hello")
    assert "site workstation: title: `title` must be text on one line" in str(caught.value)
    stack = msgspec.structs.replace(hpcgen.load_stack("mpi-hello"), blocks={"mpj": StackBlock()})
    with pytest.raises(hpcgen.InputError, match=r"stack mpi-hello: blocks\.mpj: no block is called 'mpj'"):
        hpcgen.plan(site, stack)


def test_what_breaks_the_contract_of_a_loaded_file_names_its_line() -> None:
    with pytest.raises(hpcgen.PolicyError, match=r"^site_profiles/hlrs-testbed\.yaml:\d+:\d+: "):
        hpcgen.plan(hpcgen.load_site("hlrs-testbed"), "mpi-hello", format="docker")


def test_an_unknown_format_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(hpcgen.UnknownNameError, match="did you mean docker"):
        hpcgen.plan("supermuc", "mpi-hello", format="dockr")  # type: ignore[arg-type]


def test_settings_may_be_python_values() -> None:
    plan = hpcgen.plan("workstation", "mpi-hello", settings={"gnu.fortran": True, "mpich.fortran": True})
    gnu = plan.block("gnu")
    assert gnu is not None and gnu.options["fortran"] is True
    assert plan.command.endswith("--set gnu.fortran=true --set mpich.fortran=true")


def test_a_plan_with_a_class_has_no_command_and_no_lock() -> None:
    from hpcgen.supply.pin.locking import collection_files

    class Greeting(hpcgen.Block):
        """Nothing but a name.  Source: this test"""

        name = "greeting"
        releases = {"1.0": {}, "1.1": {}}

    stack = msgspec.structs.replace(
        hpcgen.load_stack("mpi-hello"), blocks={"mpi": StackBlock(), "greeting": StackBlock()}
    )
    plan = hpcgen.plan("workstation", stack, blocks=[Greeting])
    block = plan.block("greeting")
    assert block is not None and block.version == "1.1" and plan.command == ""
    assert f"# made by hpcgen {hpcgen.__version__} from Python\n" in hpcgen.render(plan, blocks=[Greeting]).recipe
    with pytest.raises(hpcgen.InputError, match="put it in a collection"):
        collection_files(plan, hpcgen.Catalog(blocks=[Greeting]))


def test_the_public_functions() -> None:
    site, stack = hpcgen.load_site("supermuc"), hpcgen.load_stack("mpi-hello")
    kit = hpcgen.render(hpcgen.plan(site, stack))
    assert kit.recipe == kit.files["build.sh"].text
    names = {"build.sh", "job.slurm", "preflight.sh", "recipe.json", "selftest.sh", "plan.json", "hpcgen.lock"}
    assert {name for name in kit.files if "/" not in name} == names


def test_command_and_library_render_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hpcgen", "render", "--site", "hlrs-testbed", "--stack", "tf-horovod"],
        capture_output=True,
        text=True,
        check=True,
    )
    kit = hpcgen.render(hpcgen.plan(hpcgen.load_site("hlrs-testbed"), hpcgen.load_stack("tf-horovod")))
    assert done.stdout == kit.recipe


@pytest.mark.parametrize("field", ["title", "na\udcff"])
def test_text_that_cannot_be_written_is_an_input_error(field: str) -> None:
    said = {"name": "mine", "extends": "workstation", field: "a\udcff"}
    with pytest.raises(InputError, match=r"site mine: .* cannot be written as UTF-8"):
        hpcgen.load_site(said)
