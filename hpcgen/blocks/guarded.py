"""What goes wrong inside a block's own code is told as the block's, with its file and line."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import GeneratorType
from typing import Any

from hpcgen.blocks.steps import Run, StepError
from hpcgen.errors import HpcgenError, InputError
from hpcgen.support.places import place_in

_STEPS = ("build", "prepare", "finish")
_MAY_BE_NONE = ("base_image", "preference")


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which raises InputError in place of any other exception, and where it gives no result.

    Errors of hpcgen that a block raises for its users pass as they are.
    """

    @functools.wraps(function)
    def call(*args: Any, **more: Any) -> Any:
        try:
            result = function(*args, **more)
        except Exception as error:
            raise block_error(error, function, args) from error
        name = function.__name__
        if result is None and name not in _MAY_BE_NONE:
            expected = "`yield run(...)` for each step" if name in _STEPS else ""
            raise InputError(f"{name}() gives no result", _start(function), expected, f"return or yield it in {name}()")
        if name in _STEPS:
            listed = _steps(result, function, args)
            return listed if isinstance(result, GeneratorType) else list(listed)
        return result

    return call


def _steps(steps: Iterable[Any], function: Callable[..., Any], args: tuple[Any, ...]) -> Iterator[Run]:
    """Steps as they come; their generator runs the block's code only now."""
    try:
        for step in steps:
            if not isinstance(step, Run):
                message = f"{function.__name__}() yields {step!r:.60}, which is not a step"
                raise InputError(message, _start(function), "run('a few words', command, ...)")
            yield step
    except Exception as error:
        raise block_error(error, function, args) from error


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
    needs = next((arg.others for arg in args if hasattr(arg, "others")), None) if isinstance(error, KeyError) else None
    expected = f"one of this block's needs: {', '.join(sorted(needs)) or 'none'}" if needs is not None else ""
    message = f"{type(error).__name__}: {error}"
    return InputError(message, where, expected, "correct the block; --debug before the subcommand shows the traceback")


def _files(function: Callable[..., Any], args: Iterable[Any]) -> list[str]:
    """The file of the block's own class, then the function's, which may be of a class that it is made from."""
    code = getattr(function, "__code__", None)
    owner = next(iter(args), None)
    module = sys.modules.get(type(owner).__module__) if hasattr(owner, "needs") else None
    files = (getattr(module, "__file__", None), code.co_filename if code is not None else None)
    return [file for file in files if file is not None]


def _start(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}()" if code is not None else repr(function)
