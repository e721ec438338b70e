"""Networks, matrix products and sums with JAX alone, compiled as JAX compiles everything."""

import os

from bench_common import Cannot, begin, imported, main, timed

ASKED = begin()
# XLA reads it for the size of its pool of threads (DefaultThreadPoolSize in xla/pjrt/utils.cc); there is no other way.
os.environ["NPROC"] = str(ASKED["threads"])
jax = imported("jax")
np = imported("numpy")
jnp, lax, sharding = jax.numpy, jax.lax, imported("jax.sharding")
DTYPES = {"fp32": jnp.float32, "fp64": jnp.float64, "bf16": jnp.bfloat16, "fp16": jnp.float16}
ACTIVATIONS = {
    "relu": jax.nn.relu,
    "leaky_relu": jax.nn.leaky_relu,
    "gelu": jax.nn.gelu,
    "tanh": jnp.tanh,
    "softplus": jax.nn.softplus,
}
RATE = 0.01


class Weights:
    """What layers learn, and what batches leave in them, as lists."""

    def __init__(self):
        self.random = np.random.default_rng(7)
        self.learnt, self.states = [], []

    def add(self, *shape):
        """Random numbers of such a shape, by the number of inputs; their place."""
        inputs = max(1, int(np.prod(shape[:-1])))
        self.learnt.append(self.random.standard_normal(shape, dtype="float32") * (2 / inputs) ** 0.5)
        return len(self.learnt) - 1

    def fill(self, value, *shape):
        self.learnt.append(np.full(shape, value, "float32"))
        return len(self.learnt) - 1


class Run:
    """One pass through a network: its weights, and what changes on the way."""

    def __init__(self, learnt, states, training, key, dtype):
        self.learnt, self.states, self.training = learnt, list(states), training
        self.key, self.dtype = key, dtype

    def low(self, *arrays):
        """In the precision of products."""
        return [each.astype(self.dtype) for each in arrays]

    def new_key(self):
        self.key, key = jax.random.split(self.key)
        return key


