#!/bin/bash
# Build script of onnxruntime for supermuc, partition thin
# by hpcgen 0.1.0; made again by:
#   hpcgen render --site supermuc --stack onnxruntime
#
# usage: build.sh [OUTPUT]
# Builds with ch-image on a machine that has a network, and converts with ch-convert. OUTPUT may end in .sqfs
# (squashfs), .tar.gz, or be a folder; copy it to the system afterwards. The Dockerfile below is in
# the dialect that ch-image 0.31 and later read. HPCGEN_BUILD_OPTIONS are further words for ch-image build.
set -euo pipefail

kit=$(cd "$(dirname "$0")" && pwd)
output=${1:-onnxruntime.sqfs}
name=onnxruntime-supermuc
certificates=()
certificate_names=()
kit_files=(build.sh hpcgen.lock job.slurm plan.json preflight.sh recipe.json selftest.sh)
read -r -a options <<< "${HPCGEN_BUILD_OPTIONS:-}"

for tool in ch-image ch-convert; do
    if ! command -v "$tool" > /dev/null; then
        echo "build.sh: $tool is not installed; it comes with Charliecloud 0.31 or later" >&2
        exit 69
    fi
done

work=$(mktemp -d)
partial=$output.partial
trap 'rm -rf "$work" "$partial"' EXIT
mkdir "$work/certificates" "$work/kit"
for file in "${kit_files[@]}"; do
    if [ ! -r "$kit/$file" ]; then
        echo "build.sh: the kit's $file is not beside this script; render the kit again with -o" >&2
        exit 66
    fi
    cp -p "$kit/$file" "$work/kit/"
done
for number in "${!certificates[@]}"; do
    file=${certificates[number]}
    if [ ! -r "$file" ]; then
        echo "build.sh: the site's certificate $file is not on this machine; copy it here or correct the profile" >&2
        exit 66
    fi
    cp -p "$file" "$work/certificates/${certificate_names[number]}"
done

cat > "$work/Dockerfile" << 'HPCGEN_DOCKERFILE'
FROM docker.io/library/ubuntu:24.04 AS builder

ENV PATH="/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENV PYTHONNOUSERSITE="1"

