"""setup.cfg: what setuptools reads of it, https://setuptools.pypa.io/en/latest/userguide/declarative_config.html."""

from __future__ import annotations

import configparser
import re

from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.own_project import FileWord, ProjectTable
from hpcgen.core.model.project import PackageFile
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.setup_py import Asked, SetupWord, packages_of, scripts_of


def read_setup_cfg(folder: ProjectFolder, path: str) -> PackageFile:
    """What its options ask for; PartlyReadError with all that is wrong with it."""
    file = _Config(folder, path)
    lists = [
        each.strip() for word in file.words("options", "install_requires", "file:") for each in word.text.split(",")
    ]
    python = file.words("options", "python_requires")
    return packages_of(
        Asked(
            folder,
            path,
            [] if lists else file.words("options", "install_requires"),
            {name: file.words("options.extras_require", name) for name in file.keys("options.extras_require")},
            python[0] if python else None,
            [],
            [SetupWord(folder.beside(path, each), Position(path, 1, 1)) for each in lists if each],
        )
    )


def read_setup_cfg_table(folder: ProjectFolder, path: str) -> ProjectTable:
    """The project's name, its line for people and its commands."""
    file = _Config(folder, path)
    said = {
        key: FileWord(words[0].text, words[0].where)
        for key in ("name", "description")
        if (words := file.words("metadata", key)) and ":" not in words[0].text[:5]
    }
    scripts = scripts_of(file.words("options.entry_points", "console_scripts"))
    return ProjectTable(said.get("name"), said.get("description"), scripts)


class _Config:
    def __init__(self, folder: ProjectFolder, path: str) -> None:
        self._path = path
        text = folder.text(path)
        self._lines = text.split("\n")
        self._parsed = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            self._parsed.read_string(text)
        except configparser.Error as failure:
            where = Position(folder.shown(path), getattr(failure, "lineno", None) or 1, 1)
            raise InputError("not an INI file of sections and keys", where, "such as [options]") from None

    def keys(self, section: str) -> list[str]:
        """Those of a section."""
        return list(self._parsed[section]) if self._parsed.has_section(section) else []

    def words(self, section: str, key: str, lead: str = "") -> list[SetupWord]:
        """The lines of a value, each with its place; with ``lead`` those that begin with it, without it."""
        value = self._parsed.get(section, key, fallback="")
        lines = [each.partition(" #")[0].strip() for each in value.split("\n")]
        wanted = [each for each in lines if each and not each.startswith("#") and each.startswith(lead)]
        return [SetupWord(each.removeprefix(lead).strip(), self._at(key, each)) for each in wanted]

    def _at(self, key: str, text: str) -> Position:
        start = next((n for n, line in enumerate(self._lines) if re.match(rf"{re.escape(key)}\s*[=:]", line, re.I)), 0)
        line = next((n for n in range(start, len(self._lines)) if text in self._lines[n]), start)
        return Position(self._path, line + 1, max(0, self._lines[line].find(text)) + 1)