def strided(places, size, stride, same):
    return [(n - (1 if same else size)) // stride + 1 for n in places]


def padding(size, same, dimensions):
    return [(size // 2 if same else 0,) * 2] * dimensions


def build(described, shape, weights):
    """A function of a run and a batch, and the shape of what comes out; channels last."""
    made = []
    for each in described:
        layer, shape = build_one(each, list(shape), weights)
        made.append(layer)

    def forward(run, x):
        for layer in made:
            x = layer(run, x)
        return x

    return forward, shape


def build_one(each, shape, weights):
    kind, places, channels = each["layer"], shape[:-1], shape[-1]
    if kind == "conv":
        return conv(each, places, channels, weights), [
            *strided(places, each["kernel"], each["stride"], each["same"]),
            each["filters"],
        ]
    if kind == "maxpool":
        after = strided(places, each["size"], each["stride"], each["same"])
        return pool(each, len(places)), [*after, channels]
    if kind == "dense":
        return dense(channels, each["units"], weights), [*places, each["units"]]
    if kind == "embedding":
        return embedding(each, weights), [*shape, each["width"]]
    if kind == "attention":
        return attention(channels, each["heads"], weights), shape
    if kind == "residual":
        main, after = build(each["main"], shape, weights)
        shortcut = build(each["shortcut"], shape, weights)[0]
        return (lambda run, x: main(run, x) + shortcut(run, x)), after
    if kind in ("batchnorm", "layernorm"):
        return {"batchnorm": batchnorm, "layernorm": layernorm}[kind](channels, weights), shape
    return without_weights(each, shape)


def without_weights(each, shape):
    kind, places = each["layer"], shape[:-1]
    axes = tuple(range(1, len(shape)))
    if kind == "upsample":

        def repeated(run, x):
            for axis in axes:
                x = jnp.repeat(x, each["factor"], axis)
            return x

        return repeated, [*(n * each["factor"] for n in places), shape[-1]]
    if kind == "reshape":
        return (lambda run, x: x.reshape(-1, *each["to"])), each["to"]
    if kind == "globalpool":
        return (lambda run, x: x.mean(axes)), shape[-1:]
    if kind == "flatten":
        return (lambda run, x: x.reshape(x.shape[0], -1)), [int(np.prod(shape))]
    if kind == "first":
        return (lambda run, x: x[:, 0]), shape[1:]
    if kind == "dropout":
        return dropout(each["rate"]), shape
    activation = ACTIVATIONS[each["kind"]]
    return (lambda run, x: activation(x)), shape


def conv(each, places, channels, weights):
    dimensions, letters = len(places), "DHW"[3 - len(places) :]
    kernel = weights.add(*[each["kernel"]] * dimensions, channels, each["filters"])
    bias = weights.fill(0, each["filters"]) if each["bias"] else None
    layout = ("N" + letters + "C", letters + "IO", "N" + letters + "C")
    around = padding(each["kernel"], each["same"], dimensions)

    def forward(run, x):
        x, by = run.low(x, run.learnt[kernel])
        x = lax.conv_general_dilated(x, by, [each["stride"]] * dimensions, around, dimension_numbers=layout)
        return x if bias is None else x + run.low(run.learnt[bias])[0]

    return forward


def pool(each, dimensions):
    size, stride = (1, *[each["size"]] * dimensions, 1), (1, *[each["stride"]] * dimensions, 1)
    around = [(0, 0), *padding(each["size"], each["same"], dimensions), (0, 0)]
    return lambda run, x: lax.reduce_window(x, -jnp.inf, lax.max, size, stride, around)


def dense(inputs, units, weights):
    by, bias = weights.add(inputs, units), weights.fill(0, units)

    def forward(run, x):
        x, matrix, more = run.low(x, run.learnt[by], run.learnt[bias])
        return x @ matrix + more

    return forward


def embedding(each, weights):
    width = each["width"]
    words, places, types = (weights.add(each[name], width) for name in ("words", "places", "types"))
    return lambda run, x: run.learnt[words][x] + run.learnt[places][: x.shape[1]] + run.learnt[types][0]


def attention(width, heads, weights):
    inputs, output = dense(width, 3 * width, weights), dense(width, width, weights)

    def forward(run, x):
        batch, length, size = x.shape[0], x.shape[1], width // heads
        parts = inputs(run, x).reshape(batch, length, 3, heads, size).transpose(2, 0, 3, 1, 4)
        scores = jnp.einsum("bhqd,bhkd->bhqk", parts[0], parts[1]).astype("float32") / size**0.5
        seen = jnp.einsum("bhqk,bhkd->bhqd", run.low(jax.nn.softmax(scores))[0], parts[2])
        return output(run, seen.transpose(0, 2, 1, 3).reshape(batch, length, width))

    return forward


def batchnorm(channels, weights):
    scale, shift = weights.fill(1, channels), weights.fill(0, channels)
    weights.states.append(np.stack([np.zeros(channels, "float32"), np.ones(channels, "float32")]))
    place = len(weights.states) - 1

    def forward(run, x):
        wide = x.astype("float32")
        if run.training:
            axes = tuple(range(x.ndim - 1))
            now = jnp.stack([wide.mean(axes), wide.var(axes)])
            run.states[place] = 0.9 * run.states[place] + 0.1 * now
        else:
            now = run.states[place]
        return ((wide - now[0]) * (run.learnt[scale] * lax.rsqrt(now[1] + 1e-5)) + run.learnt[shift]).astype(x.dtype)

    return forward


def layernorm(channels, weights):
    scale, shift = weights.fill(1, channels), weights.fill(0, channels)

    def forward(run, x):
        wide = x.astype("float32")
        wide = (wide - wide.mean(-1, keepdims=True)) * lax.rsqrt(wide.var(-1, keepdims=True) + 1e-5)
        return wide * run.learnt[scale] + run.learnt[shift]

    return forward


def dropout(rate):
    def forward(run, x):
        if not run.training:
            return x
        return jnp.where(jax.random.bernoulli(run.new_key(), 1 - rate, x.shape), x / (1 - rate), 0).astype(x.dtype)

    return forward


class Machine:
    """Where and with which ranks is computed: one device of each."""

    def __init__(self, asked):
        self.ranks, self.rank = asked["ranks"], int(os.environ.get("RANK", "0"))
        if asked["precision"] == "fp64":
            jax.config.update("jax_enable_x64", True)
        # fp32 is fp32: GPUs would take TF32 for products.
        jax.config.update("jax_default_matmul_precision", "highest")
        if self.ranks > 1:
            if int(os.environ.get("WORLD_SIZE", "1")) != self.ranks:
                raise RuntimeError("{} ranks met, not {}".format(os.environ.get("WORLD_SIZE", "1"), self.ranks))
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
            where = "{}:{}".format(os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"])
            jax.distributed.initialize(where, num_processes=self.ranks, process_id=self.rank)
        devices = [next(d for d in jax.devices() if d.process_index == each) for each in range(self.ranks)]
        self.device, self.last = devices[self.rank], None
        self.mesh = sharding.Mesh(np.array(devices), ("ranks",))

    def put(self, tree, own=False):
        """Arrays on the device: the same on all ranks, or a part of each rank's ``own``."""
        if self.ranks == 1:
            return jax.device_put(tree, self.device)
        spec = sharding.PartitionSpec("ranks") if own else sharding.PartitionSpec()
        place = sharding.NamedSharding(self.mesh, spec)
        return jax.tree_util.tree_map(lambda each: jax.make_array_from_process_local_data(place, each), tree)

    def compiled(self, function, own, **how):
        """A function of arrays, of which ``own`` says for each whether it is a part of each rank."""
        if self.ranks == 1:
            return jax.jit(function, **how)
        whole, part = sharding.PartitionSpec(), sharding.PartitionSpec("ranks")
        specs = {"in_specs": tuple(part if each else whole for each in own), "out_specs": whole}
        # Each rank normalises its own batch, so that what is the same on all ranks cannot be checked.
        if hasattr(jax, "shard_map"):
            spread = jax.shard_map(function, mesh=self.mesh, check_vma=False, **specs)
        else:
            spread = imported("jax.experimental.shard_map").shard_map(
                function, mesh=self.mesh, check_rep=False, **specs
            )
        return jax.jit(spread, **how)

    def mean(self, tree):
        """Of all ranks, inside of a function."""
        return lax.pmean(tree, "ranks") if self.ranks > 1 else tree

    def own_key(self, key):
        return jax.random.fold_in(key, lax.axis_index("ranks")) if self.ranks > 1 else key

    def together(self, numbers):
        """The largest of all ranks, which meet by that."""
        if self.ranks == 1:
            return max(numbers)
        largest = self.compiled(lambda each: lax.pmax(each, "ranks"), [True])
        return int(np.asarray(largest(self.put(np.array([max(numbers)], "int32"), own=True)).addressable_data(0))[0])

    def timed(self, step, asked):
        on_cpu = self.device.platform == "cpu"

        def once():
            self.last = step()
            # Steps that need nothing of each other would run at the same time there.
            if on_cpu:
                jax.block_until_ready(self.last)

        found = timed(once, asked["seconds"], self.together, lambda: jax.block_until_ready(self.last))
        used = None if on_cpu else self.device.memory_stats()
        if used and used.get("peak_bytes_in_use"):
            found["device_memory"] = used["peak_bytes_in_use"]
        return found


def numbers(asked, machine):
    """A batch of samples, of each rank its own."""
    random, shape = np.random.default_rng(machine.rank), (asked["batch"], *asked["shape"])
    if asked["words"]:
        return machine.put(random.integers(0, asked["words"], shape, "int32"), own=True)
    return machine.put(random.standard_normal(shape, dtype="float32"), own=True)


def descended(learnt, gradients, machine):
    """Weights after a step of plain gradient descent."""
    return jax.tree_util.tree_map(lambda each, gradient: each - RATE * gradient, learnt, machine.mean(gradients))


def training(asked, machine, forward, weights):
    x = numbers(asked, machine)
    y = np.random.default_rng(machine.rank).integers(0, asked["classes"], asked["batch"], "int32")
    y = machine.put(y, own=True)

    def loss(learnt, states, x, y, key):
        run = Run(learnt, states, True, key, DTYPES[asked["precision"]])
        said = jax.nn.log_softmax(forward(run, x).astype("float32"))
        return -jnp.take_along_axis(said, y[:, None], 1).mean(), run.states

    def learn(learnt, states, key, x, y):
        key, now = jax.random.split(key)
        gradients, states = jax.grad(loss, has_aux=True)(learnt, states, x, y, machine.own_key(now))
        return descended(learnt, gradients, machine), states, key

    do = machine.compiled(learn, [False, False, False, True, True], donate_argnums=(0, 1))
    held = [machine.put((weights.learnt, weights.states, np.array([0, 7], "uint32")))]

    def step():
        held[0] = do(*held[0], x, y)
        return held[0]

    return step


def adversarial(asked, machine, judge, weights):
    """A step of the judge on true and made samples, and one of the maker."""
    more, batch, dtype = Weights(), asked["batch"], DTYPES[asked["precision"]]
    maker = build(asked["generator"], [asked["noise"]], more)[0]
    true = numbers(asked, machine)

    def made_by(learnt, key):
        return maker(Run(learnt, (), True, key, dtype), jax.random.normal(key, (batch, asked["noise"])))

    def loss(learnt, x, truth):
        logits = judge(Run(learnt, (), True, None, dtype), x).astype("float32")[:, 0]
        return (jax.nn.softplus(-logits) * truth + jax.nn.softplus(logits) * (1 - truth)).mean()

    def fooled(learnt, of_judge, key):
        return loss(of_judge, made_by(learnt, key), jnp.ones(batch))

    def learn(of_judge, of_maker, key, true):
        key, now = jax.random.split(key)
        first, second = jax.random.split(machine.own_key(now))
        both = jnp.concatenate([true, made_by(of_maker, first).astype(true.dtype)])
        truth = jnp.concatenate([jnp.ones(batch), jnp.zeros(batch)])
        of_judge = descended(of_judge, jax.grad(loss)(of_judge, both, truth), machine)
        return of_judge, descended(of_maker, jax.grad(fooled)(of_maker, of_judge, second), machine), key

    do = machine.compiled(learn, [False, False, False, True], donate_argnums=(0, 1))
    held = [machine.put((weights.learnt, more.learnt, np.array([0, 7], "uint32")))]

    def step():
        held[0] = do(*held[0], true)
        return held[0]

    return step, sum(each.size for each in more.learnt)


def inference(asked, machine, forward, weights):
    dtype = DTYPES[asked["precision"]]
    learnt, states, x = machine.put(weights.learnt), machine.put(weights.states), numbers(asked, machine)
    do = machine.compiled(lambda *given: forward(Run(*given[:2], False, None, dtype), given[2]), [False, False, True])
    return lambda: do(learnt, states, x)


def network(asked, machine):
    if asked["precision"] not in ("fp32", "bf16", "fp16"):
        raise Cannot(
            "networks are computed here in fp32, bf16 or fp16, not in {}".format(asked["precision"]),
            "name another precision",
        )
    weights = Weights()
    forward = build(asked["layers"], asked["shape"], weights)[0]
    count = sum(each.size for each in weights.learnt)
    if asked["generator"]:
        step, more = adversarial(asked, machine, forward, weights)
        count += more
    else:
        step = (training if asked["kind"] == "training" else inference)(asked, machine, forward, weights)
    found = machine.timed(step, asked)
    return dict(found, rate=asked["batch"] / found["step_seconds"], parameters=int(count))


def gemm(asked, machine):
    n, random = asked["size"], np.random.default_rng(7)
    a, b = (machine.put(random.random((n, n)).astype(DTYPES[asked["precision"]])) for _ in range(2))
    do = machine.compiled(jnp.dot, [False, False])
    found = machine.timed(lambda: do(a, b), asked)
    return dict(found, rate=2e-9 * n**3 / found["step_seconds"])


def allreduce(asked, machine):
    data = machine.put(np.zeros(asked["size"], DTYPES[asked["precision"]]), own=True)
    do = machine.compiled(lambda each: lax.psum(each, "ranks"), [True])
    found = machine.timed(lambda: do(data), asked)
    return dict(found, rate=1e-9 * asked["size"] * data.dtype.itemsize / found["step_seconds"])


def run(asked):
    if asked["compiler"] not in ("", "none"):
        raise Cannot(
            "JAX always compiles with XLA; it has no compiler {}".format(asked["compiler"]),
            "name another compiler, or none",
        )
    if asked["interop"]:
        raise Cannot("JAX has no threads between operations that could be counted", "leave interop out")
    machine = Machine(asked)
    does = network if asked["layers"] else {"gemm": gemm, "allreduce": allreduce}[asked["workload"]]
    found = does(asked, machine)
    if machine.ranks > 1:
        jax.distributed.shutdown()
    return dict(found, version=jax.__version__)


main(run, ASKED)