# distribution: packages
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends bzip2 ca-certificates curl libstdc++6 patch python3 python3-dev python3-venv xz-utils && \
    apt-get clean && \
    rm -rf /var/lib/apt/lists/*

# python 3.12.3: Python environment
RUN /usr/bin/python3 -m venv /opt/python

# python 3.12.3: pip
RUN mkdir -p /opt/hpcgen/build && \
    printf '%s\n' 'packaging==26.3 --hash=sha256:d7193f7c8e4e93f444fde0262bf90af30e16fa0ad0ad44cb553c87339b23cd1c' > /opt/hpcgen/build/pip-26.3.txt && \
    printf '%s\n' 'pip==26.3 --hash=sha256:f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13' >> /opt/hpcgen/build/pip-26.3.txt && \
    printf '%s\n' 'setuptools==80.10.2 --hash=sha256:95b30ddfb717250edb492926c92b5221f7ef3fbcc2b07579bcd4a27da21d0173' >> /opt/hpcgen/build/pip-26.3.txt && \
    printf '%s\n' 'wheel==0.48.0 --hash=sha256:3217dcc807155e45db462d7ef2431f5ddda0d7273b700d05a67b271ceb1287ab' >> /opt/hpcgen/build/pip-26.3.txt && \
    /opt/python/bin/python -m pip install --no-deps --require-hashes -r /opt/hpcgen/build/pip-26.3.txt

# onnxruntime 1.31.1: ONNX Runtime
RUN mkdir -p /opt/hpcgen/build && \
    printf '%s\n' 'flatbuffers==25.12.19 --hash=sha256:7634f50c427838bb021c2d66a3d1168e9d199b0607e6329399f04846d42e20b4' > /opt/hpcgen/build/onnxruntime-1.31.1.txt && \
    printf '%s\n' 'numpy==2.5.5 --hash=sha256:704d819265e5d1064d932968e9ee85fff2103ccc78c05b878c06943ba27b8507' >> /opt/hpcgen/build/onnxruntime-1.31.1.txt && \
    printf '%s\n' 'onnxruntime==1.31.1 --hash=sha256:1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536' >> /opt/hpcgen/build/onnxruntime-1.31.1.txt && \
    printf '%s\n' 'packaging==26.3 --hash=sha256:d7193f7c8e4e93f444fde0262bf90af30e16fa0ad0ad44cb553c87339b23cd1c' >> /opt/hpcgen/build/onnxruntime-1.31.1.txt && \
    printf '%s\n' 'protobuf==7.36.2 --hash=sha256:89f23aa53c24553a2416fd4fd1ec06f74fa42b14b546d8883128813f775bbfd2' >> /opt/hpcgen/build/onnxruntime-1.31.1.txt && \
    /opt/python/bin/python -m pip install --no-deps --require-hashes -r /opt/hpcgen/build/onnxruntime-1.31.1.txt

# onnxruntime 1.31.1: inference step
RUN mkdir -p /opt/onnxruntime/share && \
    printf '%s\n' '"""A small ONNX model that is really run, to prove that ONNX Runtime computes and how fast.' > /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    onnx_step.py [PROVIDER]' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'The model, two layers with weights from a fixed seed, is written here byte by byte, because the package onnx is not' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'in the image. Its result is compared with NumPy'"'"'s. The provider is the one named in the file "provider" beside this one' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'unless it is given. Threads are OMP_NUM_THREADS, or ONNX Runtime'"'"'s own choice.' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'Exit status 1: the provider is not there, was not used, or the result is another.' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'The bytes follow onnx/onnx.proto3 of github.com/onnx/onnx: IR version 7, operators of opset 13.' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '"""' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'import os' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'import struct' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'import sys' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'import time' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'from pathlib import Path' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '# Single precision means single precision: from Ampere on NVIDIA'"'"'s libraries would take TF32, with 10 bits.' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'import numpy as np' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'import onnxruntime as ort' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'BATCH, WIDE, NARROW = 64, 256, 10' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'SECONDS = 2.0' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'FLOAT = 1  # TensorProto.DataType' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'def number(value):' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    """A protobuf varint."""' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    out = b""' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    while value > 0x7F:' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        out += struct.pack("B", value & 0x7F | 0x80)' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        value >>= 7' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    return out + struct.pack("B", value)' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'def field(tag, value):' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    """One protobuf field: a whole number, or text or bytes with their length before them."""' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    if isinstance(value, int):' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        return number(tag << 3) + number(value)' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    data = value.encode() if isinstance(value, str) else value' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    return number(tag << 3 | 2) + number(len(data)) + data' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'def node(kind, inputs, output):' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    """NodeProto."""' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind)' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'def weights(name, array):' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    """TensorProto with the numbers as they lie in memory."""' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    dims = b"".join(field(1, size) for size in array.shape)' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    return dims + field(2, FLOAT) + field(8, name) + field(9, array.astype("<f4").tobytes())' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'def tensor(name, *shape):' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    """ValueInfoProto of a float tensor."""' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    dims = b"".join(field(1, field(1, size)) for size in shape)' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, dims)))' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'def model(first, bias, second):' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    """ModelProto of relu(x * first + bias) * second."""' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    graph = [' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        field(1, node("MatMul", ["x", "first"], "a")),' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        field(1, node("Add", ["a", "bias"], "b")),' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        field(1, node("Relu", ["b"], "c")),' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        field(1, node("MatMul", ["c", "second"], "y")),' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        field(2, "step"),' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        field(5, weights("first", first)),' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        field(5, weights("bias", bias)),' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        field(5, weights("second", second)),' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        field(11, tensor("x", BATCH, WIDE)),' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        field(12, tensor("y", BATCH, NARROW)),' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    ]' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    return field(1, 7) + field(7, b"".join(graph)) + field(8, field(2, 13))' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'def provider_of_the_image():' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    """The name in the file beside this one."""' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    return Path(__file__).resolve().with_name("provider").read_text().strip()' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'def main():' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    """The exit status."""' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    provider = sys.argv[1] if len(sys.argv) > 1 else provider_of_the_image()' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    options = ort.SessionOptions()' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    print("onnxruntime", ort.__version__)' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    print("providers", " ".join(ort.get_available_providers()))' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    print("threads", options.intra_op_num_threads or "chosen by ONNX Runtime")' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    if provider not in ort.get_available_providers():' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        sys.stderr.write(f"there is no {provider}\n")' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        return 1' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    random = np.random.RandomState(7)' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    parts = [random.rand(*shape).astype("f4") - 0.5 for shape in ((WIDE, WIDE), (WIDE,), (WIDE, NARROW))]' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    x = random.rand(BATCH, WIDE).astype("f4")' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    session = ort.InferenceSession(model(*parts), options, providers=[provider])' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    if session.get_providers()[0] != provider:' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        sys.stderr.write(f"{provider} was asked for, {session.get_providers()[0]} is used\n")' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        return 1' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    (found,) = session.run(["y"], {"x": x})' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    first, bias, second = (part.astype("f8") for part in parts)' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    wanted = np.maximum(x.astype("f8").dot(first) + bias, 0.0).dot(second)' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    difference = float(np.abs(found - wanted).max() / np.abs(wanted).max())' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    print(f"largest relative difference {difference:.1e}")' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    count, start = 0, time.time()' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    while time.time() < start + SECONDS:' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        session.run(["y"], {"x": x})' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        count += 1' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    print(f"inferences per second {count * BATCH / (time.time() - start):.0f}")' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    if not difference < 1e-5:' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        sys.stderr.write("the result is not the one that NumPy has\n")' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '        return 1' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    return 0' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' 'if __name__ == "__main__":' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' '    sys.exit(main())' >> /opt/onnxruntime/share/onnx_step.py && \
    printf '%s\n' CPUExecutionProvider > /opt/onnxruntime/share/provider

# hpcgen: remove downloads
RUN rm -rf /opt/hpcgen/build

FROM docker.io/library/ubuntu:24.04

ENV PATH="/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENV PYTHONNOUSERSITE="1"

COPY --from=builder /opt/onnxruntime /opt/onnxruntime
COPY --from=builder /opt/python /opt/python

# distribution: packages
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libstdc++6 python3 && \
    apt-get clean && \
    rm -rf /var/lib/apt/lists/*

# site: folders that the host's are bound onto
RUN mkdir -p /dss/dsshome1/lrz/sys /lrz/sys /mnt/0

# hpcgen: self-test
RUN mkdir -p /opt/hpcgen && \
    printf '%s\n' '#!/bin/sh' > /opt/hpcgen/selftest.sh && \
    printf '%s\n' '# Self-test of onnxruntime for supermuc, partition thin, by hpcgen.' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '# Run it inside the container: /opt/hpcgen/selftest.sh' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '# Prints one line per test; exits 1 if any failed. A test that needs a device is left out where there is none.' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '# With --lines: for `hpcgen test`, each test as `hpcgen-test: begin NAME`, its output, `hpcgen-test: end RESULT`.' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'set -u' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' passed=0 >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' failed=0 >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' left_out=0 >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'mode=${1:-}' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'begin() { # name' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    name=$1' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    [ "$mode" != --lines ] || printf '"'"'hpcgen-test: begin %s\n'"'"' "$name"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '}' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'end() { # result, reason, output' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    if [ "$mode" = --lines ]; then' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        [ -z "$3" ] || printf '"'"'%s\n'"'"' "$3"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        printf '"'"'hpcgen-test: end %s%s\n'"'"' "$1" "${2:+: $2}"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    else' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        printf '"'"'%-8s %s%s\n'"'"' "$1" "$name" "${2:+: $2}"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        [ "$1" != FAILED ] || printf '"'"'%s\n'"'"' "$3" | tail -n 20 | sed '"'"'s/^/         | /'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    fi' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '}' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check() { # name, text that the output must contain, command' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    begin "$1"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    if output=$(sh -c "$3" 2>&1); then' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        case $output in' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '            *"$2"*) passed=$((passed + 1)); end ok '"'"''"'"' "$output"; return ;;' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        esac' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        reason="no \"$2\" in the output"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    else' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        reason="status $?"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    fi' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    failed=$((failed + 1))' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    end FAILED "$reason" "$output"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '}' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check_with() { # device, then as check' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    device=$1' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    shift' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    if [ -e "$device" ]; then' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        check "$@"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    else' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        left_out=$((left_out + 1))' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        begin "$1"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '        end '"'"'left out'"'"' "no $device" '"'"''"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '    fi' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '}' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'python 3.12.3: version'"'"' '"'"'Python 3.12.'"'"' '"'"'/opt/python/bin/python --version'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'python 3.12.3: standard library'"'"' '"'"''"'"' '"'"'/opt/python/bin/python -c '"'"'"'"'"'"'"'"'import bz2, ctypes, hashlib, lzma, sqlite3, ssl, zlib'"'"'"'"'"'"'"'"''"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'onnxruntime 1.31.1: version'"'"' 1.31.1 '"'"'/opt/python/bin/python -c '"'"'"'"'"'"'"'"'import onnxruntime as o; print(o.__version__)'"'"'"'"'"'"'"'"''"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'onnxruntime 1.31.1: provider'"'"' CPUExecutionProvider '"'"'/opt/python/bin/python -c '"'"'"'"'"'"'"'"'import onnxruntime as o; print(*o.get_available_providers())'"'"'"'"'"'"'"'"''"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'check '"'"'onnxruntime 1.31.1: model'"'"' '"'"'inferences per second'"'"' '"'"'/opt/python/bin/python /opt/onnxruntime/share/onnx_step.py CPUExecutionProvider'"'"'' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' 'printf '"'"'%s passed, %s failed, %s left out\n'"'"' "$passed" "$failed" "$left_out"' >> /opt/hpcgen/selftest.sh && \
    printf '%s\n' '[ "$failed" -eq 0 ]' >> /opt/hpcgen/selftest.sh && \
    chmod 755 /opt/hpcgen/selftest.sh

COPY kit/ /opt/hpcgen/kit/

LABEL org.opencontainers.image.title="onnxruntime for supermuc"
LABEL org.opencontainers.image.description="Inference with ONNX Runtime on one node"
LABEL io.hpcgen.version="0.1.0"
LABEL io.hpcgen.site="supermuc"
LABEL io.hpcgen.partition="thin"
LABEL io.hpcgen.stack="onnxruntime"
LABEL io.hpcgen.blocks="ubuntu@24.04 site_trust@1 python@3.12.3 onnxruntime@1.31.1"
LABEL io.hpcgen.content="99f741e4a981d3c63b055c0331b26d8526923b586de9cd9376a12de209ee6c47"
LABEL io.hpcgen.kit="/opt/hpcgen/kit"
HPCGEN_DOCKERFILE

# ch-image refers to the user by name, which batch and cron environments leave out.
export USER=${USER:-$(id -un)}
# --force lets package managers run without privilege. ch-image's cache knows what is copied by its path, size and
# time: a relative path is the same in every build.
(cd "$work" && ch-image build --force "${options[@]}" -t "$name" -f Dockerfile .)

case $output in
    *.sqfs) format=squash ;;
    *.tar.gz) format=tar ;;
    *) format=dir ;;
esac
rm -rf "$partial"
ch-convert -i ch-image -o "$format" "$name" "$partial"
rm -rf "$output"
mv "$partial" "$output"
if [ -f "$output" ]; then
    sha256sum "$output"
fi
