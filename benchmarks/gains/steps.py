"""In a worker: steps are timed whenever the benchmark asks, not once, and what they gave is told.

It takes the place of ``timed`` in bench_common.py, so that the programs of ``hpcgen bench`` stay as they are.
"""

import sys
import time

import bench_common

FIRST = 3
"""So many steps are not timed, after which each variant has computed the same."""

MOST_NUMBERS = 2000


def flat(given):
    """The numbers of a result, whatever holds them: a tensor, an array, a list of them, a mapping to them."""
    if given is None:
        return []
    if hasattr(given, "detach"):
        given = given.detach().float().cpu().numpy()
    elif hasattr(given, "keys"):
        given = [given[key] for key in given]
    if isinstance(given, (list, tuple)):
        return [number for each in given for number in flat(each)]
    return [float(each) for each in given.ravel()[:MOST_NUMBERS]] if hasattr(given, "ravel") else [float(given)]


def on_request(step, seconds, together=max, wait=lambda: None):
    """Run steps when a line says how many; end with the input.

    Parameters
    ----------
    seconds: about how long a turn takes; the answer to the first line says how many steps that are.
    """
    for _ in range(FIRST):
        given = step()
    wait()
    begin = time.perf_counter()
    step()
    wait()
    each = time.perf_counter() - begin
    bench_common.tell(step_seconds=each, numbers=flat(given))
    for line in sys.stdin:
        count = int(line)
        begin, used = time.perf_counter(), time.process_time()
        for _ in range(count):
            step()
        wait()
        wall, used = time.perf_counter() - begin, time.process_time() - used
        bench_common.tell(wall=wall / count, cpu=used / count, memory=bench_common.peak_memory())
    sys.exit(0)


bench_common.timed = on_request
