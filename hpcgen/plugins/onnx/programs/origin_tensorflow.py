"""Models of TensorFlow: a SavedModel by its signature, a file of Keras, or a factory of Keras with weights."""

import logging
import re

import numpy as np
import tensorflow as tf
import tf2onnx
from onnx import numpy_helper
from tf2onnx.handler import tf_op

from .common import GIVEN, imported, need_version, seed_of, text, threads_of, version_of
from .factory import made, place_of
from .onnxfile import load

NEWEST = max(tf2onnx.constants.OPSET_TO_IR_VERSION)
"""The newest opset that tf2onnx writes, which Keras' own export goes through too."""


@tf_op("Erfc")
class _Erfc:
    """The complementary error function, of which Keras makes its exact gelu and tf2onnx 1.17 has no converter."""

    @classmethod
    def version_9(cls, ctx, node, **more):
        shape, dtype = ctx.get_shape(node.output[0]), ctx.get_dtype(node.output[0])
        kind = tf2onnx.utils.map_onnx_to_numpy_type(dtype)
        put, made = node.input[0], node.output[0]
        ctx.remove_node(node.name)
        one = ctx.make_const(tf2onnx.utils.make_name("one"), np.array(1, kind)).output[0]
        inner = ctx.make_node("Erf", [put], shapes=[shape], dtypes=[dtype]).output[0]
        ctx.make_node("Sub", [one, inner], outputs=[made], shapes=[shape], dtypes=[dtype])


