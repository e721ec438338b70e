"""MODAK's requests as hpcgen's: every field is read by its row, and what no row knows is a mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from hpcgen.core.config.diagnostics import wrong_value
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Position, Problems, did_you_mean
from hpcgen.core.model.plan import Finding
from hpcgen.plugins.tuning.requests.modak_fields import CHOSEN_BY, Row, expanded, rows
from hpcgen.plugins.tuning.requests.records import OptimiseRequest
from hpcgen.plugins.tuning.requests.values import FRAMEWORKS

Path = tuple[str | int, ...]
WISHES = ("optimisation", "optimization")


class Translated(Document):
    """hpcgen's fields, and the places of those of the file that say them.

    ``origins``: path in the file by the path of the field.
    """

    def __init__(self, data: dict[str, Any], origins: Mapping[Path, Path], document: Document) -> None:
        super().__init__(data, document.name, "")
        self._origins = origins
        self._document = document

    def position(self, path: Sequence[str | int] = (), key: bool = False) -> Position:
        """Of the field, the nearest field above, or one below it."""
        steps = tuple(path)
        for length in range(len(steps), 0, -1):
            if (origin := self._origins.get(steps[:length])) is not None:
                return self._document.position((*origin, *steps[length:]), key)
        below = [origin for field, origin in self._origins.items() if steps and field[: len(steps)] == steps]
        return self._document.position(below[0][:-1] if below else ())


def is_modak(data: Mapping[str, Any]) -> bool:
    """Whether a file is one of MODAK's, not one of hpcgen's."""
    job = data.get("job")
    inside = set(job) if isinstance(job, dict) else set()
    return "kind" not in data and bool(
        {*WISHES} & set(data) or {"job_options", "application", "target", *WISHES} & inside
    )


def translate(document: Document) -> tuple[Translated, list[Finding], bool]:
    """The same request in hpcgen's fields, what of it is not honoured, and whether the released tool knew all fields.

    InputError: with every mistake of the file, each with file, line and column.
    """
    if "container_file" in document.data:
        raise InputError(
            "this is the entry of an image in MODAK's database",
            document.position(("container_file",), key=True),
            "a request",
            "name the `framework` and the `site` in a request: docs/requests.md",
        )
    translation = _Translation(document)
    translation.walk(document.data, _tree(), ())
    translation.complete()
    translation.problems.raise_as(InputError)
    data: dict[str, Any] = {}
    for field, value in translation.fields.items():
        _put(data, field, value)
    return Translated(data, translation.origins, document), translation.findings, translation.released


@cache
def _tree() -> dict[str, Any]:
    """Rows by the keys that lead to them."""
    tree: dict[str, Any] = {"infrastructure": None, "job": {"infrastructure": None}}
    for row in rows():
        for steps in expanded(row.path):
            node = tree
            for step in steps[:-1]:
                node = node.setdefault(step, {})
            node.setdefault(steps[-1], row)
    for place in (tree, tree["job"]):
        place.update(dict.fromkeys(WISHES, tree[WISHES[0]]))
    return tree


def _put(data: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for step in path[:-1]:
        data = data.setdefault(step, {})
    data[path[-1]] = value


def _annotation(field: Sequence[str]) -> Any:
    """The type of a field of the request by its path."""
    kind: Any = OptimiseRequest
    for step in field:
        if get_origin(kind) is not None and get_origin(kind) is not Annotated:
            kind = next(each for each in get_args(kind) if isinstance(each, type) and issubclass(each, msgspec.Struct))
        kind = get_type_hints(kind, include_extras=True)[step]
    return kind


def _blank(value: Any) -> bool:
    """Whether it says nothing; the tool's own examples leave fields empty."""
    return value is None or value in ({}, []) or (isinstance(value, str) and not value.strip())


