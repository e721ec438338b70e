"""Matrix products and the triad with NumPy and its library for linear algebra; Fourier transforms with SciPy."""

import math
import os

from bench_common import Cannot, begin, imported, main, timed

ASKED = begin()
np = imported("numpy")
DTYPES = {"fp32": "float32", "fp64": "float64"}


def run(asked):
    if asked["ranks"] > 1:
        raise Cannot("NumPy is started on one rank here", "ask for one rank, or for the stack mpi-hello with mpi4py")
    if asked["compiler"] not in ("", "none"):
        raise Cannot("NumPy has no compiler {}".format(asked["compiler"]), "name another compiler, or none")
    if asked["precision"] not in DTYPES:
        raise Cannot("NumPy computes in fp32 or fp64, not in {}".format(asked["precision"]), "name another precision")
    dtype, n = DTYPES[asked["precision"]], asked["size"]
    random = np.random.RandomState(7)
    if asked["workload"] == "gemm":
        a, b = (random.rand(n, n).astype(dtype) for _ in range(2))
        found = timed(lambda: np.dot(a, b), asked["seconds"])
        return dict(found, rate=2e-9 * n**3 / found["step_seconds"], version=np.__version__)
    if asked["workload"] == "fft":
        fft, a = imported("scipy.fft"), random.rand(n, n).astype(dtype)
        kernel = fft.rfft2(random.rand(n, n).astype(dtype))
        # One thread, as SciPy does unless a program or the module hpcgen_settings says more.
        said = os.environ.get("HPCGEN_FFT_WORKERS") or "1"
        workers = asked["threads"] if said == "all" else int(said)
        found = timed(lambda: fft.irfft2(fft.rfft2(a, workers=workers) * kernel, workers=workers), asked["seconds"])
        # Of two transforms of real numbers, by the custom of FFTW's own benchmarks.
        rate = 5e-9 * n * n * math.log2(n * n) / found["step_seconds"]
        return dict(found, rate=rate, version=np.__version__, readers=["scipy.fft"])
    a, b, c = (random.rand(n).astype(dtype) for _ in range(3))

    def triad():
        np.multiply(c, a.dtype.type(3), out=a)
        np.add(a, b, out=a)

    # Two operations: c is read and a written, then a and b are read and a written.
    found = timed(triad, asked["seconds"])
    return dict(found, rate=5e-9 * a.nbytes / found["step_seconds"], version=np.__version__)


main(run, ASKED)
