"""Modules of a package without the package's own ``__init__``, which may load far more than is asked for.

``import hpccm`` loads all of hpccm's building blocks, and ``import archspec.cpu`` what finds out the CPU of this
machine (ctypes, subprocess), where a recipe needs the primitives of the one and the table of the other.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType

_ONE_AT_A_TIME = threading.RLock()


def module_alone(name: str) -> ModuleType:
    """The module ``package.module``, imported, with its package's ``__init__`` left for later.

    The package is run in full as soon as anything is looked up in it that it does not have yet, be that an attribute
    or another module, so whoever imports it in the usual way notices nothing. One that was imported before stays.

    ModuleNotFoundError: if there is no such module.
    """
    package = name.rpartition(".")[0]
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        # Python 3.12 and later warn of backslashes in other people's modules when they are compiled.
        warnings.simplefilter("ignore", SyntaxWarning)
        spec = None if package in sys.modules else importlib.util.find_spec(package)
        if spec is None:
            return importlib.import_module(name)
        _put_in_place(importlib.util.module_from_spec(spec))
        try:
            return importlib.import_module(name)
        finally:
            _run_when_asked(sys.modules[package], spec)


def _put_in_place(package: ModuleType) -> None:
    sys.modules[package.__name__] = package
    parent, _, name = package.__name__.rpartition(".")
    if parent:
        setattr(sys.modules[parent], name, package)


def _run_when_asked(package: ModuleType, spec: ModuleSpec) -> None:
    running = threading.RLock()
    waiting = [spec.loader]

    def rest(name: str) -> object:
        with running:
            if waiting:
                loader = waiting.pop()
                if spec.submodule_search_locations is not None:
                    package.__path__ = spec.submodule_search_locations
                if loader is not None:
                    loader.exec_module(package)
        if name in vars(package):
            return vars(package)[name]
        raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")

    package.__getattr__ = rest  # type: ignore[method-assign]
    # By which the further modules are found.
    del package.__path__