class _Translation:
    """Collects what the fields of one file say."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.fields: dict[tuple[str, ...], Any] = {}
        self.origins: dict[Path, Path] = {}
        self.findings: list[Finding] = []
        self.problems = Problems()
        self.released = "job" in document.data

    def walk(self, node: Mapping[str, Any], tree: Mapping[str, Any], path: Path) -> None:
        for key, value in node.items():
            here = (*path, key)
            if key not in tree and "*" not in tree:
                where = self.document.position(here, key=True)
                inside = f" in `{path[-1]}`" if path else ""
                self.problems.add(f"`{key}` is not known{inside}", where, "", did_you_mean(key, list(tree)))
                continue
            below = tree.get(key, tree.get("*"))
            if _blank(value):
                continue
            if isinstance(below, Row):
                self.read(below, value, here)
            elif not isinstance(value, dict):
                self.problems.add(
                    f"`{key}` must be a mapping, not {value!r}",
                    self.document.position(here),
                    remedy="write its fields in braces below it",
                )
            elif below is None:
                self.infrastructure(value, here)
            elif self.chosen(node, key, here):
                self.walk(value, below, here)

    def chosen(self, node: Mapping[str, Any], key: str, here: Path) -> bool:
        """Whether a section is the one of its kind that the request names."""
        name = key.removeprefix("app_type-").removeprefix("ai_framework-").removeprefix("parallelisation-")
        if name not in CHOSEN_BY or not set(WISHES) & set(here[:-1]):
            return True
        said: Any = node
        for step in CHOSEN_BY[name].split("."):
            said = said.get(step) if isinstance(said, dict) else None
        one = said[0] if isinstance(said, list) and len(said) == 1 else said
        if one is None and CHOSEN_BY[name] == "config.ai_framework":
            self.say(("framework",), name, here, key)
        if one is None or str(one).strip().lower() == name:
            return True
        self.find(here, f"`{CHOSEN_BY[name].rpartition('.')[2]}` is {one}", "remove the section, or name it there")
        return False

    def read(self, row: Row, value: Any, here: Path) -> None:
        """What one value says."""
        self.released &= row.form == "released"
        place, name = self.document.position(here), str(here[-1])
        found = Problems()
        with found.caught(lambda: place):
            got = row.read(value, self.document.data)
            for field, item in got.fields.items():
                self.say(tuple(field.split(".")), item, here, name)
            if got.but:
                self.find(here, got.but, got.remedy)
        for problem in found:
            said = problem.message
            said = f"`{name}`{said[2:]}" if said.startswith("it ") else f"`{name}`: {said}"
            self.problems.add(said, place, problem.expected, problem.remedy)

    def say(self, field: tuple[str, ...], value: Any, here: Path, name: str) -> None:
        """A field of the request; a mistake where it cannot hold the value, or has another."""
        place = self.document.position(here)
        if wrong := wrong_value(value, _annotation(field), name):
            self.problems += [problem.at(place) for problem in wrong]
        elif field in self.fields and str(self.fields[field]) != str(value):
            other = self.origins[field]
            line = self.document.position(other).line
            remedy = f"remove one; both are `{'.'.join(field)}` here"
            self.problems.add(f"`{name}` contradicts `{other[-1]}` in line {line}", place, remedy=remedy)
        else:
            self.fields[field] = value
            self.origins.setdefault(field, here)

    def find(self, here: Sequence[str | int], why: str, remedy: str = "") -> None:
        """Something that the user should know of a field."""
        path = ".".join(map(str, here))
        self.findings.append(Finding(name="request-field", severity="warning", message=f"{path}: {why}", remedy=remedy))

    def infrastructure(self, value: dict[str, Any], here: Path) -> None:
        """A description of the system: with a name and its date, or what these have as ``configuration`` alone."""
        data, origin = dict(value), here
        if isinstance(value.get("configuration"), dict):
            data = {**value["configuration"], **{key: value[key] for key in ("name", "description") if key in value}}
            origin = (*here, "configuration")
            for key in set(value) - {"configuration", "name", "description", "disabled", "id"}:
                where = self.document.position((*here, key), key=True)
                self.problems.add(f"`{key}` is not known in `infrastructure`", where, remedy="take it out")
            if value.get("disabled") is not None:
                self.find((*here, "disabled"), f"the system is out of use since {value['disabled']}", "name another")
        self.fields["infrastructure",] = _flat_storage(data)
        self.origins["infrastructure",] = origin

    def complete(self) -> None:
        """What follows from other fields."""
        if ("kind",) not in self.fields and not self.problems:
            if any(name in self.document.data or name in self.document.data.get("job", {}) for name in WISHES):
                self.problems.add(
                    "`app_type` is missing in `optimisation`",
                    self.document.position(()),
                    remedy="add it: ai_training, hpc or python",
                )
            self.fields["kind",] = "python"
            self.find(("job", "application", "app_type"), "not given, so the program is started once, without MPI")
        if (
            str(self.fields.get(("kind",))).startswith("ai_")
            and ("framework",) not in self.fields
            and not self.problems
        ):
            place = self.document.position(self.origins["kind",])
            remedy = "write `config: {ai_framework: …}` into its section"
            self.problems.add("`ai_framework` is missing", place, f"one of {', '.join(FRAMEWORKS)}", remedy)
        if not self.problems:
            self.ranks()
            self.target()
            self.accelerator()
        if ("infrastructure",) in self.fields and (site := self.fields.pop(("site",), None)) is not None:
            self.fields["infrastructure",].setdefault("name", site)

    def ranks(self) -> None:
        """Of two numbers of processes that exclude each other the one counts that MODAK gives to the launcher."""
        names = ("ranks", "nodes", "ranks_per_node")
        total, nodes, each = (int(self.fields.get(("limits", name)) or 0) for name in names)
        if nodes and each and total > nodes * each:
            said = f"{each} on each of {nodes} nodes are fewer than the {total} of `mpi_ranks`, which are started"
            self.find(self.origins.get(("limits", "ranks_per_node"), ()), said, "make the two agree")
            del self.fields["limits", "ranks_per_node"]

    def accelerator(self) -> None:
        """``acc_type`` is what the image is made for: a program without a framework has GPUs if it requests some."""
        options = (self.document.data.get("job") or {}).get("job_options")
        kind, wanted = self.fields.get(("kind",)), ("hardware", "accelerator")
        if not options or ("limits", "gpus_per_node") in self.fields or str(kind).startswith("ai_"):
            return
        if self.fields.get(wanted) not in (None, "none"):
            said = f"{self.fields[wanted]}, but the job has no `request_gpus`, so it gets none"
            self.find(self.origins.get(wanted, ()), said, "add `request_gpus`")
            del self.fields[wanted]

    def target(self) -> None:
        """Without a target a job is Torque's, as in MODAK's own scripts of such requests (test/input/*.sh)."""
        job = self.document.data.get("job")
        if not isinstance(job, dict) or not isinstance(job.get("job_options"), dict):
            return
        if not {("site",), ("scheduler",), ("infrastructure",)} & self.fields.keys():
            self.fields["scheduler",] = "torque"
            self.find(
                ("job", "target"), "not given, so the job is one of Torque's, as MODAK's own", "name the `target`"
            )


def _flat_storage(data: Any) -> Any:
    """``{storage_class: X}`` as ``X``, at every level."""
    if not isinstance(data, dict):
        return data
    return {
        key: {
            url: each["storage_class"] if isinstance(each, dict) and set(each) == {"storage_class"} else each
            for url, each in value.items()
        }
        if key == "storage" and isinstance(value, dict)
        else _flat_storage(value)
        for key, value in data.items()
    }
