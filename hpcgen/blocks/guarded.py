"""What goes wrong inside a block's own code is told as the block's, with its file and line."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import GeneratorType
from typing import Any, TypeVar

from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.steps import MADE, Environment, Packages, Run, Runtime, StepError, Test
from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.support.places import place_in, shown

T = TypeVar("T")

_STEPS = ("build", "prepare", "finish")
_MAY_BE_NONE = ("base_image", "preference")
_ONE = {"packages": Packages, "environment": Environment, "runtime": Runtime, "capabilities": Capabilities}
_LISTS: dict[str, type] = {"test": Test, "notices": str, "details": str}
NOT_YIELDED = "is created but never yielded, so it never runs"


class BlockCodeError(InputError):
    """An exception out of a block's own code: its author's mistake, not the user's."""


class UnknownPart(KeyError):
    """A name that a block asks its context for, which knows others.

    ``whose``: what these are, such as ``this block's needs``.
    """

    def __init__(self, name: str, whose: str, known: Iterable[str]) -> None:
        super().__init__(name)
        self.expected = f"one of {whose}: {', '.join(sorted(known)) or 'none'}"


def known(named: Mapping[str, T], name: str, whose: str) -> T:
    """What has that name; UnknownPart where nothing has."""
    if name not in named:
        raise UnknownPart(name, whose, named)
    return named[name]


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which raises InputError in place of any other exception, and where it gives no result.

    Errors of hpcgen that a block raises for its users pass as they are.
    """

    @functools.wraps(function)
    def call(*args: Any, **more: Any) -> Any:
        name = function.__name__
        made: list[Run] = []
        told = MADE.set(made) if name in _STEPS else None
        try:
            result = function(*args, **more)
            if name in _LISTS and result is not None and not isinstance(result, str):
                result = list(result)
        except Exception as error:
            raise block_error(error, function, args) from error
        finally:
            if told is not None:
                MADE.reset(told)
        if result is None and name not in _MAY_BE_NONE:
            expected = "`yield run(...)` for each step" if name in _STEPS else ""
            raise InputError(f"{name}() gives no result", _start(function), expected, f"return or yield it in {name}()")
        if name in _STEPS:
            listed = _steps(result, function, args, made)
            return listed if isinstance(result, GeneratorType) else list(listed)
        _check_kind(result, function)
        if name == "packages":
            _check_family(result, function, args)
        return result

    return call


def _check_kind(result: Any, function: Callable[..., Any]) -> None:
    """InputError where a method gives something else than its kind of record, or of list."""
    name = function.__name__
    kind = _ONE.get(name) or _LISTS.get(name)
    single = name in _ONE
    if kind is None or (result is None and name in _MAY_BE_NONE):
        return
    if not (isinstance(result, kind) if single else isinstance(result, list)):
        expected = f"{kind.__name__}(...)" if single else f"a list of {kind.__name__}"
        raise InputError(f"{name}() gives {result!r:.60}", _start(function), expected, f"return that in {name}()")
    for item in [] if single else result:
        if not isinstance(item, kind):
            raise InputError(f"{name}() gives {item!r:.60} in its list", _start(function), f"{kind.__name__}s alone")


def _check_family(packages: Packages, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """InputError where packages are told for other distributions' package managers alone."""
    base = getattr(args[-1], "base", None) if args else None
    managers = {*packages.build, *packages.run}
    if base is None or not managers:
        return
    manager = base.release.values.get("package_manager")
    if manager is not None and manager not in managers:
        message = f"packages for {', '.join(sorted(managers))} only: {base.name} has {manager}"
        remedy = f'add "{manager}": [...], empty if it needs none there'
        raise InputError(message, _start(function), remedy=remedy)


def _steps(steps: Iterable[Any], function: Callable[..., Any], args: tuple[Any, ...], made: list[Run]) -> Iterator[Run]:
    """Steps as they come; their generator runs the block's code only now.

    ``made``: the steps that this code makes, to see which of them it does not yield.
    """
    yielded = set()
    coming = iter(steps)
    while True:
        told = MADE.set(made)
        try:
            step = next(coming)
            if not isinstance(step, Run):
                message = f"{function.__name__}() yields {step!r:.60}, which is not a step"
                raise InputError(message, _start(function), "run('a few words', command, ...)")
        except StopIteration:
            break
        except Exception as error:
            raise block_error(error, function, args) from error
        finally:
            MADE.reset(told)
        yielded.add(step.about)
        yield step
    # One with the same words may stand for it, made anew with more commands.
    for each in made:
        if each.about not in yielded:
            raise InputError(f"the step '{each.about}' {NOT_YIELDED}", _start(function), remedy="write yield before it")


def block_error(error: Exception, function: Callable[..., Any], args: Iterable[Any] = ()) -> Exception:
    """What is told of an exception out of a block's function; the exception itself if it was raised for people."""
    told = [problem for problem in error.problems if problem.where] if isinstance(error, HpcgenError) else []
    if isinstance(error, HpcgenError) and (told or not isinstance(error, StepError)):
        return error
    files = _files(function, args)
    place = next((found for file in files if (found := place_in(error, file))), None)
    where = f"{place[0]} in {place[1]}()" if place else _start(function)
    if isinstance(error, StepError):
        return StepError(problem.at(where) for problem in error.problems)
    expected = error.expected if isinstance(error, UnknownPart) else ""
    kind = KeyError if isinstance(error, UnknownPart) else type(error)
    message = f"{kind.__name__}: {error}"
    remedy = "correct the block; --debug before the subcommand shows the traceback"
    return BlockCodeError(message, where, expected, remedy)


def _files(function: Callable[..., Any], args: Iterable[Any]) -> list[str]:
    """The file of the block's own class, then the function's, which may be of a class that it is made from."""
    code = getattr(function, "__code__", None)
    owner = next(iter(args), None)
    module = sys.modules.get(type(owner).__module__) if hasattr(owner, "needs") else None
    files = (getattr(module, "__file__", None), code.co_filename if code is not None else None)
    return [file for file in files if file is not None]


def _start(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    return (
        f"{shown(code.co_filename)}:{code.co_firstlineno} in {code.co_name}()" if code is not None else repr(function)
    )
