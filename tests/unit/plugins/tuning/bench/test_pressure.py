"""Whether others want the CPUs, by what Linux counts."""

from __future__ import annotations

import threading
from pathlib import Path

from hpcgen.plugins.tuning.bench.pressure import busy_warning


def test_a_machine_is_busy_where_others_wait_for_cpus(tmp_path: Path) -> None:
    file = tmp_path / "cpu"
    line = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    file.write_text(line.format(1_000_000))
    assert busy_warning(file, 0.01) == ""
    later = threading.Timer(0.1, lambda: file.write_text(line.format(11_000_000)))
    later.start()
    assert "wait for this machine's CPUs 100% of the time" in busy_warning(file, 0.5)
    later.join()
    assert busy_warning(tmp_path / "none", 0.01) == ""
    file.write_text("what is this\n")
    assert busy_warning(file, 0.01) == ""
