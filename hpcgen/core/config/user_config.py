"""The user's own config file: what no site profile can know. docs/user-config.md lists its fields. And the cache.

Without a file nothing is imported and nothing read: one look whether it is there is all that it costs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hpcgen.core.errors import InputError, OutputError

if TYPE_CHECKING:
    from hpcgen.core.model.site import Site
    from hpcgen.core.model.stack import Stack
    from hpcgen.core.model.user_config import UserConfig


def user_config_path(environment: Mapping[str, str] | None = None) -> Path | None:
    """``$HPCGEN_CONFIG``, else hpcgen/config.yaml in ``$XDG_CONFIG_HOME`` or ``~/.config``.

    None with an empty ``$HPCGEN_CONFIG``, which means no file, and where the user has no home.
    """
    known = os.environ if environment is None else environment
    named = known.get("HPCGEN_CONFIG")
    if named is not None:
        return Path(named).absolute() if named else None
    base = known.get("XDG_CONFIG_HOME", "")
    if not base.startswith("/"):
        # The XDG base directory specification has relative paths ignored.
        home = _home()
        if home is None:
            return None
        return home / ".config" / "hpcgen" / "config.yaml"
    return Path(base, "hpcgen", "config.yaml")


def cache_folder(part: str = "") -> Path:
    """``hpcgen/PART`` in ``$XDG_CACHE_HOME`` or ``~/.cache``: what can be made again.

    RuntimeError: the user has no home.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification has relative paths ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "hpcgen" / part


def _home() -> Path | None:
    """The user's home; None for a user who has none, as in some containers."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def load_user_config() -> UserConfig:
    """The settings of the file, with every path absolute; defaults if there is no file.

    InputError: it cannot be read, or is wrong; every mistake with its file, line and column.
    """
    path = user_config_path()
    state = _state(path)
    if path is not None and state is not None:
        return _loaded(path, state)
    from hpcgen.core.model.user_config import UserConfig

    return UserConfig()


def found_user_config() -> UserConfig | None:
    """As :func:`load_user_config`; None where there is no file, without which nothing is imported."""
    return None if _state(user_config_path()) is None else load_user_config()


def usual(field: str, site: str | None, stack: Stack | None = None, name: str = "") -> tuple[str, str] | None:
    """A default of the user's, and the file that says it: the stack, where that is a file of the user's, then this one.

    field: of :class:`~hpcgen.core.model.fields.PlanDefaults`.
    site: what is said for others does not count; None for the field ``site`` itself.
    name: what messages call the stack.
    """
    own = (name or f"the stack {stack.name}", stack) if stack is not None else None
    for origin, file in filter(None, (own, ("your config file", found_user_config()))):
        value: str | None = getattr(file, field) if file is not None else None
        if file is not None and value is not None and (site is None or file.counts_at(site)):
            return value, origin
    return None


def configured(field: str, default: Any) -> Any:
    """One field of the file, ``default`` where there is no file."""
    found = found_user_config()
    return default if found is None else getattr(found, field)


def allowed_signers(named: Path | None = None) -> Path | None:
    """The file of allowed signers, one of whom must have signed: the named one, else that of the config file."""
    found = named or configured("signers", None)
    return Path(found) if found is not None else None


def artifact_store(named: Path | None = None) -> Path | None:
    """The folder in which compiled blocks are kept: the named one, else that of the config file."""
    found = named or configured("artifacts", None)
    return Path(found).absolute() if found is not None else None


def account_for(site: Site, asked: str | None, stack: Stack | None = None) -> str | None:
    """The account that is asked for, else that of the user's stack, else the user's own at that site."""
    if asked is not None or site.scheduler.account == "none":
        return asked
    if stack is not None and stack.account is not None and stack.counts_at(site.name):
        return stack.account
    account: str | None = configured("accounts", {}).get(site.name)
    found = usual("account", site.name) if account is None else None
    return found[0] if found is not None else account


def _state(path: Path | None) -> tuple[int, int, int] | None:
    """A fingerprint of the file's state; None if there is no file."""
    if path is None:
        return None
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        # It may be there: reading it says what is wrong.
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)
def _loaded(path: Path, _state: tuple[int, int, int]) -> UserConfig:
    from hpcgen.core.config.decoding import convert
    from hpcgen.core.config.yamlfile import load
    from hpcgen.core.model.user_config import UserConfig

    return UserConfig() if _only_comments(path) else _expanded(convert(load(path, _shown(path)), UserConfig))


