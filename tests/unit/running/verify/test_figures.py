"""Tables of benchmarks as numbers."""

from __future__ import annotations

from hpcgen.core.model.record import Figure
from hpcgen.running.verify.several import read_figures, summary

LATENCY = """\
# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       1.28
2                       1.27
4194304               398.12
"""
OLD_LATENCY = "# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n0                       0.21\n1  0.22\n"
BANDWIDTH = "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1      4.91\n4194304    11873.02\n"
NCCL = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1
#  Rank  0 Group  0 Pid  16899 on       n1 device  0 [0x27] NVIDIA A100-SXM4-80GB
n1:880:880 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    21.87    0.00    0.00      0    21.61    0.00    0.00      0
  1073741824     268435456     float     sum      -1  70570.3   15.22   28.53       0  70527.4   15.22   28.55       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 10.4127
"""
HPL = """\
N      :    2000
Gflops : Rate of execution for solving the linear system.
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4        2000   128     2     2               0.77             6.9317e+00
HPL_pdgesv() start time Mon Nov 23 16:45:56 2026

HPL_pdgesv() end time   Mon Nov 23 16:45:57 2026

--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   3.52323145e-03 ...... PASSED
"""


def test_osu_has_a_number_for_each_size() -> None:
    found = read_figures("osu", LATENCY.splitlines())
    assert found[0] == Figure(name="latency", value=1.28, unit="us", at=1, at_unit="bytes")
    assert [each.at for each in found] == [1, 2, 4194304]
    assert summary(found) == "latency 1.28 us at 1 bytes"
    assert [each.value for each in read_figures("osu", OLD_LATENCY.splitlines())] == [0.21, 0.22]
    bandwidth = read_figures("osu", BANDWIDTH.splitlines())
    assert summary(bandwidth) == "bandwidth 11873 MB/s at 4194304 bytes"


def test_nccl_has_the_bandwidth_of_the_bus() -> None:
    found = read_figures("nccl_tests", NCCL.splitlines())
    assert [(each.name, each.at, each.value) for each in found] == [
        ("bus bandwidth", 8, 0.0),
        ("bus bandwidth", 1073741824, 28.53),
        ("average bus bandwidth", None, 10.4127),
    ]
    assert summary(found) == "average bus bandwidth 10.4127 GB/s"


def test_hpl_has_one_number() -> None:
    (only,) = read_figures("hpl", HPL.splitlines())
    assert only == Figure(name="performance", value=6.9317, unit="GFLOPS", at=2000, at_unit="equations")


def test_what_is_no_table_has_none() -> None:
    assert read_figures("osu", ["1 2", "# Size of things", "3 4"]) == []
    assert read_figures("", LATENCY.splitlines()) == []
    assert summary([]) == ""
