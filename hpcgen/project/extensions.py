"""Modules that a Python project compiles when it is installed: compiled in the place of its files, which are copied."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import Problems
from hpcgen.core.model.own_project import BuildBackend, CompiledModules
from hpcgen.core.model.project import BLOCK
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.units import some
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found
from hpcgen.project.imported import add_to_conda, with_extensions
from hpcgen.project.modules import Modules, conda_name, is_standard, packages_with

COMPILE = "python3 setup.py build_ext --inplace"
"""The command of the build, for setup.py."""
_INSTALLED = "build/installed"
_INSTALL = f"python3 -m pip install --no-deps --no-build-isolation --no-index --target {_INSTALLED} ."
_VERSION = "SETUPTOOLS_SCM_PRETEND_VERSION=0"
_TOOLS = ("setuptools",)


def choose_extensions(found: Found, catalog: Catalog, draft: Draft) -> None:
    """The ``build`` that compiles them, with what setup.py imports; none where something else is compiled already.

    What cannot be read is no mistake here: a list that init takes has been judged where it was chosen.
    """
    from hpcgen.readers.setup_py import read_compiled_modules

    if "build" in draft.data or not draft.has_any((BLOCK, "conda_packages")):
        return
    if found.backend is not None:
        _by_backend(found.backend, found, draft)
    if "build" in draft.data or not found.tree.has("setup.py"):
        return
    quiet = found._replace(problems=Problems())
    compiled = quiet.read(read_compiled_modules, "setup.py")
    if compiled is None:
        return
    names = list(dict.fromkeys(each.text for each in compiled.modules))
    why = f"setup.py compiles {some(names)}; here in the place of its files"
    draft.put(("build", "commands"), [COMPILE], why, compiled.modules[0].where)
    if compiled.cuda is not None and "pytorch" in draft.blocks:
        with_extensions(draft, f"{compiled.cuda.text} is in CUDA", compiled.cuda.where)
    _add_tools(compiled, quiet, catalog, draft)


def _by_backend(backend: BuildBackend, found: Found, draft: Draft) -> None:
    """The project installed aside, and what that has put over its files: the compiled modules among them."""
    place = "src" if any(re.fullmatch(r"src/\w+/__init__\.pyi?", each.path) for each in found.tree.files) else "."
    install = f"{_VERSION} {_INSTALL}" if backend.of_history else _INSTALL
    commands = [install, f"cp -r {_INSTALLED}/. {place} && rm -r {_INSTALLED}"]
    why = f"{backend.module.text} compiles modules; here in the place of its files"
    draft.put(("build", "commands"), commands, why, backend.module.where)
    wanted = [*backend.requires, *(["setuptools-scm"] if backend.of_history else [])]
    wanted += ["ninja"] if backend.module.text == "mesonpy" else []
    where = backend.module.where
    names = {re.split(r"[^\w.-]", each)[0]: each for each in wanted}
    missing = {name: each for name, each in names.items() if not {name, conda_name(name)} & _listed(found, draft)}
    if "conda_packages" in draft.blocks:
        add_to_conda(draft, dict.fromkeys(missing, where), "asked for by pyproject.toml, and not in the list")
    elif missing:
        _require(missing.values(), f"the build of pyproject.toml needs {some(sorted(missing))}", draft)


def _require(packages: Iterable[str], why: str, draft: Draft) -> None:
    options = draft.blocks[BLOCK].setdefault("options", {})
    options["requirements"] = sorted({*options.get("requirements", []), *packages})
    draft.because(("blocks", BLOCK), None, why)


def _add_tools(compiled: CompiledModules, found: Found, catalog: Catalog, draft: Draft) -> None:
    """The packages that setup.py imports, where no list has them."""
    own = Modules(found).own_names
    names = [each for each in compiled.imports if not is_standard(each.text) and each.text not in own]
    wanted = dict.fromkeys(_TOOLS, compiled.modules[0].where)
    wanted |= {package: each.where for each in names for package in packages_with(each.text)[:1]}
    wanted = {name: where for name, where in wanted.items() if catalog.distributions.get(name) not in draft.blocks}
    listed = _listed(found, draft)
    missing = {name: where for name, where in wanted.items() if not {normal_name(name), conda_name(name)} & listed}
    if not missing:
        return
    if "conda_packages" in draft.blocks:
        add_to_conda(draft, missing, "imported by setup.py, and not in the list")
        return
    _require(missing, f"setup.py, which compiles modules, needs {some(sorted(missing))}", draft)


def _listed(found: Found, draft: Draft) -> set[str]:
    """Names of the packages that the stack has so far."""
    names: set[str] = set()
    for block in (BLOCK, "conda_packages"):
        options = draft.blocks.get(block, {}).get("options", {})
        names |= {normal_name(each.partition("=")[0]) for each in options.get("requirements", [])}
        for path in options.get("files", []):
            if block == BLOCK and (packages := found.packages(path)) is not None:
                names |= {each.name for each in packages.requirements}
            elif block != BLOCK and (conda := found.conda(path)) is not None:
                names |= {each.name for each in conda.needs}
    return names
