"""Models of PyTorch: a factory with weights, a whole module, a program of torch.export or of TorchScript."""

import inspect
import pickle
import re
import warnings
import zipfile

import torch

from . import torch_axes, torch_outputs
from .common import GIVEN, causes, lengths_text, need_version, seed_of, threads_of, version_of
from .data import traced
from .factory import made, place_of, shown
from .onnxfile import load, name_axes

PLACE = re.compile(r'File "([^"]+)", line (\d+)')
NAMED = (
    re.compile(r"No ONNX function found for <OpOverload\(op='([^']+)'"),
    re.compile(r"No decompositions registered for .*?<OpOverload\(op='([^']+)'"),
    re.compile(r"[Ee]xporting the operator '([^']+)'"),
    re.compile(r"ONNX export failed on an operator with unrecognized namespace (\S+?)\.? "),
)


class Original:
    """A module of PyTorch that computes on the CPU."""

    fixes = True
    """Its exporters make a model for one length of an axis, too."""

    def __init__(self, model, asked, record):
        self.model, self.asked = model, asked
        self.names, self.ends, self.sets = [], {}, []
        self.of_trials, self.fewest = None, None
        record["versions"] = version_of(torch)
        need_version(model, "torch", torch.__version__)
        torch.manual_seed(seed_of(asked))
        torch.set_num_threads(threads_of(asked))
        if hasattr(torch.backends, "mha"):
            # Attention in one operator of PyTorch's own, which no exporter knows.
            torch.backends.mha.set_fastpath_enabled(False)
        self.program, self.record = None, record
        self.module = self._factory() if model.factory else self._file()
        if self.program is None:
            self.module.eval()
        self.flat, self.begun = self._flat(), self._state_of_buffers()
        import onnxscript

        record["versions"].update(version_of(onnxscript))

    def _factory(self):
        module = made(self.model)
        if not isinstance(module, torch.nn.Module):
            raise self.model.wrong(
                f"{self.model.factory} returns {type(module).__name__}, and not a torch.nn.Module", "return the module"
            )
        if self.model.file:
            self._state(module, self._loaded(weights_only=True))
        return module

    def _loaded(self, weights_only):
        file = self.model.file
        try:
            return torch.load(GIVEN / file, map_location="cpu", weights_only=weights_only)
        except pickle.UnpicklingError as failure:
            if weights_only and "eights" in str(failure):
                raise self.model.wrong(
                    f"{file} holds more than weights: {str(failure).splitlines()[0]}",
                    "write it with torch.save(module.state_dict(), …), or name it without factory, as a whole module",
                ) from failure
            raise self._unreadable(failure) from failure
        except (AttributeError, ModuleNotFoundError) as failure:
            raise self.model.wrong(
                f"{file} needs a class that is not here: {failure}",
                "name the file that defines it in include, by the name under which it was imported",
            ) from failure
        except (RuntimeError, EOFError, zipfile.BadZipFile, ValueError) as failure:
            raise self._unreadable(failure) from failure

    def _unreadable(self, failure):
        return self.model.wrong(
            f"{self.model.file} was not written by torch.save, or is truncated: {str(failure).splitlines()[0]}",
            "copy the file again, or save it again with torch.save",
        )

    def _state(self, module, state):
        file = self.model.file
        if isinstance(state, torch.nn.Module):
            raise self.model.wrong(f"{file} is a whole module", "leave factory out")
        if not isinstance(state, dict):
            raise self.model.wrong(
                f"{file} holds {type(state).__name__}, and not a state dict", "save module.state_dict()"
            )
        for key in ("state_dict", "model_state_dict"):
            if isinstance(state.get(key), dict):
                state = state[key]
                self.record["findings"].append(f"{file} is a checkpoint: its {key} was taken")
        mine = module.state_dict()
        wrong = [f"missing {each}" for each in mine if each not in state]
        wrong += [f"unexpected {each}" for each in state if each not in mine]
        wrong += [
            f"{name} has the shape {list(state[name].shape)} and not {list(value.shape)}"
            for name, value in mine.items()
            if name in state and hasattr(value, "shape") and state[name].shape != value.shape
        ]
        if wrong:
            more = f" and {len(wrong) - 8} more" if len(wrong) > 8 else ""
            wrapped = all(str(each).startswith("module.") for each in state)
            raise self.model.wrong(
                f"the weights of {file} are not those of {self.model.factory}: {', '.join(wrong[:8])}{more}",
                "save them from the module inside DataParallel (module.module.state_dict())"
                if wrapped
                else "name the factory, and its arguments, that the weights were trained with",
            )
        module.load_state_dict(state, strict=True)

    def _file(self):
        if self.model.origin == "torch-export":
            return self._exported()
        file = str(GIVEN / self.model.file)
        if zipfile.is_zipfile(file) and _is_script(file):
            return torch.jit.load(file, map_location="cpu")
        module = self._loaded(weights_only=False)
        if not isinstance(module, torch.nn.Module):
            kind = "a state dict" if isinstance(module, dict) else type(module).__name__
            raise self.model.wrong(
                f"{self.model.file} holds {kind}, and not a module",
                "name the factory that makes the module: factory: models.py:FUNCTION",
            )
        return module

    def _exported(self):
        try:
            self.program = torch.export.load(str(GIVEN / self.model.file))
        except Exception as failure:
            raise self.model.wrong(
                f"{self.model.file} is not a torch.export program that torch {torch.__version__} reads: {failure}",
                "write it with torch.export.save by the same version of torch, or name that version",
            ) from failure
        return self.program.module()

    def _flat(self):
        """The module, or one around it that takes its inputs by their names where all are those of its parameters."""
        if self.program is not None or isinstance(self.module, torch.jit.ScriptModule):
            return self.module
        parameters = inspect.signature(self.module.forward).parameters.values()
        takes = [each.name for each in parameters if each.kind == each.POSITIONAL_OR_KEYWORD]
        mine = [each.name for each in self.model.inputs]
        more = {each.name for each in parameters if each.kind == each.KEYWORD_ONLY}
        by_name = set(mine) <= {*takes, *more} and takes[: len(mine)] != mine
        return torch_outputs.Flat(self.module, mine) if by_name else self.module

    def run(self, feeds):
        """Outputs in their order; what is no tensor is left out."""
        with torch.no_grad():
            whole = self.flat.called if isinstance(self.flat, torch_outputs.Flat) else self.flat
            result = whole(*self._given(feeds))
        if self.flat is self.module and self.program is None and not torch_outputs.is_plain(result):
            self.flat = torch_outputs.Flat(self.module, [])
        found = list(torch_outputs.named(result))
        tensors = [(path, each) for path, each in found if isinstance(each, torch.Tensor)]
        if not tensors:
            raise self.model.wrong(f"it returns {type(result).__name__}, and not tensors", "return tensors")
        for path, each in found:
            said = f"its output {path} is a {type(each).__name__}, and no tensor: it is left out"
            if not isinstance(each, torch.Tensor) and said not in self.record["findings"]:
                self.record["findings"].append(said)
        self.names = torch_outputs.names_of([path for path, _ in tensors])
        return [(each.float() if each.dtype == torch.bfloat16 else each).numpy() for _, each in tensors]

    def _state_of_buffers(self):
        # Versions of tensors count what is written into them.
        if isinstance(self.module, torch.jit.ScriptModule):
            return {}
        return {name: (id(each), each._version) for name, each in self.module.named_buffers()}

    def changed(self):
        """Buffers that its runs have changed."""
        return [f"buffer {name}" for name, state in self._state_of_buffers().items() if self.begun.get(name) != state]

    def weights(self):
        """Name and value of each weight."""
        for name, value in self.module.state_dict().items():
            if value.is_floating_point():
                yield name, value.detach().float().numpy() if value.dtype == torch.bfloat16 else value.detach().numpy()

    def random_parts(self):
        """Modules that are in training mode, or dropout at all."""
        parts = list(self.module.named_modules())
        training = [name or type(part).__name__ for name, part in parts if part.training]
        dropouts = [name for name, part in parts if "Dropout" in type(part).__name__]
        found = [f"in training mode {', '.join(training[:5])}"] if training and self.program is None else []
        return found + ([f"dropout {', '.join(dropouts[:5])}"] if dropouts else [])

    def exporters(self):
        """The exporter on torch.export first, then tracing."""
        script = isinstance(self.module, torch.jit.ScriptModule)
        return (
            [("torch trace", self._trace)]
            if script
            else [
                ("torch dynamo", self._dynamo),
                ("torch trace", self._trace),
            ]
        )

    def _given(self, feeds):
        return tuple(torch.from_numpy(feeds[each.name].copy()) for each in self.model.inputs)

    def _names(self, names):
        return {"input_names": [each.name for each in self.model.inputs], "output_names": list(names)}

    def _axes(self):
        """For each input the names of its axes by their place."""
        shapes = [each.shape for each in self.model.inputs]
        return tuple({at: axis for at, axis in enumerate(shape) if isinstance(axis, str)} for shape in shapes)

    def _dynamo(self, path, opset, feeds, names):
        shapes, more = self._axes(), {}
        if self.program is None:
            more = {"dynamic_shapes": torch_axes.dynamic(self.flat, shapes)}
        path.parent.mkdir(exist_ok=True)
        exported = torch.onnx.export(
            self.flat if self.program is None else self.program,
            self._given(feeds),
            str(path),
            dynamo=True,
            opset_version=max(opset, 18),
            verbose=False,
            **self._names(names),
            **more,
        )
        found = torch_axes.specialised(exported.exported_program, shapes) if more else set()
        if found:
            self.model.fix(
                {*self.model.fixed, *found}, "torch.export finds that the model's code takes this length for a constant"
            )
            if self.model.lengths_in(feeds) != dict(self.model.lengths_in(feeds), **self.model.fixed):
                return self._dynamo(path, opset, traced(self.model, self.asked), names)
        self.ends = torch_axes.ends(exported.exported_program, self._axes())
        return self._read(path, opset), []

    def _read(self, path, opset):
        proto = load(path, self.model)
        if any(each.version > opset for each in proto.opset_import if each.domain == ""):
            from onnx import version_converter

            proto = version_converter.convert_version(proto, opset)
        name_axes(proto, {each.name: each.shape for each in self.model.inputs})
        return proto

    def _trace(self, path, opset, feeds, names):
        found, of_lengths = self._taken()
        found -= set(self.model.fixed)
        if found:
            why = "the model was traced, and its code takes this length for a number"
            self.model.fix({*self.model.fixed, *found}, why)
            if self.fewest is not None and len(self.model.fixed) >= self.fewest:
                raise self.model.wrong(f"its model takes {lengths_text(self.model.fixed)} alone")
            feeds = traced(self.model, self.asked)
        axes = {put.name: each for put, each in zip(self.model.inputs, self._axes())}  # noqa: B905 (Python 3.9)
        path.parent.mkdir(exist_ok=True)
        training = any(each.training for each in self.module.modules()) and self.program is None
        with warnings.catch_warnings(record=True) as caught, torch.no_grad():
            warnings.simplefilter("always")
            torch.onnx.export(
                self.flat,
                self._given(feeds),
                str(path),
                dynamo=False,
                opset_version=min(opset, 20),
                dynamic_axes={name: each for name, each in axes.items() if each},
                training=torch.onnx.TrainingMode.PRESERVE if training else torch.onnx.TrainingMode.EVAL,
                do_constant_folding=not training,
                **self._names(names),
            )
        return load(path, self.model), branches(caught, of_lengths)

    def _taken(self):
        """What :func:`torch_axes.taken` finds at the lengths that are tried, which is the same for all fixed axes."""
        if isinstance(self.module, torch.jit.ScriptModule):
            return set(), set()
        if self.of_trials is None:
            sets = [(self.model.lengths_in(each), self._given(each)) for each in self.sets]
            self.of_trials = torch_axes.taken(self.flat, sets)
        found, places = self.of_trials
        return set(found), places

    def of_lengths(self, failure):
        """Whether an exporter that failed so may make a model with fixed axes, as it lacks no converter."""
        whole = "\n".join(str(each) for each in causes(failure))
        return bool(self.model.axes) and "data-dependent" not in whole and not any(each.search(whole) for each in NAMED)

    def explained(self, failure):
        """A failure of an exporter: an operator without a converter by its name, else the user's line."""
        chain = causes(failure)
        whole = "\n".join(str(each) for each in chain)
        for pattern in NAMED:
            found = sorted(set(pattern.findall(whole)))
            if found:
                return self.model.wrong(
                    f"no converter to ONNX knows the operator {', '.join(found)}",
                    "write that part of the model with other operators, or with a newer opset",
                )
        places = [(file, line) for file, line in PLACE.findall(whole) if shown(file) != file]
        place = place_of(chain[-1]) or (f" at {shown(places[-1][0])}:{places[-1][1]}" if places else "")
        if "data-dependent" in whole:
            return self.model.wrong(
                f"control flow depends on the data{place}", "write the branch with torch.where or torch.cond"
            )
        first = next((line for line in str(chain[-1]).splitlines() if line.strip()), "")
        return self.model.wrong(
            f"PyTorch's exporter fails{place}: {type(chain[-1]).__name__}: {first}",
            "name a factory that returns the module itself, not its TorchScript"
            if isinstance(self.module, torch.jit.ScriptModule)
            else "write that part of the model with other operators; the log has the exporter's report",
        )


def _is_script(file):
    with zipfile.ZipFile(file) as archive:
        return any(each.endswith("/constants.pkl") or "/code/" in each for each in archive.namelist())


def branches(caught, of_lengths):
    """What tracing said it takes for a constant: place, and what; not at places that ask for lengths alone."""
    found = []
    for each in caught:
        if issubclass(each.category, torch.jit.TracerWarning) and "might cause the trace" in str(each.message):
            what = str(each.message).split(" might cause")[0]
            place = f"{shown(each.filename)}:{each.lineno}"
            said = f"{place}: tracing keeps only one branch of a data-dependent choice here ({what})"
            if said not in found and (each.filename, each.lineno) not in of_lengths:
                found.append(said)
    return found
