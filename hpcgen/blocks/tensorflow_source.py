"""TensorFlow from source: what its configure is told, how Bazel is started, and what a build of it then has."""

from __future__ import annotations

from hpcgen.blocks.base import Context, Situation
from hpcgen.blocks.capabilities import GpuUnused
from hpcgen.core.model.image_paths import SCRATCH


def on_gpu(situation: Situation | Context) -> bool:
    """Whether it computes on NVIDIA's GPUs; Intel's packages are for CPUs, and so are the index's for ARM."""
    if situation.options.install == "intel" or why_no_cuda(situation):
        return False
    wanted, gpu = situation.options.gpu, situation.facts.partition.gpu
    return gpu is not None and gpu.vendor == "nvidia" if wanted is None else bool(wanted)


def why_no_cuda(situation: Situation | Context) -> str:
    """Why a package has no code for NVIDIA's GPUs; empty if it has.

    Source: up to 2.15 the wheels for ARM require tensorflow-cpu-aws; later ones have half the size of those for x86-64.
    """
    if situation.options.install == "pip" and situation.facts.architecture != "x86_64":
        return f"the package index's wheels of TensorFlow for {situation.facts.architecture} are without CUDA"
    return ""


def gpu_unused(ctx: Context) -> GpuUnused | None:
    """Why it leaves the node's GPU alone; None if it does not, or there is none."""
    gpu = ctx.facts.partition.gpu
    if gpu is None or on_gpu(ctx):
        return None
    if why := why_no_cuda(ctx):
        return GpuUnused(why)
    if gpu.vendor != "nvidia":
        return GpuUnused(f"no package of it for GPUs of {gpu.vendor} is listed here")
    option = "gpu=false" if ctx.options.install != "intel" else "install=intel"
    return GpuUnused(f"tensorflow.{option} was requested")


def uses_mkl(ctx: Context) -> bool:
    """Whether ``--config=mkl`` is given; see the block's text."""
    if ctx.options.mkl is not None:
        return bool(ctx.options.mkl)
    return ctx.facts.architecture == "x86_64" and not ctx.me.at_least("2.4")


def has_openmp(ctx: Context) -> bool:
    """Whether its threads are those of LLVM's OpenMP: in builds with ``--config=mkl``, which Intel's packages are."""
    return bool(ctx.options.install == "intel" or (ctx.options.install == "source" and uses_mkl(ctx)))


def configuration(ctx: Context) -> dict[str, str]:
    """Environment of ``./configure``, which asks no question that is answered here.

    ``CC_OPT_FLAGS`` are not the flags for the partition's CPU: from 2.4.1 on configure writes them as ``--host_copt``
    too, for the tools that Bazel compiles and runs on the building machine (protoc, MLIR's generators, the API's).
    ``build_words`` gives the partition's as ``--copt``, which Bazel keeps from host tools in every release.
    Source: easybuilders/easybuild-easyblocks tensorflow.py, spack/spack-packages py_tensorflow; for the host tools
    set_cc_opt_flags in TensorFlow's configure.py, changed by its pull request 46433.
    """
    python = ctx.use("python")
    minor = ".".join(python.version.split(".")[:2])
    values = {
        "HOME": SCRATCH,
        "PYTHON_BIN_PATH": f"{python.prefix}/bin/python3",
        "PYTHON_LIB_PATH": f"{python.prefix}/lib/python{minor}/site-packages",
        "USE_DEFAULT_PYTHON_LIB_PATH": "1",
        "CC_OPT_FLAGS": "-Wno-sign-compare",
        "TF_ENABLE_XLA": "1" if ctx.options.xla else "0",
        "TF_NEED_CUDA": "1" if on_gpu(ctx) else "0",
        "TF_NEED_ROCM": "0",
        "TF_NEED_OPENCL": "0",
        "TF_NEED_MPI": "0",
        "TF_DOWNLOAD_CLANG": "0",
        "TF_CUDA_CLANG": "0",
        "TF_SET_ANDROID_WORKSPACE": "0",
        "TF_SYSTEM_LIBS": "",
    }
    if not ctx.me.at_least("2.4"):
        values["TF_NEED_OPENCL_SYCL"] = "0"
    if ctx.me.at_least("2.13"):
        values["TF_NEED_CLANG"] = "1" if ctx.has("llvm") else "0"
    if on_gpu(ctx):
        values |= _cuda(ctx)
    return values


