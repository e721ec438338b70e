"""Networks, matrix products and the triad with TensorFlow 2, compiled by XLA where that is asked for."""

import os

from bench_common import Cannot, begin, imported, main, timed

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
ASKED = begin()
tf = imported("tensorflow")
layers = tf.keras.layers
DTYPES = {"fp32": "float32", "fp64": "float64", "bf16": "bfloat16", "fp16": "float16"}


class Embedding(layers.Layer):
    def __init__(self, words, width, places, types):
        super().__init__()
        self.words, self.places = layers.Embedding(words, width), layers.Embedding(places, width)
        self.types = layers.Embedding(types, width)

    def call(self, x):
        places = tf.range(tf.shape(x)[1])[None]
        return self.words(x) + self.places(places) + self.types(tf.zeros_like(x))


class Attention(layers.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.width = heads, width
        self.inputs, self.output_of = layers.Dense(3 * width), layers.Dense(width)

    def call(self, x):
        length, size = x.shape[1], self.width // self.heads
        parts = tf.reshape(self.inputs(x), (-1, length, 3, self.heads, size))
        queries, keys, values = tf.unstack(tf.transpose(parts, (2, 0, 3, 1, 4)))
        weights = tf.nn.softmax(tf.matmul(queries, keys, transpose_b=True) / tf.cast(size**0.5, queries.dtype))
        seen = tf.transpose(tf.matmul(weights, values), (0, 2, 1, 3))
        return self.output_of(tf.reshape(seen, (-1, length, self.width)))


class First(layers.Layer):
    def call(self, x):
        return x[:, 0]


def build(described, x):
    """The layers one after the other, from a symbolic input."""
    for each in described:
        x = build_one(each, x)
    return x


def build_one(each, x):
    kind, dimensions = each["layer"], len(x.shape) - 2
    if kind == "conv":
        conv = {1: layers.Conv1D, 2: layers.Conv2D, 3: layers.Conv3D}[dimensions]
        padding = "same" if each["same"] else "valid"
        return conv(each["filters"], each["kernel"], each["stride"], padding, use_bias=each["bias"])(x)
    if kind == "maxpool":
        pool = {1: layers.MaxPooling1D, 2: layers.MaxPooling2D, 3: layers.MaxPooling3D}[dimensions]
        return pool(each["size"], each["stride"], "same" if each["same"] else "valid")(x)
    if kind == "globalpool":
        pools = {1: layers.GlobalAveragePooling1D, 2: layers.GlobalAveragePooling2D, 3: layers.GlobalAveragePooling3D}
        return pools[dimensions]()(x)
    if kind == "upsample":
        return {1: layers.UpSampling1D, 2: layers.UpSampling2D, 3: layers.UpSampling3D}[dimensions](each["factor"])(x)
    if kind == "residual":
        return layers.Add()([build(each["main"], x), build(each["shortcut"], x)])
    if kind == "activation":
        if each["kind"] == "leaky_relu":
            return layers.LeakyReLU()(x)
        return layers.Activation(each["kind"])(x)
    return {
        "dense": lambda: layers.Dense(each["units"]),
        "dropout": lambda: layers.Dropout(each["rate"]),
        "batchnorm": layers.BatchNormalization,
        "layernorm": layers.LayerNormalization,
        "flatten": layers.Flatten,
        "reshape": lambda: layers.Reshape(each["to"]),
        "first": First,
        "embedding": lambda: Embedding(each["words"], each["width"], each["places"], each["types"]),
        "attention": lambda: Attention(x.shape[-1], each["heads"]),
    }[kind]()(x)


def model_of(described, shape, words=0):
    given = tf.keras.Input(tuple(shape), dtype="int32" if words else None)
    return tf.keras.Model(given, build(described, given))


def function(asked):
    """How steps become graphs, and those machine code."""
    return lambda step: tf.function(step, autograph=False, jit_compile=asked["compiler"] == "xla" or None)


def numbers(asked):
    shape = (asked["batch"], *asked["shape"])
    if asked["words"]:
        return tf.random.uniform(shape, 0, asked["words"], tf.int32)
    return tf.random.normal(shape)


def descend(tape, loss, model):
    """One step of plain gradient descent."""
    weights = model.trainable_variables
    gradients = tape.gradient(loss, weights)
    for i, gradient in enumerate(gradients):
        weights[i].assign_sub(0.01 * tf.cast(gradient, weights[i].dtype))


def training(asked, model):
    x, y = numbers(asked), tf.random.uniform((asked["batch"],), 0, asked["classes"], tf.int32)

    def step():
        with tf.GradientTape() as tape:
            found = tf.cast(model(x, training=True), tf.float32)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=found))
        descend(tape, loss, model)
        return loss

    return step


