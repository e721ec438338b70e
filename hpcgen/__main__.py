"""The command as a process of its own: ``hpcgen``, and ``python -m hpcgen``."""

from __future__ import annotations

import gc
import os


def run() -> None:
    """Run the command, and end the process.

    A command ends before collecting garbage pays; looking for it, and taking all modules apart at the end, is a tenth
    of a render. The system takes all memory back at once, and no thread or temporary file outlives ``main``. A
    profiler reports at the end that is left out here: give it ``hpcgen.cli.main``.
    """
    gc.disable()
    from hpcgen.cli.streams import close_streams, open_streams

    open_streams()
    from hpcgen.cli import main

    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        close_streams()
        os._exit(end.code)


if __name__ == "__main__":
    run()
