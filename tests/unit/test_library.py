"""The library in one process: interleaved and threaded renders are the same bytes as separate ones."""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import msgspec
import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.stack import StackBlock
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from tests.conftest import ROOT

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

    assert {"plan", "render", "write_kit", "Site", "Plan", "Kit", "JobRequest", "InputError"} <= set(dir(hpcgen))
    for name in dir(hpcgen):
        assert not isinstance(getattr(hpcgen, name), ModuleType), name


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
