"""Something that is done again and again beside other work, such as a sign that its process is alive."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def repeated(call: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call it every so many seconds, until the end of the block; a call that fails is followed by the next."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(seconds):
            with suppress(Exception):
                call()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