def _only_comments(path: Path) -> bool:
    """Whether nothing is said in the file yet; what cannot be read as text is left to the reader of YAML."""
    try:
        return path == Path(os.devnull) or (path.is_file() and _nothing_said(path.read_text("utf-8-sig")))
    except (OSError, ValueError):
        return False


def _nothing_said(text: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines())


def _shown(path: Path) -> str:
    """The path as people write it."""
    home = _home()
    short = home is not None and home != Path("/") and path.is_relative_to(home)
    return f"~/{path.relative_to(home)}" if home is not None and short else str(path)


def _expanded(config: UserConfig) -> UserConfig:
    def full(path: str) -> str:
        home = _home()
        return str(home / path[2:]) if path.startswith("~/") and home is not None else path

    return replace(
        config,
        collections=[full(each) for each in config.collections],
        image_directories={site: full(each) for site, each in config.image_directories.items()},
        records=full(config.records) if config.records is not None else None,
        signers=full(config.signers) if config.signers is not None else None,
        artifacts=full(config.artifacts) if config.artifacts is not None else None,
        artifact_sources=[full(each) for each in config.artifact_sources],
        trusted_collections={full(each): date for each, date in config.trusted_collections.items()},
    )


# what hpcgen adds to the file


def accept(field: str, names: Iterable[str], date: str) -> Path:
    """Write into the file what the user accepted on a day; what is there keeps its day.

    The file is written whole or not at all. Everything else in it, comments too, stays as it is: the lines are put
    into the text. Where that cannot be done safely nothing is written.

    Returns the file.

    field: ``licences`` or ``trusted_collections``.
    names: what the field's keys are.
    date: such as 2026-11-20.
    InputError: the file is wrong, what is accepted cannot be a key, or the field is written in a way that no line can
        be added to.
    OutputError: it cannot be written.
    """
    from hpcgen.core.support.writing import write_file

    path = user_config_path()
    if path is None:
        raise OutputError("there is no config file to write to", remedy="set HPCGEN_CONFIG to a file's path")
    known = getattr(load_user_config(), field)
    new = {name: date for name in dict.fromkeys(names) if name not in known}
    if not new:
        return path
    # A user's file is often a link into a folder of such files, which should stay one.
    target = path.resolve()
    text = target.read_text("utf-8-sig") if _state(path) is not None else ""
    written = with_entries(text, field, new)
    if written is None:
        lines = ", ".join(f"{name}: {day}" for name, day in new.items())
        raise InputError(f"no line can be added to `{field}`", _shown(path), remedy=f"write there: {lines}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        message = f"cannot make {target.parent}: {failure.strerror}"
        raise OutputError(message, remedy="set HPCGEN_CONFIG to a file in one of your own folders") from failure
    write_file(target, written)
    return path


def with_entries(text: str, field: str, new: Mapping[str, str]) -> str | None:
    """The text of a config file with more in one field; None where that cannot be done line by line.

    ``text``: a file that could be read. ``new``: name → date, none of which is there.
    """
    import yaml  # type: ignore[import-untyped, unused-ignore]

    lines = [*text.splitlines(keepends=True)]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None  # libyaml, which read it, takes a tab where PyYAML's own parser does not
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    found = next((pair for pair in pairs if pair[0].value == field), None)
    if found is None:
        at, indent, head = len(lines), "  ", [f"{field}:\n"]
    elif isinstance(found[1], yaml.MappingNode) and not found[1].flow_style:
        last_key, last_value = found[1].value[-1]
        at, indent, head = last_value.end_mark.line + 1, " " * last_key.start_mark.column, []
    else:
        return None
    added = [*head, *(f"{indent}{name}: {date}\n" for name, date in new.items())]
    changed = "".join([*lines[:at], *added, *lines[at:]])
    return changed if _says(text, changed, field, new) else None


def _says(before: str, after: str, field: str, new: Mapping[str, str]) -> bool:
    """Whether the changed text reads as the old one with the new entries, and nothing else."""
    from hpcgen.core.config.decoding import convert
    from hpcgen.core.config.yamlfile import loads
    from hpcgen.core.model.user_config import UserConfig

    try:
        old = {} if _nothing_said(before) else loads(before, "before").data
        document = loads(after, "after")
        convert(document, UserConfig)
    except InputError:
        return False
    return document.data == {**old, field: {**(old.get(field) or {}), **new}}