def adversarial(asked, judge):
    """A step of the judge on true and made samples, and one of the maker."""
    maker = model_of(asked["generator"], [asked["noise"]])
    true, batch = numbers(asked), asked["batch"]
    ones, zeros = tf.ones((batch, 1)), tf.zeros((batch, 1))

    def loss_of(found, truth):
        logits = tf.cast(found, tf.float32)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=truth, logits=logits))

    def step():
        made = tf.cast(maker(tf.random.normal((batch, asked["noise"])), training=True), tf.float32)
        with tf.GradientTape() as tape:
            loss = loss_of(judge(tf.concat([true, made], 0), training=True), tf.concat([ones, zeros], 0))
        descend(tape, loss, judge)
        with tf.GradientTape() as tape:
            fooled = loss_of(judge(maker(tf.random.normal((batch, asked["noise"])), training=True)), ones)
        descend(tape, fooled, maker)
        return fooled

    return step, maker


def network(asked):
    precision = asked["precision"]
    if precision != "fp32":
        if precision not in ("bf16", "fp16"):
            raise Cannot(f"networks are computed here in fp32, bf16 or fp16, not in {precision}")
        tf.keras.mixed_precision.set_global_policy("mixed_" + DTYPES[precision])
    model = model_of(asked["layers"], asked["shape"], asked["words"])
    built = [model]
    if asked["generator"]:
        step, maker = adversarial(asked, model)
        built.append(maker)
    elif asked["kind"] == "training":
        step = training(asked, model)
    else:
        x = numbers(asked)

        def step():
            return model(x, training=False)

    count = sum(int(tf.size(each)) for network in built for each in network.trainable_variables)
    found = run_steps(asked, step)
    return dict(found, rate=asked["batch"] / found["step_seconds"], parameters=count)


def run_steps(asked, step):
    """The time of steps, of each of which the result is waited for."""
    compiled = function(asked)(step)
    found = timed(lambda: tf.nest.map_structure(lambda each: each.numpy(), compiled()), asked["seconds"])
    # Since TensorFlow 2.5.
    if tf.config.list_logical_devices("GPU") and hasattr(tf.config.experimental, "get_memory_info"):
        found["device_memory"] = tf.config.experimental.get_memory_info("GPU:0")["peak"]
    return found


def gemm(asked):
    n, dtype = asked["size"], DTYPES[asked["precision"]]
    a, b = (tf.cast(tf.random.uniform((n, n)), dtype) for _ in range(2))
    found = run_steps(asked, lambda: tf.matmul(a, b))
    return dict(found, rate=2e-9 * n**3 / found["step_seconds"])


def run(asked):
    if asked["ranks"] > 1:
        raise Cannot("TensorFlow is started on one rank here", "the stack tf-horovod trains on several")
    if asked["compiler"] not in ("", "none", "xla"):
        raise Cannot("TensorFlow has no compiler {}".format(asked["compiler"]), "name another compiler, or none")
    version = tf.__version__
    if int(version.partition(".")[0]) < 2:
        raise Cannot(
            f"the programs are for TensorFlow 2, and the image has {version}", "take an image with TensorFlow 2"
        )
    if asked["compiler"] and "TF_XLA_FLAGS" not in asked["environment"]:
        # A stack that switches XLA on for all would be compared with itself.
        os.environ.pop("TF_XLA_FLAGS", None)
    # Weights of Keras have a seed of their own, which TensorFlow 2.7 made settable.
    getattr(tf.keras.utils, "set_random_seed", tf.random.set_seed)(7)
    tf.config.threading.set_intra_op_parallelism_threads(asked["threads"])
    if asked["interop"]:
        tf.config.threading.set_inter_op_parallelism_threads(asked["interop"])
    # fp32 is fp32: GPUs would take TF32 for products, since TensorFlow 2.4.
    if hasattr(tf.config.experimental, "enable_tensor_float_32_execution"):
        tf.config.experimental.enable_tensor_float_32_execution(False)
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    found = network(asked) if asked["layers"] else gemm(asked)
    return dict(found, version=version)


main(run, ASKED)