class Original:
    """A function of TensorFlow that computes on the CPU."""

    def __init__(self, model, asked, record):
        self.model, self.asked, self.record = model, asked, record
        self.names, self.keras, self.loaded = (), None, None
        tf.config.threading.set_intra_op_parallelism_threads(threads_of(asked))
        tf.random.set_seed(seed_of(asked))
        record["versions"] = version_of(tf, tf2onnx)
        if model.origin == "keras":
            keras = imported("keras", "a model of Keras")
            record["versions"].update(version_of(keras))
            need_version(model, "keras", keras.__version__)
            keras.utils.set_random_seed(seed_of(asked))
            self.keras = self._made(keras) if model.factory else self._keras_file(keras)
            self.function = self._of_keras()
        else:
            need_version(model, "tensorflow", tf.__version__)
            self.function = self._made_function() if model.factory else self._saved_model()
        signature = [
            tf.TensorSpec([None if isinstance(each, str) else each for each in put.shape], put.dtype, name=put.name)
            for put in model.inputs
        ]
        self.signature = signature
        self.compiled = tf.function(self.function, input_signature=signature)

    def _made(self, keras):
        built = made(self.model)
        if not isinstance(built, keras.Model):
            raise self.model.wrong(
                f"{self.model.factory} returns {type(built).__name__}, and not a keras.Model", "return the model"
            )
        if self.model.file:
            try:
                built.load_weights(GIVEN / self.model.file)
            except Exception as failure:
                raise self.model.wrong(
                    f"the weights of {self.model.file} are not those of {self.model.factory}: {text(failure)}",
                    "name the factory, and its arguments, that the weights were trained with",
                ) from failure
        return built

    def _keras_file(self, keras):
        try:
            # A Lambda layer has Python code: it runs here, in the container.
            return keras.models.load_model(GIVEN / self.model.file, compile=False, safe_mode=False)
        except Exception as failure:
            raise self.model.wrong(
                f"{self.model.file} is not a model that Keras {keras.__version__} reads: {text(failure)}",
                "save it with model.save('NAME.keras'); name a file that defines its own layers in include",
            ) from failure

    def _of_keras(self):
        named = [each.name.split(":")[0] for each in getattr(self.keras, "inputs", None) or []]
        mine = [each.name for each in self.model.inputs]
        order = [mine.index(each) for each in named] if sorted(named) == sorted(mine) else list(range(len(mine)))

        def call(*given):
            given = [given[each] for each in order]
            return self.keras(given[0] if len(given) == 1 else given, training=False)

        return call

    def _made_function(self):
        built = made(self.model)
        if not callable(built):
            raise self.model.wrong(f"{self.model.factory} returns {type(built).__name__}", "return a callable")
        self.loaded = built
        return built

    def _saved_model(self):
        file, name = self.model.file, self.model.signature
        try:
            self.loaded = tf.saved_model.load(str(GIVEN / file))
        except Exception as failure:
            raise self.model.wrong(
                f"{file} is not a SavedModel: {text(failure)}", "name the folder that has saved_model.pb"
            ) from failure
        signatures = dict(self.loaded.signatures)
        if name not in signatures:
            raise self.model.wrong(
                f"{file} has no signature {name}: it has {', '.join(sorted(signatures)) or 'none'}",
                "write one of them as signature in the ensemble file",
            )
        chosen = signatures[name]
        wanted = list(chosen.structured_input_signature[1])
        mine = [each.name for each in self.model.inputs]
        if sorted(wanted) != sorted(mine) and (len(wanted) != 1 or len(mine) != 1):
            raise self.model.wrong(
                f"the signature {name} of {file} takes {', '.join(sorted(wanted))}, "
                f"and the ensemble file says {', '.join(mine)}",
                "call the inputs as the signature does",
            )
        keys = list(mine) if sorted(wanted) == sorted(mine) else wanted
        outputs = sorted(chosen.structured_outputs)
        declared = self.model.names
        self.names = declared if sorted(declared) == outputs else outputs

        def call(*given):
            result = chosen(**{key: given[at] for at, key in enumerate(keys)})
            return [result[each] for each in self.names]

        return call

    def run(self, feeds):
        """Outputs in their order."""
        try:
            result = self.compiled(*[tf.constant(feeds[each.name]) for each in self.model.inputs])
        except (MemoryError, tf.errors.ResourceExhaustedError):
            raise
        except Exception as failure:
            raise self.model.wrong(
                f"TensorFlow does not run it with the declared inputs: {_reason(failure)}",
                "correct the shapes in the ensemble file; where a layer needs a length, write it in place of the axis",
            ) from failure
        return [np.asarray(each) for each in tf.nest.flatten(result)]

    def weights(self):
        """Name and value of each weight."""
        if self.keras is not None:
            for each in self.keras.weights:
                yield each.path, np.asarray(each)
            return
        for each in getattr(self.loaded, "variables", None) or ():
            if each.dtype.is_floating:
                yield each.name, each.numpy()

    @property
    def remedy(self):
        """What to do where the converted model computes something else."""
        layers = getattr(self.keras, "_flatten_layers", lambda: ())()
        if any(type(each).__name__ == "TimeDistributed" for each in layers):
            return "reshape time into the batch before that layer and back behind it, instead of TimeDistributed, or "
        return "find which operator differs, or "

    def random_parts(self):
        """Layers that draw random numbers."""
        layers = getattr(self.keras, "_flatten_layers", lambda: ())()
        names = [each.name for each in layers if any(key in type(each).__name__ for key in ("Dropout", "Noise"))]
        return [f"layers {', '.join(names[:5])}"] if names else []

    def exporters(self):
        """From a function, then Keras' own."""
        first = [("tf2onnx from_function", self._from_function)]
        return first + ([("keras export", self._keras_export)] if self.keras is not None else [])

    def _from_function(self, path, opset, feeds, names):
        def call(*given):
            result = tf.nest.flatten(self.function(*given))
            return {name: tf.identity(result[at]) for at, name in enumerate(names)}

        caught = _Log()
        logging.getLogger("tf2onnx").addHandler(caught)
        function = tf.function(call, input_signature=self.signature)
        try:
            proto, _ = tf2onnx.convert.from_function(function, input_signature=self.signature, opset=min(opset, NEWEST))
        except Exception as failure:
            raise self._unknown(caught) or failure from failure
        unknown = self._unknown(caught)
        if unknown:
            raise unknown
        captured = function.get_concrete_function().graph.captures
        _constants(proto, {place.name: value for value, place in captured if value.dtype != tf.resource})
        _order(proto, [each.name for each in self.model.inputs], names)
        return proto, []

    def _unknown(self, caught):
        found = sorted(set(re.findall(r"Tensorflow op \[[^:\]]+: (\w+)\] is not supported", caught.text)))
        if found:
            return self.model.wrong(
                f"no converter to ONNX knows the operator {', '.join(found)} of TensorFlow",
                "write that part of the model with other operators",
            )
        return None

    def _keras_export(self, path, opset, feeds, names):
        path.parent.mkdir(exist_ok=True)
        self.keras.export(str(path), format="onnx", verbose=False, opset_version=min(opset, NEWEST))
        return load(path, self.model), []

    def explained(self, failure):
        """A failure of an exporter."""
        return self.model.wrong(
            f"the exporter fails{place_of(failure)}: {_reason(failure)}",
            "write data-dependent choices with tf.cond or tf.where, and see the log",
        )


def _reason(failure):
    """The error itself: TensorFlow puts the lines of the code that led to it around."""
    lines = [each.strip() for each in str(failure).splitlines() if each.strip()]
    found = [at for at, each in enumerate(lines) if re.match(r"[A-Za-z.]*(Error|Exception): ", each)]
    # Keras names the layer, and the reason in the next line.
    said = (
        " ".join(lines[found[-1] : found[-1] + 2])
        if found
        else f"{type(failure).__name__}: {lines[0] if lines else ''}"
    )
    return text(said)[:300]


class _Log(logging.Handler):
    """What a converter logs: it names there the operators that it does not know."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())

    @property
    def text(self):
        return "\n".join(self.lines)


def _constants(proto, captured):
    """Tensors that a function has caught as constants of the graph, where tf2onnx leaves them its inputs."""
    for put in list(proto.graph.input):
        value = captured.get(put.name)
        if value is not None:
            proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), put.name))
            proto.graph.input.remove(put)


def _order(proto, inputs, outputs):
    """Inputs and outputs of the graph in the order asked for, where all have those names."""
    for now, then in ((proto.graph.input, inputs), (proto.graph.output, outputs)):
        by_name = {each.name.split(":")[0]: each for each in now}
        if sorted(by_name) == sorted(then):
            ordered = [type(now[0]).FromString(by_name[each].SerializeToString()) for each in then]
            del now[:]
            now.extend(ordered)
