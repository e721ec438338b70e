"""``hpcgen init``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, catalog_of, print_json, say
from hpcgen.cli.project_stack import PROJECT
from hpcgen.cli.terminal import echo
from hpcgen.core.config.user_config import configured
from hpcgen.core.errors import InputError, OutputError
from hpcgen.core.model.image_paths import OWN_FOLDER

if TYPE_CHECKING:
    from hpcgen.project.draft import Draft

WRITTEN = f"{OWN_FOLDER}/init"
"""The folder of a project in which lies what init wrote last."""


@click.command("init")
@click.argument("folder", default=".", type=PATH)
@click.option("--dry-run", is_flag=True, help="Print the stack, and write nothing; as does -o -.")
@click.option("--force", is_flag=True, help=f"Change an existing {PROJECT}; your own lines stay.")
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
        echo(text, nl=False)
    if not only_shown:
        _write(file, text, force)
        _next_steps(folder, output, draft)
    if draft.problems:
        again = "" if only_shown else ", then run `hpcgen init --force` again"
        say(f"warning: files of the project have mistakes: fix them{again}")
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
    """Write the file. One that is there stays without ``--force``, and what would change is shown; the user's own lines
    stay with it too, as far as it is known what init wrote.

    OutputError: there is one already.
    """
    from hpcgen.core.support.writing import write_file

    old, written = _present(file.parent, file.name), _present(file.parent, f"{WRITTEN}/{file.name}")
    wanted, replaced = text, old is not None
    if old is not None and written is not None:
        from hpcgen.project.again import merged

        if (both := merged(written, old, text)) is not None:
            wanted, replaced = both.text, False
            for line, new in both.kept.items():
                say(f"note: {file}:{line}: your own lines stay; init has {new or 'nothing'} there")
    if old == wanted:
        say(f"{file}: already up to date" + (", including your own lines" if old != text else ""))
        if force or old == text:
            _remember(file, text)
        return
    if old is not None:
        _show_changes(file, old, wanted)
    if (old is not None or file.is_symlink() or file.exists()) and not force:
        does = "replaces it" if replaced else "makes these changes"
        raise OutputError(f"{file} already exists", remedy=f"--force {does}, --dry-run prints the new file")
    before = _remember(file, text)
    if replaced and old is not None and before is not None:
        write_file(before, old)
        say(f"{file}: replaced; what was there is in {before}")
    write_file(file, wanted)
    say(f"{file}: written")


def _remember(file: Path, text: str) -> Path | None:
    """Keep what init writes, so that lines of the user's are known next time; where to keep what was there before."""
    from hpcgen.core.support.writing import write_file
    from hpcgen.running.job_files import own_folder

    # A stranger's project may have a link there.
    if not (file.parent / WRITTEN).resolve().is_relative_to(file.parent.resolve()):
        return None
    try:
        folder = own_folder(file.parent, WRITTEN)
    except OSError:
        return None
    write_file(folder / file.name, text)
    return folder / f"{file.name}.old"


def _present(folder: Path, name: str) -> str | None:
    """What the file has now; None where there is none that can be read."""
    from hpcgen.readers.folder import ProjectFolder

    try:
        return ProjectFolder(folder).text(name)
    except InputError:
        return None


def _show_changes(file: Path, old: str, new: str) -> None:
    import difflib

    from hpcgen.core.secret_rules import without_secrets

    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{file} (now)", f"{file} (init)", lineterm="", n=1
    )
    for line in lines:
        echo(without_secrets(line), err=True)


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
