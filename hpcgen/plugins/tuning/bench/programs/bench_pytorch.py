"""Networks, matrix products, the triad and sums with PyTorch; inference also by ONNX Runtime and OpenVINO."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from bench_common import Cannot, begin, imported, main, timed

ASKED = begin()
torch = imported("torch")
nn = torch.nn
DTYPES = {"fp32": torch.float32, "fp64": torch.float64, "bf16": torch.bfloat16, "fp16": torch.float16}
CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
POOL = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
NORM = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
ACTIVATIONS = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "gelu": nn.GELU, "tanh": nn.Tanh, "softplus": nn.Softplus}


class Residual(nn.Module):
    def __init__(self, main, shortcut):
        super().__init__()
        self.main, self.shortcut = main, shortcut

    def forward(self, x):
        return self.main(x) + self.shortcut(x)


class Embedding(nn.Module):
    def __init__(self, words, width, places, types):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.types = nn.Embedding(types, width)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.words(x) + self.places(places) + self.types(torch.zeros_like(x))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.inputs(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        queries, keys, values = parts[0], parts[1], parts[2]
        if hasattr(nn.functional, "scaled_dot_product_attention"):
            seen = nn.functional.scaled_dot_product_attention(queries, keys, values)
        else:
            weights = queries @ keys.transpose(-1, -2) / (width // self.heads) ** 0.5
            seen = torch.softmax(weights, -1) @ values
        return self.output(seen.transpose(1, 2).reshape(batch, length, width))


class Lstm(nn.Module):
    def __init__(self, width, units, whole):
        super().__init__()
        self.whole, self.layer = whole, nn.LSTM(width, units, batch_first=True)

    def forward(self, x):
        said = self.layer(x)[0]
        return said if self.whole else said[:, -1]


class Of(nn.Module):
    """A function as a layer."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


