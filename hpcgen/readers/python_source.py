"""What a Python file says of itself: whether it is a program, and what it imports. Read as text; nothing is run."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord, ImportedName, PythonSource
from hpcgen.readers.folder import ProjectFolder

_IMPORT = re.compile(r"^[ \t]*(?:import[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*)|from[ \t]+([\w.]+)[ \t]+import\b)", re.M)
_PROGRAM = re.compile(r"^if[ \t]+__name__[ \t]*==[ \t]*[\"']__main__[\"']", re.M)
_PARALLEL = re.compile(
    r"\b(init_process_group|DistributedDataParallel|FullyShardedDataParallel|fully_shard|jax\.distributed\.initialize|"
    r"deepspeed\.initialize|deepspeed\.init_distributed)\("
)
_SPAWNS = re.compile(r"\b((?:torch\.multiprocessing|multiprocessing|mp)\.(?:spawn|start_processes))\(")
_INTERFACE = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(argparse|click|fire|hydra|typer|tyro|docopt|jsonargparse|absl[ \t]+import[ \t]+app|"
    r"absl\.app)\b|\b(tf\.(?:compat\.v1\.)?app\.run|HfArgumentParser|LightningCLI|sys\.argv)\b",
    re.M,
)
_OLD = re.compile(r"\b(tf\.(?:contrib|flags|app|Session|placeholder|get_variable|variable_scope|gfile|layers))\b")
_OLD_KERAS = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+((?:tensorflow\.)?keras\.(?:"
    r"layers\.(?:advanced_activations|convolutional|core|embeddings|normalization|pooling|recurrent|wrappers)|"
    r"utils\.(?:np_utils|training_utils|vis_utils)|backend\.tensorflow_backend|wrappers)\b)",
    re.M,
)
"""Modules that Keras 3 no longer has."""
_COMPILES = re.compile(r"\b(cpp_extension\b|CUDAExtension\(|load_inline\()[\s\S]*?\.cu\b")
_TENSORFLOW = re.compile(r"^[ \t]*import tensorflow as tf\b", re.M)
_NEW = re.compile(r"tensorflow\.compat(?:\.v1)?[ \t]+(?:as[ \t]+tf|import)|disable_v2_behavior")
"""Names that only TensorFlow 1 has under ``tf``, and what gives them to TensorFlow 2."""
_LONGEST = 200_000
_OPTIONAL = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
"""What a ``try`` catches around an import that the program can do without."""


def read_python(folder: ProjectFolder, path: str) -> PythonSource:
    """What is seen of a file; InputError where it is no text."""
    text = folder.text(path)
    program, parallel, spawns, interface = (
        pattern.search(text) for pattern in (_PROGRAM, _PARALLEL, _SPAWNS, _INTERFACE)
    )
    old = _OLD.search(text) if _TENSORFLOW.search(text) and not _NEW.search(text) else None
    old = old or _OLD_KERAS.search(text)
    compiles = _COMPILES.search(text[:_LONGEST])
    tree = tree_of(text)
    runs = next((each for each in tree.body if _runs(each, tree)), None) if tree is not None else None
    return PythonSource(
        path,
        _at(path, text, program.start()) if program else None,
        list(_imports(tree.body, path, True) if tree is not None else _as_text(path, text)),
        FileWord(parallel[1], _at(path, text, parallel.start())) if parallel else None,
        FileWord(spawns[1], _at(path, text, spawns.start())) if spawns else None,
        Position(path, runs.lineno, runs.col_offset + 1) if runs is not None else None,
        FileWord((interface[1] or interface[2]).split()[0], _at(path, text, interface.start())) if interface else None,
        FileWord(old[1], _at(path, text, old.start())) if old else None,
        FileWord(compiles[1].rstrip("("), _at(path, text, compiles.start())) if compiles else None,
    )


def tree_of(text: str) -> ast.Module | None:
    """The syntax tree; None of what this Python does not read, such as Python 2."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imports(body: list[ast.stmt], path: str, sure: bool, caught: bool = False) -> Iterator[ImportedName]:
    """What statements import; not ``sure`` where the program may do without it, which it does where that is caught."""
    late = not sure and not caught
    for each in body:
        where = Position(path, each.lineno, each.col_offset + 1)
        if isinstance(each, ast.Import):
            yield from (ImportedName(one.name, where, sure, late) for one in each.names)
        elif isinstance(each, ast.ImportFrom):
            name = "." * each.level + (each.module or "")
            yield ImportedName(name, where, sure, late)
            dot = "" if name.endswith(".") else "."
            # Each may be a module of its own, or a name in the one before it.
            yield from (
                ImportedName(f"{name}{dot}{one.name}", where, sure, late) for one in each.names if one.name != "*"
            )
        elif isinstance(each, ast.If):
            said = ast.unparse(each.test) if not isinstance(each.test, ast.BoolOp) else ""
            if not said.endswith("TYPE_CHECKING"):
                yield from _imports(each.body, path, sure and "__name__" in said, caught)
            yield from _imports(each.orelse, path, False, caught)
        elif isinstance(each, ast.Try):
            catches = any(map(_catches_imports, each.handlers))
            yield from _imports(each.body, path, sure and not catches, caught or catches)
            for part in (*(one.body for one in each.handlers), each.orelse, each.finalbody):
                yield from _imports(part, path, False, True)
        elif isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _imports(each.body, path, False, caught)
        elif isinstance(each, (ast.ClassDef, ast.With, ast.For, ast.While)):
            yield from _imports(each.body, path, sure, caught)


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(_OPTIONAL & {*re.findall(r"\w+", ast.unparse(handler.type))})


def _runs(statement: ast.stmt, tree: ast.Module) -> bool:
    """Whether a statement of the file itself does something, as those of a program without functions do."""
    if isinstance(statement, (ast.For, ast.While, ast.With)):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    return any(isinstance(each, ast.FunctionDef) and each.name == call.func.id for each in tree.body)


def _as_text(path: str, text: str) -> Iterator[ImportedName]:
    """What lines import that look like it."""
    for match in _IMPORT.finditer(text):
        for name in (match[1] or match[2]).split(","):
            if name.strip():
                sure = not text[match.start()].isspace()
                yield ImportedName(name.strip(), _at(path, text, match.start()), sure)


def _at(path: str, text: str, offset: int) -> Position:
    return Position(path, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
