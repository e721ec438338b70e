"""Models that are ONNX already: computed by ONNX Runtime without any optimisation, and taken as they are."""

import onnx
import onnxruntime

from . import checks, onnxfile
from .common import GIVEN, need_version, version_of


class Original:
    """An ONNX file."""

    def __init__(self, model, asked, record):
        self.model, self.path = model, GIVEN / model.file
        record["versions"] = version_of(onnx, onnxruntime)
        need_version(model, "onnx", onnx.__version__)
        self.proto = onnxfile.load(self.path, model)
        graph = self.proto.graph
        if not graph.node and not graph.output:
            raise model.wrong(f"{model.file} is not an ONNX model: it has no graph", "export the model again")
        here = checks.newest_opset()
        limit = min(each for each in (model.opset, asked.get("opset"), here) if each)
        checks.check_opset(model, self.proto, limit, asked)
        checks.check_inputs(model, self.proto)
        self.names = [each.name for each in graph.output]
        self.run = checks.run_of(checks.session(self.path, model, asked, optimised=False))

    def weights(self):
        """Name and value of each weight."""
        for graph in onnxfile.graphs(self.proto):
            for each in graph.initializer:
                if each.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16):
                    yield each.name, onnx.numpy_helper.to_array(each)

    def random_parts(self):
        """Operators that draw random numbers."""
        kinds = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
        nodes = [each for graph in onnxfile.graphs(self.proto) for each in graph.node]
        return sorted({each.op_type for each in nodes if each.op_type in kinds})

    def exporters(self):
        """The one way: as it is."""
        return [("as it is", self._as_it_is)]

    def _as_it_is(self, path, opset, feeds, names):
        return self.proto, []

    def explained(self, failure):
        """A failure of the exporter."""
        return self.model.wrong(f"{type(failure).__name__}: {failure}")
