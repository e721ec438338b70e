"""Files of ONNX models: read, given the names that were asked for, written, described."""

import re
from pathlib import Path

import onnx
from onnx import helper

from .common import EXTERNAL_ABOVE

EXTERNAL = ".data"
STANDARD = ("", "ai.onnx")


def load(path, model, weights=True):
    """The model in a file, its weights too."""
    try:
        return onnx.load(str(path), load_external_data=weights)
    except FileNotFoundError as failure:
        raise model.wrong(f"a file of its weights is missing: {failure}", "name it in include") from None
    except Exception as failure:
        if getattr(failure, "errno", None):
            raise
        size = Path(path).stat().st_size
        raise model.wrong(
            f"{Path(path).name} is not an ONNX model, or is truncated: its {size} bytes cannot be read ({failure})",
            "copy the file again and compare its checksum, or export the model again",
        ) from failure


def opset(proto):
    """Version of the standard operators."""
    return max((each.version for each in proto.opset_import if each.domain in STANDARD), default=1)


def domains(proto):
    """Versions of all other operators, by domain."""
    used = used_domains(proto)
    return {each.domain: each.version for each in proto.opset_import if each.domain in used - set(STANDARD)}


def used_domains(proto):
    """Domains of the operators that are really there."""
    return {node.domain for graph in graphs(proto) for node in graph.node}


def rename(proto, inputs, outputs):
    """Give inputs and outputs of the graph the names asked for, in their order; what else had such a name gets another.

    ``inputs`` or ``outputs`` are None to keep what there is.
    """
    graph = proto.graph
    weights = {each.name for each in graph.initializer}
    given = [each for each in graph.input if each.name not in weights]
    wanted = {}
    for now, then in ((given, inputs), (graph.output, outputs)):
        if then is not None:
            wanted.update({each.name: name for each, name in zip(now, then)})  # noqa: B905 (Python 3.9)
    wanted = {now: then for now, then in wanted.items() if now != then}
    taken = set(wanted.values()) - set(wanted)
    change = dict({each: f"{each}__inner" for each in taken}, **wanted)
    if change:
        _rename_in(graph, change)


def _rename_in(graph, change):
    for node in graph.node:
        node.input[:] = [change.get(each, each) for each in node.input]
        node.output[:] = [change.get(each, each) for each in node.output]
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs] if attribute.type in (5, 10) else ():
                _rename_in(inner, change)
    for each in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
        each.name = change.get(each.name, each.name)
    for each in graph.sparse_initializer:
        each.values.name = change.get(each.values.name, each.values.name)


def keep_outputs(proto, names):
    """Leave these outputs alone, in this order, and what they are computed from."""
    graph = proto.graph
    outputs = {each.name: each for each in graph.output}
    if list(outputs) == list(names):
        return
    kept = [onnx.ValueInfoProto.FromString(outputs[name].SerializeToString()) for name in names]
    del graph.output[:]
    graph.output.extend(kept)
    needed, nodes = set(names), []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(_read_by(node))
            nodes.append(node)
    if len(nodes) < len(graph.node):
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in reversed(nodes)]
        del graph.node[:]
        graph.node.extend(nodes)
    # Inputs stay, so that a model which needs one no longer is refused for it by name.
    for kept_in in (graph.initializer, graph.value_info):
        for at in reversed(range(len(kept_in))):
            if kept_in[at].name not in needed:
                del kept_in[at]


def _read_by(node):
    """Names that a node reads, those of graphs inside it too."""
    inner = [graph for attribute in node.attribute for graph in [attribute.g, *attribute.graphs]]
    found = {*node.input, *(each.name for graph in inner for each in graph.output)}
    return found.union(*(_read_by(each) for graph in inner for each in graph.node))


def name_axes(proto, shapes):
    """Give the axes the names or lengths of these shapes of inputs, where an exporter has names of its own.

    Expressions, as ``2*s1 + 1``, are of the names then; one of an axis that has a length is left unknown.
    """
    wanted = {}
    for put in proto.graph.input:
        for each, dim in zip(shapes.get(put.name, ()), put.type.tensor_type.shape.dim):  # noqa: B905 (Python 3.9)
            if dim.dim_param.isidentifier():
                wanted.setdefault(dim.dim_param, each)
    for graph in graphs(proto):
        for each in [*graph.input, *graph.output, *graph.value_info]:
            for dim in each.type.tensor_type.shape.dim:
                _name_axis(dim, wanted)


