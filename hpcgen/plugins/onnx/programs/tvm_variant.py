"""A model compiled by TVM through Relax, with its plain schedules or those that MetaSchedule found in trials.

TVM compiles when a model is loaded, for the shapes of its inputs, and without a C compiler; so a variant has no file
but the schedules.
"""

import json
import os
from pathlib import Path

from .common import Cannot, imported
from .runtimes import last_line

SCHEDULES = "schedules.json"
"""In the folder of a tuned variant: the text of each operator, and of what it becomes."""


class Tvm:
    """A model, compiled for the shapes of ``feeds``; another shape is compiled when it comes."""

    provider = "CPU"

    def __init__(self, path, threads, feeds, variant=""):
        self.tvm = tvm_for(threads)
        self.version = self.tvm.__version__
        self.path, self.schedules = Path(path), {}
        if variant == "tvm-tuned":
            self.schedules = json.loads(Path(path).with_name("tvm-tuned").joinpath(SCHEDULES).read_text("utf-8"))
        self.target = target_of(self.tvm, threads)
        self.machines = {}
        self._machine(feeds)

    def _machine(self, feeds):
        key = tuple(value.shape for value in feeds.values())
        if key not in self.machines:
            module = relaxed(self.tvm, self.path, feeds, self.target)
            relax = imported("tvm.relax", "TVM")
            try:
                with self.target:
                    compiled = self.tvm.compile(scheduled(self.tvm, module, self.schedules), self.target)
                self.machines[key] = relax.VirtualMachine(compiled, self.tvm.cpu())["main"], names_of(module)
            except Exception as failure:
                raise Cannot(
                    f"TVM {self.version} cannot compile the model: {last_line(failure)}",
                    "leave the variants of TVM out for this model",
                ) from failure
        return self.machines[key]

    def run(self, feeds):
        """The outputs, in the model's order."""
        function, names = self._machine(feeds)
        found = function(*[self.tvm.runtime.tensor(feeds[name]) for name in names])
        return [found.numpy()] if hasattr(found, "numpy") else [each.numpy() for each in found]


def tvm_for(threads):
    """The module, its own threads limited before it starts them."""
    os.environ["TVM_NUM_THREADS"] = str(threads)
    return imported("tvm", "TVM")


def target_of(tvm, threads):
    """This machine's CPU."""
    cpu = imported("tvm.target.codegen", "TVM").llvm_get_system_cpu()
    return tvm.target.Target({"kind": "llvm", "mcpu": str(cpu), "num-cores": threads})


def relaxed(tvm, path, feeds, target):
    """The model as Relax, its operators fused, for the shapes of the inputs.

    Cannot: it has an operator that TVM does not know.
    """
    relax, onnx = imported("tvm.relax", "TVM"), imported("onnx", "TVM")
    read = imported("tvm.relax.frontend.onnx", "TVM").from_onnx
    try:
        module = read(onnx.load(str(path)), shape_dict={name: list(value.shape) for name, value in feeds.items()})
        with target:
            steps = [relax.transform.DecomposeOpsForInference(), relax.transform.CanonicalizeBindings()]
            return relax.get_pipeline("zero")(tvm.transform.Sequential(steps)(module))
    except Exception as failure:
        raise Cannot(
            f"TVM {tvm.__version__} cannot take the model: {last_line(failure)}",
            "leave the variants of TVM out for this model",
        ) from failure


def scheduled(tvm, module, schedules):
    """The module with the schedules for those operators that have one."""
    changed = {}
    for name, function in module.functions_items():
        if isinstance(function, tvm.tirx.PrimFunc) and (text := schedules.get(plain_text(tvm, function))):
            symbol = str(name.name_hint)
            found = tvm.script.from_source(text)["main"].with_attr("global_symbol", symbol)
            changed[name] = found.with_attr("tirx.is_scheduled", True)
    for name, function in changed.items():
        module.update_func(name, function)
    return module


def plain_text(tvm, function):
    """An operator as text that does not tell its name."""
    return tvm.IRModule({"main": function.with_attr("global_symbol", "main")}).script(show_meta=True)


def names_of(module):
    """The names of the inputs, in the order in which the function takes them."""
    return [each.name for each in module["main"].params]