def _cuda(ctx: Context) -> dict[str, str]:
    capability = ctx.capability("TensorFlow")
    cuda, cudnn, nccl = (ctx.use(name) for name in ("cuda", "cudnn", "nccl"))
    suffix = ctx.use("gnu").release.values.get("suffix", "")
    common = {"GCC_HOST_COMPILER_PATH": f"/usr/bin/gcc{suffix}", "GCC_HOST_COMPILER_PREFIX": "/usr/bin"}
    if ctx.me.at_least("2.18"):
        return common | {
            "HERMETIC_CUDA_VERSION": cuda.version,
            "HERMETIC_CUDNN_VERSION": cudnn.version,
            "HERMETIC_CUDA_COMPUTE_CAPABILITIES": f"sm_{capability.replace('.', '')}",
        }
    return common | {
        "TF_CUDA_VERSION": ".".join(cuda.version.split(".")[:2]),
        "TF_CUDNN_VERSION": cudnn.version.split(".")[0],
        "TF_NCCL_VERSION": nccl.version.split(".")[0],
        "TF_CUDA_COMPUTE_CAPABILITIES": capability,
        "TF_CUDA_PATHS": f"{cuda.prefix},{cudnn.prefix},{nccl.prefix},/usr",
        "TF_NEED_TENSORRT": "0",
    }


def build_words(ctx: Context) -> list[str]:
    """Options of ``bazel build``."""
    words = ["--config=opt", *(f"--copt={flag}" for flag in (*ctx.flags, *ctx.options.copt))]
    if uses_mkl(ctx):
        words.append("--config=mkl")
    if on_gpu(ctx):
        words += ["--config=cuda", *(["--config=cuda_wheel"] if ctx.me.at_least("2.18") else [])]
    if not ctx.options.xla:
        words.append("--define=with_xla_support=false")
    if not ctx.me.at_least("2.18"):
        words += ["--config=noaws", "--config=nohdfs"]
    words.append("--config=nogcp")
    if ctx.me.at_least("2.14"):
        minor = ".".join(ctx.use("python").version.split(".")[:2])
        words.append(f"--repo_env=TF_PYTHON_VERSION={minor}")
    if ctx.options.jobs:
        words.append(f"--jobs={ctx.options.jobs}")
    if ctx.options.memory_mb:
        words.append(f"--local_ram_resources={ctx.options.memory_mb}")
    words += ["--curses=no", "--show_progress_rate_limit=60", "--verbose_failures"]
    if ctx.me.at_least("2.17"):
        words.append("--repo_env=WHEEL_NAME=tensorflow")
    if ctx.me.at_least("2.20"):
        words.append("--repo_env=USE_PYWRAP_RULES=1")
    return words


_JAVA_TRUST = {
    "apt": "/etc/ssl/certs/java/cacerts",
    "dnf": "/etc/pki/java/cacerts",
    "zypper": "/var/lib/ca-certificates/java-cacerts",
}


def bazel_program(ctx: Context, root: str, memory_mb: int) -> list[str]:
    """Bazel, without the server that it would leave running and talk to over a loopback interface.

    ``root``: the folder for all that it makes and fetches. ``memory_mb``: what it may plan with, a quarter of it for
    itself; 0 for no limit.
    """
    startup = [
        "--batch",
        f"--output_user_root={root}",
        f"--host_jvm_args=-Xmx{min(4096, memory_mb // 4) if memory_mb else 4096}m",
    ]
    if ctx.use("bazel").at_least("4"):
        startup.append("--local_startup_timeout_secs=300")
    if ctx.facts.network.ca_certificates:
        # Bazel's own Java does not know the site's certificates, the system's trust store does.
        trust = _JAVA_TRUST[str(ctx.base.release.values["package_manager"])]
        startup.append(f"--host_jvm_args=-Djavax.net.ssl.trustStore={trust}")
    return ["env", f"HOME={SCRATCH}", "bazel", *startup]
