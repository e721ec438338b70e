"""What the host's shells complete of a command: words that the stack names, beside files.

The image's own completion scripts stay inside: they are a stranger's code. Each file is one declaration, in which
nothing is run at a TAB.

Sources: Bash Reference Manual, "Programmable Completion Builtins"; bash-completion's README, "Where should I put it to
be sure that interactive bash shells will find it"; zshcompsys(1), "Autoloaded files"; fish's documentation, "Where to
put completions".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpcgen.core.support.quoting import command as words_of
from hpcgen.core.support.templates import Template
from hpcgen.core.support.writing import KitFile
from hpcgen.run.install.commands import Command

PLACES = {
    "bash": "share/bash-completion/completions/{}",
    "zsh": "share/zsh/site-functions/_{}",
    "fish": "share/fish/vendor_completions.d/{}.fish",
}
"""Shell → where it looks for what completes a command, below the prefix."""
_fill = Template(Path(__file__).with_name("templates") / "completions.txt").fill


def completion_files(commands: Sequence[Command], name: str) -> dict[str, KitFile]:
    """The files of all commands that have words, by their paths below the prefix.

    Parameters
    ----------
    name: what is installed is called so.
    """
    return {
        place.format(each.name): KitFile(_fill(shell, name=name, command=each.name, words=words_of(*each.words)))
        for each in commands
        if each.words
        for shell, place in PLACES.items()
    }