def strided(places, size, stride, same):
    return [(n - (1 if same else size)) // stride + 1 for n in places]


def build(layers, shape):
    """The layers one after the other, and the shape of what comes out; shapes with the channels last."""
    made = []
    for each in layers:
        layer, shape = build_one(each, list(shape))
        made.append(layer)
    return nn.Sequential(*made), shape


def build_one(each, shape):
    kind, places, channels = each["layer"], shape[:-1], shape[-1]
    if kind == "conv":
        size, stride, same = each["kernel"], each["stride"], each["same"]
        padding = size // 2 if same else 0
        layer = CONV[len(places)](channels, each["filters"], size, stride, padding, bias=each["bias"])
        return layer, [*strided(places, size, stride, same), each["filters"]]
    if kind == "maxpool":
        size, stride, same = each["size"], each["stride"], each["same"]
        layer = POOL[len(places)](size, stride, size // 2 if same else 0)
        return layer, [*strided(places, size, stride, same), channels]
    if kind == "dense":
        return nn.Linear(channels, each["units"]), [*places, each["units"]]
    if kind == "embedding":
        return Embedding(each["words"], each["width"], each["places"], each["types"]), [*shape, each["width"]]
    if kind == "residual":
        main, after = build(each["main"], shape)
        return Residual(main, build(each["shortcut"], shape)[0]), after
    if kind == "reshape":
        to = each["to"]
        return Of(lambda x: x.reshape(-1, to[-1], *to[:-1])), to
    if kind == "upsample":
        return nn.Upsample(scale_factor=each["factor"]), [*(n * each["factor"] for n in places), channels]
    if kind == "globalpool":
        return Of(lambda x: x.flatten(2).mean(2)), [channels]
    if kind == "flatten":
        size = 1
        for n in shape:
            size *= n
        return nn.Flatten(), [size]
    if kind == "first":
        return Of(lambda x: x[:, 0]), shape[1:]
    if kind == "attention":
        return Attention(channels, each["heads"]), shape
    if kind == "lstm":
        after = [*places, each["units"]] if each["whole"] else [each["units"]]
        return Lstm(channels, each["units"], each["whole"]), after
    if kind == "batchnorm":
        return NORM[len(places)](channels), shape
    if kind == "layernorm":
        return nn.LayerNorm(channels), shape
    if kind == "dropout":
        return nn.Dropout(each["rate"]), shape
    return ACTIVATIONS[each["kind"]](), shape


class Machine:
    """Where and with which ranks is computed."""

    def __init__(self, asked):
        torch.manual_seed(7)
        torch.set_num_threads(asked["threads"])
        if asked["interop"]:
            torch.set_num_interop_threads(asked["interop"])
        self.ranks = asked["ranks"]
        cuda, self.device = torch.cuda.is_available(), torch.device("cpu")
        if cuda:
            # fp32 is fp32: convolutions would take TF32.
            torch.backends.cudnn.allow_tf32 = False
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
            torch.cuda.set_device(self.device)
        if self.ranks > 1:
            torch.distributed.init_process_group("nccl" if cuda else "gloo")
            if torch.distributed.get_world_size() != self.ranks:
                raise RuntimeError(f"{torch.distributed.get_world_size()} ranks met, not {self.ranks}")

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def together(self, numbers):
        """The largest of all ranks, which meet by that."""
        if self.ranks == 1:
            return max(numbers)
        found = torch.tensor(numbers, device=self.device)
        torch.distributed.all_reduce(found, op=torch.distributed.ReduceOp.MAX)
        return int(found.max())

    def timed(self, step, asked):
        found = timed(step, asked["seconds"], self.together, self.wait)
        if self.device.type == "cuda":
            found["device_memory"] = torch.cuda.max_memory_allocated()
        return found


def numbers(asked, shape):
    """A batch of samples, channels first."""
    if asked["words"]:
        return torch.randint(0, asked["words"], (asked["batch"], *shape))
    return torch.randn(asked["batch"], *([shape[-1], *shape[:-1]] if len(shape) > 1 else shape))


def laid_out(given):
    """A batch of pictures, or a network, with the channels last in memory, where HPCGEN_CHANNELS_LAST says so.

    What computes is the same, and so are the results but for the order of sums.
    """
    wanted = os.environ.get("HPCGEN_CHANNELS_LAST") == "1"
    suits = isinstance(given, nn.Module) or given.dim() == 4
    return given.to(memory_format=torch.channels_last) if wanted and suits else given


def compile_cache(kept):
    """The folder for what is compiled: one that is kept, if that can be, else an empty one."""
    if kept:
        try:
            Path(kept).mkdir(parents=True, exist_ok=True)
            if os.access(kept, os.W_OK):
                # On by default in newer releases only.
                os.environ.setdefault("TORCHINDUCTOR_FX_GRAPH_CACHE", "1")
                return str(Path(kept).resolve())
        except OSError:
            pass
    # What an earlier round compiled would hide what compiling takes.
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, True)
    return folder


def compiled(model, asked):
    if asked["compiler"] != "torch.compile":
        return model
    if not hasattr(torch, "compile"):
        raise Cannot(
            f"torch.compile came with PyTorch 2.0, and the image has {torch.__version__}",
            "name another compiler, or none",
        )
    if not any(shutil.which(name) for name in (os.environ.get("CXX") or "g++", "c++", "clang++")):
        raise Cannot(
            "torch.compile needs a C++ compiler, and the image has none", "build it with --set pytorch.compile=true"
        )
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = compile_cache(asked["cache"])
    return torch.compile(model)


def divided(model, machine):
    """The model as one of all ranks."""
    return nn.parallel.DistributedDataParallel(model) if machine.ranks > 1 else model


def training(asked, machine, model, lower):
    x = laid_out(numbers(asked, asked["shape"]).to(machine.device))
    y = torch.randint(0, asked["classes"], (asked["batch"],), device=machine.device)
    model.train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    model = compiled(divided(model, machine), asked)

    def step():
        optimiser.zero_grad()
        with lower():
            loss = nn.functional.cross_entropy(model(x).float(), y)
        loss.backward()
        optimiser.step()
        return loss.detach()

    return step


def adversarial(asked, machine, judge, lower):
    """A step of the judge on true and made samples, and one of the maker."""
    maker = build(asked["generator"], [asked["noise"]])[0].to(machine.device)
    count = sum(each.numel() for each in maker.parameters())
    true, batch = numbers(asked, asked["shape"]).to(machine.device), asked["batch"]
    ones, zeros = torch.ones(batch, 1, device=machine.device), torch.zeros(batch, 1, device=machine.device)
    of_judge, of_maker = (torch.optim.SGD(each.parameters(), lr=0.01) for each in (judge, maker))
    weights = list(judge.parameters())
    # Each network is of all ranks in its own step; in the other's it is only used, and has no gradients to be summed.
    of_all = [compiled(divided(each, machine), asked) for each in (judge, maker)] if machine.ranks > 1 else []
    judge, maker = compiled(judge, asked), compiled(maker, asked)
    learning, making = of_all or (judge, maker)
    loss = nn.functional.binary_cross_entropy_with_logits

    def step():
        of_judge.zero_grad()
        with lower():
            made = maker(torch.randn(batch, asked["noise"], device=machine.device)).detach()
            both = learning(torch.cat([true, made])).float()
        loss(both, torch.cat([ones, zeros])).backward()
        of_judge.step()
        of_maker.zero_grad()
        for each in weights:
            each.requires_grad_(False)
        with lower():
            judged = judge(making(torch.randn(batch, asked["noise"], device=machine.device))).float()
        loss(judged, ones).backward()
        of_maker.step()
        for each in weights:
            each.requires_grad_(True)

    return step, count


def inference(asked, machine, model, lower):
    x = numbers(asked, asked["shape"])
    model.eval()
    if asked["compiler"] in ("onnxruntime", "openvino"):
        return converted(asked, model, x)
    x, model = laid_out(x.to(machine.device)), compiled(model, asked)

    def step():
        with torch.no_grad(), lower():
            return model(x)

    return step


def converted(asked, model, x):
    """The same model in the other engine, written by PyTorch as ONNX."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, True)
    path = f"{folder}/model.onnx"
    engine = asked["compiler"]
    try:
        __import__("onnx")
        module = __import__(engine)
    except ImportError as failure:
        raise Cannot(f"{engine}: {failure}", "the stack onnx-convert has the required packages") from failure
    if engine == "onnxruntime" and asked["precision"] != "fp32":
        raise Cannot(
            "ONNX Runtime computes here only in fp32, not in {}".format(asked["precision"]), "name another precision"
        )
    torch.onnx.export(model, (x,), path, input_names=["x"], output_names=["y"], opset_version=18)
    if engine == "onnxruntime":
        options = module.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = asked["threads"], asked["interop"] or 1
        if options.inter_op_num_threads > 1:
            options.execution_mode = module.ExecutionMode.ORT_PARALLEL
        session = module.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        given = {"x": x.numpy()}
        return lambda: session.run(None, given)
    hint = {"fp32": "f32", "bf16": "bf16"}.get(asked["precision"])
    if hint is None:
        raise Cannot(
            "OpenVINO computes here in fp32 or bf16, not in {}".format(asked["precision"]), "name another precision"
        )
    settings = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": asked["threads"]}
    request = module.Core().compile_model(path, "CPU", settings).create_infer_request()
    given = {"x": x.numpy()}
    return lambda: request.infer(given)


def network(asked, machine):
    precision = asked["precision"]
    if precision not in ("fp32", "bf16", "fp16"):
        raise Cannot(f"networks are computed here in fp32, bf16 or fp16, not in {precision}")
    kind = machine.device.type

    def lower():
        return torch.autocast(kind, DTYPES[precision], enabled=precision != "fp32")

    model = laid_out(build(asked["layers"], asked["shape"])[0].to(machine.device))
    count = sum(each.numel() for each in model.parameters())
    if asked["generator"]:
        step, more = adversarial(asked, machine, model, lower)
        count += more
    else:
        step = (training if asked["kind"] == "training" else inference)(asked, machine, model, lower)
    found = machine.timed(step, asked)
    readers = ["channels_last"] if any(isinstance(each, nn.Conv2d) for each in model.modules()) else []
    return dict(found, rate=asked["batch"] / found["step_seconds"], parameters=count, readers=readers)


def gemm(asked, machine):
    n, dtype = asked["size"], DTYPES[asked["precision"]]
    a, b = (torch.rand(n, n, device=machine.device).to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    found = machine.timed(lambda: torch.mm(a, b, out=out), asked)
    return dict(found, rate=2e-9 * n**3 / found["step_seconds"])


def stream(asked, machine):
    n, dtype = asked["size"], DTYPES[asked["precision"]]
    a, b, c = (torch.rand(n, device=machine.device).to(dtype) for _ in range(3))
    found = machine.timed(lambda: torch.add(b, c, alpha=3.0, out=a), asked)
    return dict(found, rate=3e-9 * n * a.element_size() / found["step_seconds"])


def allreduce(asked, machine):
    data = torch.zeros(asked["size"], dtype=DTYPES[asked["precision"]], device=machine.device)
    found = machine.timed(lambda: torch.distributed.all_reduce(data), asked)
    return dict(found, rate=1e-9 * data.numel() * data.element_size() / found["step_seconds"])


def run(asked):
    if asked["compiler"] not in ("", "none", "torch.compile", "onnxruntime", "openvino"):
        raise Cannot("PyTorch has no compiler {}".format(asked["compiler"]), "name another compiler, or none")
    if asked["compiler"] in ("onnxruntime", "openvino") and asked["kind"] != "inference":
        raise Cannot(
            "{} only does inference".format(asked["compiler"]), "name another compiler, or a workload of inference"
        )
    machine = Machine(asked)
    if asked["layers"]:
        found = network(asked, machine)
    elif asked["compiler"] not in ("", "none"):
        raise Cannot("a single operation is not compiled", "leave the compiler out, or name a network")
    else:
        found = {"gemm": gemm, "stream": stream, "allreduce": allreduce}[asked["workload"]](asked, machine)
    if machine.ranks > 1:
        torch.distributed.destroy_process_group()
    return dict(found, version=torch.__version__.partition("+")[0])


main(run, ASKED)
