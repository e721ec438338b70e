"""A build's own tools are compiled for the builder, the result for the partition: by the real Bazel and CMake.

The project is small: a program that writes a header, and one that has it in. Both note for which CPU they were
compiled. It is configured with what TensorFlow's configure does with CC_OPT_FLAGS since 2.4.1, and built with the
options of TensorFlow's own recipe.
"""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest
from container_tools import REPORTS, ChImage, run, script

import hpcgen

pytestmark = pytest.mark.slow

MAKER = """
#include <stdio.h>
int main(void) {
#ifdef __AVX512F__
  puts("#define TOOL \\"AVX-512\\"");
#else
  puts("#define TOOL \\"any CPU\\"");
#endif
  return 0;
}
"""
PROBE = """
#include "made.h"
#ifdef __AVX512F__
const char *found = "tool: " TOOL ", program: AVX-512";
#else
const char *found = "tool: " TOOL ", program: any CPU";
#endif
int main(void) { return !found; }
"""
# A rule of its own: the C++ toolchain's rules come over the network. Bazel says which flags are for what.
RULE = """
def _compiled(ctx):
    program = ctx.actions.declare_file(ctx.label.name)
    words = ["gcc"] + ctx.fragments.cpp.copts + ["-I", ctx.genfiles_dir.path, "-o", program.path, ctx.file.source.path]
    ctx.actions.run_shell(
        outputs = [program],
        inputs = [ctx.file.source] + ctx.files.headers,
        command = " ".join(words),
        use_default_shell_env = True,
    )
    return DefaultInfo(executable = program, files = depset([program]))

compiled = rule(
    implementation = _compiled,
    attrs = {"source": attr.label(allow_single_file = True), "headers": attr.label_list(allow_files = True)},
    executable = True,
    fragments = ["cpp"],
)
"""
BUILD = """
load(":compiled.bzl", "compiled")
compiled(name = "maker", source = "maker.c")
genrule(name = "made", outs = ["made.h"], tools = [":maker"], cmd = "$(location :maker) > $@")
compiled(name = "probe", source = "probe.c", headers = ["made.h"])
"""
CONFIGURE = """
for flag in $CC_OPT_FLAGS; do
  echo "build:opt --copt=$flag"
  echo "build:opt --host_copt=$flag"
done > .bazelrc
"""
CMAKE = """
cmake_minimum_required(VERSION 3.10)
project(outer C)
add_subdirectory(protobuf)
add_executable(probe probe.c)
"""


def test_bazel_compiles_what_it_runs_without_the_flags_for_the_partition(
    ch_image: ChImage, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    recipe = hpcgen.render(hpcgen.plan("supermuc", "tf", settings={"tensorflow.install": "source"})).recipe
    (given,) = set(re.findall(r"CC_OPT_FLAGS=[^\s']+", recipe))
    flags = list(dict.fromkeys(re.findall(r"--copt=[^\s']+", recipe)))
    assert "--copt=-march=skylake-avx512" in flags
    root = tmp_path / "root"
    unpack(Path(script("make-bazel-base", "bookworm", env=testbed_env).strip()), root)
    (root / "work").mkdir()
    files = {"WORKSPACE": "", "BUILD": BUILD, "compiled.bzl": RULE, "maker.c": MAKER, "probe.c": PROBE}
    for name, text in {**files, "configure": CONFIGURE}.items():
        (root / "work" / name).write_text(text)
    build = f"bazel --batch --output_user_root=/work/out build -s --config=opt {' '.join(flags)} --curses=no //:probe"
    steps = ["export HOME=/work", f"{given} sh ./configure", build, "cp bazel-bin/probe built"]
    done = ch_image.run(["ch-run", "-w", root, "-c", "/work", "--", "sh", "-ec", "\n".join(steps)])
    compiled = {source: line for line, source in re.findall(r"(gcc -.*? (\w+\.c))", done.stdout)}
    assert compiled.keys() == {"maker.c", "probe.c"}, done.stdout[-4000:]
    assert "march" not in compiled["maker.c"] and "-march=skylake-avx512" in compiled["probe.c"]
    REPORTS.extend(compiled.values())
    assert b"tool: any CPU, program: AVX-512" in (root / "work" / "built").read_bytes()


def unpack(archive: Path, root: Path) -> None:
    root.mkdir()
    with tarfile.open(archive) as tar:
        index = json.load(tar.extractfile("index.json"))  # type: ignore[arg-type]
        manifest = json.load(tar.extractfile(blob(index["manifests"][0]["digest"])))  # type: ignore[arg-type]
        for layer in manifest["layers"]:
            with open(root.parent / "layer.tar", "wb") as out:
                out.write(tar.extractfile(blob(layer["digest"])).read())  # type: ignore[union-attr]
            run(["tar", "-xf", root.parent / "layer.tar", "-C", root])


def blob(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def test_cmake_compiles_the_named_part_without_the_flags(tmp_path: Path) -> None:
    plan = hpcgen.plan("supermuc", "onnxruntime", settings={"onnxruntime.install": "source"})
    hook = hpcgen.render(plan).files["files/settings/host_tools.cmake"].text
    (tmp_path / "protobuf").mkdir()
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    (tmp_path / "protobuf" / "CMakeLists.txt").write_text("project(protobuf C)\nadd_executable(protoc ../maker.c)\n")
    (tmp_path / "maker.c").write_text(MAKER)
    (tmp_path / "probe.c").write_text(PROBE)
    (tmp_path / "hook.cmake").write_text(hook)
    flags = "-march=skylake-avx512 -mtune=skylake-avx512"
    words = ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DCMAKE_C_FLAGS={flags}"]
    words.append(f"-DCMAKE_PROJECT_protobuf_INCLUDE={tmp_path}/hook.cmake")
    run(["cmake", "-S", tmp_path, "-B", tmp_path / "built", *words])
    commands = json.loads((tmp_path / "built" / "compile_commands.json").read_text())
    assert {Path(each["file"]).name: flags in each["command"] for each in commands} == {
        "maker.c": False,
        "probe.c": True,
    }
