"""A page for each block, site and stack that comes with hpcgen, from its class, tables and file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from writing import cell, code, prose, table

from hpcgen.catalog.catalog import Catalog
from hpcgen.cli.describe import described, one_line
from hpcgen.core.config.provenance import Fact, counts, facts_of, shown_value

_LISTS = {"block": "Building blocks", "site": "Sites", "stack": "Stacks"}


def pages() -> dict[str, str]:
    """reference/blocks/NAME.md and so on, with a list of each kind."""
    catalog = Catalog()
    found = {}
    blocks = catalog.names("block")
    makers = {
        "block": _block,
        "site": lambda site: _site(site, facts_of(catalog.site_document(site["name"]))),
        "stack": lambda stack: _stack(stack, blocks),
    }
    for kind, title in _LISTS.items():
        names = catalog.names(kind)
        rows = [[f"[{name}]({name}.md)", cell(one_line(catalog, kind, name))] for name in names]
        found[f"reference/{kind}s/index.md"] = f"# {title}\n\n{table(['name', 'what it is'], rows)}"
        for name in names:
            found[f"reference/{kind}s/{name}.md"] = f"# {name}\n\n{makers[kind](described(catalog, kind, name))}"
    return found


def _block(block: dict[str, Any]) -> str:
    text = [prose(block["description"]) + "\n"]
    for word in ("provides", "needs"):
        if block[word]:
            text.append(f"{word.capitalize()} {', '.join(code(each) for each in block[word])}.\n")
    if block["options"]:
        rows = [[code(name), cell(said)] for name, said in block["options"].items()]
        text += ["## Options\n", table(["option", "meaning"], rows)]
    rows = [[code(version), cell(_release(release))] for version, release in block["releases"].items()]
    return "\n".join([*text, "## Releases\n", table(["version", "fits"], rows)])


def _release(release: dict[str, Any]) -> str:
    """What a row asks of others, of the distribution, the host and the node."""
    words = [f"{name} {versions}" for name, versions in release.get("accepts", {}).items()]
    words += [f"{name} {versions} of the host" for name, versions in release.get("host", {}).items()]
    if release.get("on"):
        words.append("on " + ", ".join(release["on"]))
    return "; ".join(words)


def _site(site: dict[str, Any], known: Sequence[Fact]) -> str:
    facts_text = _facts(known)
    if site.get("abstract"):
        return f"{site.get('title', '')}\n\nWhat several sites have in common.\n\n{facts_text}"
    rows = []
    for name, partition in site["partitions"].items():
        gpu = partition.get("gpu")
        gpus = f"{gpu.get('count', 1)} × {gpu['model']}" if gpu else ""
        rows.append([code(name), cell(str(partition.get("cpu", {}).get("target", ""))), cell(gpus)])
    batch = site.get("scheduler") or {}
    facts = [
        ["engine", cell(site["containers"]["preferred"])],
        ["batch system", cell(batch.get("kind", "none"))],
        ["MPI of the host", cell(_mpi(site.get("mpi"))) or "none is known"],
    ]
    partitions = table(["name", "CPU", "GPUs of a node"], rows)
    command = f"hpcgen plan --site {site['name']} --stack mpi-hello"
    return "\n".join(
        [
            f"{site['title']}\n",
            table(["", ""], facts),
            f"```sh\n{command}\n```\n\nOn the machine, `hpcgen site doctor {site['name']}` says what differs.\n",
            f"## Partitions\n\n{partitions}",
            facts_text,
        ]
    )


_MARKS = {"verified": "yes", "unverified": "no"}


def _facts(known: Sequence[Fact]) -> str:
    """Every fact with whether somebody read it in its source, the date and the source."""
    rows = []
    for fact in known:
        source = fact.source
        dated, said = (source.as_of or source.checked, source.words) if source is not None else ("", "")
        rows.append(
            [code(fact.path), code(shown_value(fact.value)), _MARKS.get(fact.mark, "unknown"), dated, cell(said)]
        )
    head = ["fact", "value", "verified", "as of", "source"]
    return f"## Facts\n\nIn all: {counts(known)}.\n\n{table(head, rows)}" if rows else ""


def _mpi(mpi: dict[str, Any] | None) -> str:
    return f"{mpi.get('flavour', '')} {mpi.get('version', '') or ''}".strip() if mpi else ""


def _stack(stack: dict[str, Any], blocks: Collection[str]) -> str:
    rows = []
    for name, asked in stack["blocks"].items():
        options = ", ".join(f"{option}: {value}" for option, value in asked.get("options", {}).items())
        shown = f"[{name}](../blocks/{name}.md)" if name in blocks else f"any {name}"
        rows.append([shown, cell(asked.get("version") or "any"), cell(options)])
    command = " ".join(stack["run"].get("command") or [])
    notes = "".join(f"- {note}\n" for note in stack.get("notes", []))
    started = f"Starts {code(command)}.\n\n" if command else ""
    return f"{stack['title']}\n\n{started}{table(['block', 'version', 'options'], rows)}\n{notes}"