def _name_axis(dim, wanted):
    found = {wanted.get(each, each) for each in re.findall(r"[A-Za-z_]\w*", dim.dim_param)}
    length = wanted.get(dim.dim_param)
    if isinstance(length, int):
        dim.dim_value = length
    elif any(isinstance(each, int) for each in found):
        dim.ClearField("dim_param")
    elif found:
        dim.dim_param = re.sub(r"[A-Za-z_]\w*", lambda name: wanted.get(name[0], name[0]), dim.dim_param)


def free_outputs(proto, computed):
    """Let no axis of an output have one length where the original gives others: exporters note the example's there.

    ``computed``: for each set of inputs the outputs of the original, in their order.
    """
    wrong = False
    for at, each in enumerate(proto.graph.output):
        dims = each.type.tensor_type.shape.dim
        shapes = [outputs[at].shape for outputs in computed if outputs[at].ndim == len(dims)]
        for axis, dim in enumerate(dims):
            if dim.HasField("dim_value") and any(shape[axis] != dim.dim_value for shape in shapes):
                dim.ClearField("dim_value")
                wrong = True
    if wrong:
        # What is noted of the values between is from the same example.
        del proto.graph.value_info[:]


def tidy(proto):
    """Without what exporters note of this machine, and with the oldest format that holds these operators."""
    del proto.metadata_props[:]
    proto.doc_string = ""
    for graph in _graphs(proto.graph):
        graph.doc_string = ""
        for each in [*graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer]:
            each.doc_string = ""
            if hasattr(each, "metadata_props"):
                del each.metadata_props[:]
        if hasattr(graph, "metadata_props"):
            del graph.metadata_props[:]
    if not proto.functions:
        proto.ir_version = min(proto.ir_version, max(8, oldest_format(proto)))


def oldest_format(proto):
    """The oldest version of ONNX's own format that has these operators."""
    return helper.find_min_ir_version_for(proto.opset_import, ignore_unknown=True)


def _graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type in (5, 10):
                for inner in [attribute.g, *attribute.graphs]:
                    yield from _graphs(inner)


def graphs(proto):
    """The graph, and those inside its nodes, as the sides of a branch."""
    return _graphs(proto.graph)


def weights_bytes(proto):
    """Bytes of all weights."""
    return sum(_bytes(each) for graph in graphs(proto) for each in graph.initializer)


def _bytes(tensor):
    if tensor.HasField("raw_data"):
        return len(tensor.raw_data)
    return tensor.ByteSize()


def save(proto, path, asked):
    """Write the model; weights of more bytes than ``external_above`` of the job in one file beside it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + EXTERNAL)
    for old in (path, beside):
        old.unlink(missing_ok=True)
    if weights_bytes(proto) > int(asked.get("external_above") or EXTERNAL_ABOVE):
        onnx.save_model(proto, str(path), save_as_external_data=True, location=beside.name, size_threshold=1024)
        beside.chmod(path.stat().st_mode & 0o777)  # ONNX makes it for its owner alone.
    else:
        onnx.save_model(proto, str(path))


def describe(path):
    """The record of a file below the folder of its model."""
    path = Path(path)
    proto = onnx.load(str(path), load_external_data=False)
    found, parameters = set(), 0
    for graph in graphs(proto):
        for each in graph.initializer:
            size = 1
            for length in each.dims:
                size *= length
            parameters += size
            found.update(entry.value for entry in each.external_data if entry.key == "location")
    return {
        "name": path.name,
        "opset": opset(proto),
        "nodes": sum(len(graph.node) for graph in graphs(proto)),
        "parameters": parameters,
        "external": sorted(found),
        "domains": domains(proto),
    }


def unknown_operators(proto):
    """Operators that are none of ONNX nor of ONNX Runtime, as a converter leaves behind what it does not know."""
    known = {*STANDARD, "ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft", "com.microsoft.nchwc"}
    local = {(each.domain, each.name) for each in proto.functions}
    found = set()
    for graph in graphs(proto):
        for node in graph.node:
            if (node.domain, node.op_type) in local:
                continue
            if node.domain not in known:
                found.add(f"{node.domain}.{node.op_type}")
            elif node.domain in STANDARD and not onnx.defs.has(node.op_type, ""):
                found.add(node.op_type)
    return sorted(found)
