"""``hpcgen init``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, catalog_of, print_json, say
from hpcgen.cli.project_stack import PROJECT
from hpcgen.core.config.user_config import configured
from hpcgen.core.errors import InputError, OutputError

if TYPE_CHECKING:
    from hpcgen.project.draft import Draft


@click.command("init")
@click.argument("folder", default=".", type=PATH)
@click.option("--dry-run", is_flag=True, help="Print the stack, and write nothing; as does -o -.")
@click.option("--force", is_flag=True, help=f"Replace an existing {PROJECT}; the changes are shown.")
@click.option(
    "-o", "--output", metavar="NAME", default=PROJECT, help=f"Name of the file in FOLDER, by default {PROJECT}."
)
@click.option(
    "--command",
    "line",
    metavar="N|TEXT",
    default="",
    help="The command line of the project that the stack runs, by the number in a remark or a part of its text.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the stack, and every guess with its reason, as JSON.")
@click.pass_context
def command(
    ctx: click.Context, folder: Path, dry_run: bool, force: bool, output: str, line: str, as_json: bool
) -> None:
    """Write a stack for the project in FOLDER, by default this one, as hpcgen.yaml.

    Reads lists and locks of packages, apt.txt, files of builds and containers, job scripts and others, README files,
    notebooks, and programs in Python, R and Julia; nothing of them is run. Each line of the stack says why it is as
    it is.
    """
    from hpcgen.project.draft import stack_text
    from hpcgen.project.making import draft_of

    if "/" in output or output in ("", ".", ".."):
        raise click.UsageError("-o names a file in FOLDER, since the paths of a stack are from its own folder")
    draft = draft_of(folder, catalog_of(ctx), line)
    text = stack_text(draft)
    only_shown = dry_run or output == "-"
    file = folder / output
    if as_json:
        print_json({"file": None if only_shown else str(file), **_data(draft), "text": text})
    elif only_shown:
        click.echo(text, nl=False)
    if not only_shown:
        _write(file, text, force)
        _next_steps(folder, output, draft)
    if draft.problems:
        again = "" if only_shown else ", then let `hpcgen init --force` look again"
        say(f"warning: files of the project have mistakes: mend them{again}")
    draft.problems.raise_as(InputError)


def _data(draft: Draft) -> dict[str, object]:
    return {
        "stack": draft.data,
        "guesses": draft.guesses,
        "remarks": draft.remarks,
        "options": draft.options,
        "commands": [each.shown for each in draft.candidates],
        "problems": draft.problems,
    }


def _write(file: Path, text: str, force: bool) -> None:
    """Write the file; one that is there stays without ``--force``, and what would change is shown.

    Raises
    ------
    OutputError: there is one already.
    """
    from hpcgen.core.support.writing import write_file

    old = _present(file)
    if old == text:
        say(f"{file}: already up to date")
        return
    if old is not None:
        _show_changes(file, old, text)
    if (old is not None or file.is_symlink() or file.exists()) and not force:
        raise OutputError(f"{file} already exists", remedy="--force replaces it, --dry-run prints the new file")
    write_file(file, text)
    say(f"{file}: written")


def _present(file: Path) -> str | None:
    """What the file has now; None where there is none that can be read."""
    from hpcgen.readers.folder import ProjectFolder

    try:
        return ProjectFolder(file.parent).text(file.name)
    except InputError:
        return None


def _show_changes(file: Path, old: str, new: str) -> None:
    import difflib

    from hpcgen.core.secret_rules import without_secrets

    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{file} (now)", f"{file} (init)", lineterm="", n=1
    )
    for line in lines:
        click.echo(without_secrets(line), err=True)


def _next_steps(folder: Path, output: str, draft: Draft) -> None:
    """What to do now."""
    where = "" if folder.resolve() == Path.cwd() else f" in {folder}"
    stack = "" if output == PROJECT else f" --stack ./{output}"
    options = "".join(f" {word}" for option in draft.options for word in option.words)
    for remark in draft.remarks:
        place = f"{remark.where.file}:{remark.where.line}: " if remark.where is not None else ""
        say(f"note: {place}{remark.text}")
    site = "" if configured("site", None) is not None else " --site NAME"
    saved = f" `hpcgen list sites` names the sites, and `site: NAME` in {output} saves the option; then" if site else ""
    say(f"next{where}:{saved}")
    say(f"  hpcgen plan{site}{stack}")
    say(f"  hpcgen build{site}{stack}")
    say(f"  hpcgen submit{options}")
