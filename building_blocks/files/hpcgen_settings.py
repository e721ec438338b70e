"""Switches for programs with PyTorch or SciPy, each by a variable; without any of them everything is as it was.

    import hpcgen_settings

    model = hpcgen_settings.prepared(model)
    batch = hpcgen_settings.laid_out(batch)
    with hpcgen_settings.lower():
        loss = criterion(model(batch), target)

HPCGEN_CHANNELS_LAST=1        models and pictures keep their channels last in memory: the same numbers but for rounding
HPCGEN_COMPILE=MODE           torch.compile: default, reduce-overhead, max-autotune, max-autotune-no-cudagraphs
HPCGEN_FREEZING=1             a compiled model for inference has its weights as constants
HPCGEN_MATMUL_PRECISION=WORD  of fp32 products: highest, high, medium; the latter two give other numbers
HPCGEN_TF32=0|1               TF32 in cuDNN's convolutions; 1 gives other numbers
HPCGEN_AUTOCAST=bf16|fp16     what lower() computes in: other numbers
HPCGEN_FFT_WORKERS=N|all      threads of scipy.fft where the program says none: the same numbers; all: OMP_NUM_THREADS,
                              or the CPUs of the process

What holds for the whole process, which is precision, TF32, freezing and scipy.fft's threads, begins when torch or
scipy.fft is imported, and is told on standard error then. Where an image imports this module at the start of its
Python, that needs no change of a program.
"""

import contextlib
import importlib.abc
import importlib.util
import os
import re
import sys

_ALLOWED = {
    "HPCGEN_CHANNELS_LAST": ("0", "1"),
    "HPCGEN_COMPILE": ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
    "HPCGEN_FREEZING": ("0", "1"),
    "HPCGEN_MATMUL_PRECISION": ("highest", "high", "medium"),
    "HPCGEN_TF32": ("0", "1"),
    "HPCGEN_AUTOCAST": ("bf16", "fp16"),
}
_WORKERS = "HPCGEN_FFT_WORKERS"


def _read():
    found = {name: os.environ[name] for name in (*_ALLOWED, _WORKERS) if os.environ.get(name)}
    for name, value in found.items():
        if name == _WORKERS:
            if not re.fullmatch("all|[1-9][0-9]*", value):
                raise ValueError(f"{name}={value!r}: expected a number of threads, or all")
        elif value not in _ALLOWED[name]:
            raise ValueError("{}={!r}: expected one of {}".format(name, value, ", ".join(_ALLOWED[name])))
    return found


SWITCHES = _read()
"""What is set, by the name of the variable."""


def _on(name):
    return SWITCHES.get(name) == "1"


class _Wait(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Waits for the import of a module, has it done as ever, and then sets what holds for the whole process."""

    def __init__(self, name, begin):
        self._name, self._begin = name, begin

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._begin(module)


def _begin_torch(torch):
    if "HPCGEN_MATMUL_PRECISION" in SWITCHES:
        torch.set_float32_matmul_precision(SWITCHES["HPCGEN_MATMUL_PRECISION"])
    if "HPCGEN_TF32" in SWITCHES:
        torch.backends.cudnn.allow_tf32 = _on("HPCGEN_TF32")
    if _on("HPCGEN_FREEZING"):
        import torch._inductor.config

        torch._inductor.config.freezing = True
    _tell(*(each for each in SWITCHES if each != _WORKERS))


def _begin_fft(fft):
    """Have each transform go through here first, where scipy.fft looks before its own implementation."""
    said = SWITCHES[_WORKERS]
    count = int(said) if said != "all" else int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))

    class Workers:
        __ua_domain__ = "numpy.scipy.fft"

        @staticmethod
        def __ua_function__(transform, given, named):
            # A number that the program has set for a while, or for this transform, is left as it is.
            wanted = fft.set_workers(count) if fft.get_workers() == 1 else contextlib.nullcontext()
            with fft.skip_backend(Workers), wanted:
                return transform(*given, **named)

    fft.register_backend(Workers)
    _tell(_WORKERS)


def _tell(*names):
    sys.stderr.write("hpcgen_settings: {}\n".format(" ".join(f"{name}={SWITCHES[name]}" for name in sorted(names))))


def laid_out(batch):
    """A batch with the channels last, if that is asked for and it is one of pictures or volumes."""
    if not _on("HPCGEN_CHANNELS_LAST") or batch.dim() not in (4, 5):
        return batch
    import torch

    last = torch.channels_last if batch.dim() == 4 else torch.channels_last_3d
    return batch.to(memory_format=last)


def prepared(model):
    """A model with the channels last, compiled, as asked for."""
    if _on("HPCGEN_CHANNELS_LAST"):
        import torch

        # Weights of five dimensions are those of volumes, which one call for all would refuse.
        volumes = any(each.dim() == 5 for each in model.parameters())
        model = model.to(memory_format=torch.channels_last_3d if volumes else torch.channels_last)
    if "HPCGEN_COMPILE" in SWITCHES:
        import torch

        model = torch.compile(model, mode=SWITCHES["HPCGEN_COMPILE"])
    return model


@contextlib.contextmanager
def lower(device="cpu"):
    """Compute in bfloat16 or fp16 where PyTorch deems that fit, if that is asked for; ``device``: cpu or cuda."""
    if "HPCGEN_AUTOCAST" not in SWITCHES:
        yield
        return
    import torch

    dtype = torch.bfloat16 if SWITCHES["HPCGEN_AUTOCAST"] == "bf16" else torch.float16
    with torch.autocast(device, dtype):
        yield


def _begin():
    for name, begin, wanted in (
        ("torch", _begin_torch, SWITCHES.keys() - {_WORKERS}),
        ("scipy.fft", _begin_fft, SWITCHES.keys() & {_WORKERS}),
    ):
        if wanted and name in sys.modules:
            begin(sys.modules[name])
        elif wanted:
            sys.meta_path.insert(0, _Wait(name, begin))


_begin()
