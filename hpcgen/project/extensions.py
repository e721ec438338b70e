"""Modules that a Python project compiles when it is installed: compiled in the place of its files, which are copied."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import Position, Problems
from hpcgen.core.model.own_project import BuildBackend, CompiledModules
from hpcgen.core.model.project import BLOCK
from hpcgen.core.support.package_names import asked_name, normal_name
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
    texts = {asked_name(each): each for each in wanted}
    by = ("asked for by pyproject.toml", "the build of pyproject.toml")
    _bring(dict.fromkeys(texts, backend.module.where), texts, by, found, draft)


def _add_tools(compiled: CompiledModules, found: Found, catalog: Catalog, draft: Draft) -> None:
    """The packages that setup.py imports, where no list has them."""
    own = Modules(found).own_names
    names = [each for each in compiled.imports if not is_standard(each.text) and each.text not in own]
    wanted = dict.fromkeys(_TOOLS, compiled.modules[0].where)
    wanted |= {package: each.where for each in names for package in packages_with(each.text)[:1]}
    wanted = {name: where for name, where in wanted.items() if catalog.distributions.get(name) not in draft.blocks}
    _bring(wanted, {}, ("imported by setup.py", "setup.py, which compiles modules,"), found, draft)


def _bring(
    wanted: Mapping[str, Position], texts: Mapping[str, str], by: tuple[str, str], found: Found, draft: Draft
) -> None:
    """Packages that a build needs and no list has.

    ``texts``: the requirements of those that ask for a version. ``by``: who asks, beside a list of conda and else.
    """
    listed = _listed(found, draft)
    missing = {name: where for name, where in wanted.items() if not {normal_name(name), conda_name(name)} & listed}
    if not missing:
        return
    if "conda_packages" in draft.blocks:
        add_to_conda(draft, missing, f"{by[0]}, and not in the list")
        return
    options = draft.blocks[BLOCK].setdefault("options", {})
    asked = [texts.get(name, name) for name in missing]
    options["requirements"] = sorted({*options.get("requirements", []), *asked})
    draft.because(("blocks", BLOCK), None, f"{by[1]} needs {some(sorted(missing))}")


def _listed(found: Found, draft: Draft) -> set[str]:
    """Names of the packages that the stack has so far."""
    names: set[str] = set()
    for block in (BLOCK, "conda_packages"):
        options = draft.options_of(block)
        names |= {normal_name(asked_name(each)) for each in options.get("requirements", [])}
        for path in options.get("files", []):
            if block == BLOCK and (packages := found.packages(path)) is not None:
                names |= {each.name for each in packages.requirements}
            elif block != BLOCK and (conda := found.conda(path)) is not None:
                names |= {each.name for each in conda.needs}
    return names
