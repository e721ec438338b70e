"""A program that is built by the real Bazel as TensorFlow is: a workspace with other repositories, and its collection.

TensorFlow's own sources are out of a test machine's reach. This is small, and takes the same way: an archive, a
configure step, a Bazel that fetches archives, files, rules, Python packages and, where it knows them, modules.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BAZEL = '''\
from hpcgen.blocks.base import Block
from hpcgen.blocks.steps import Packages, run


class Bazel(Block):
    """Bazel as Debian builds it."""

    name = "bazel"
    build_only = True

    def packages(self, ctx):
        return Packages(build={"apt": ["bazel-bootstrap", "ca-certificates-java"]})

    def build(self, ctx):
        # In a base that has Java already, ca-certificates does not tell it what it finds when it is installed.
        yield run("Java's trust store", "update-ca-certificates --fresh")
'''
PROBE = '''\
from hpcgen.blocks.base import Block, need
from hpcgen.blocks.steps import Runtime, Test, run

SOURCE = "/opt/hpcgen/build/probe"


class Probe(Block):
    """A small program.  Source: https://example.org"""

    name = "probe"
    needs = (NEEDS need("bazel", build_only=True),)

    def inputs(self, ctx):
        return [ctx.archive(), self._files(ctx)]

    def _files(self, ctx):
        return ctx.bazel_files(f"probe-{ctx.version}")

    def build(self, ctx):
        yield run("source", ctx.unpack(ctx.archive(), SOURCE))
        yield run("what Bazel would fetch", ctx.bazel_setup(self._files(ctx)))
        yield run("configure", f"cd {SOURCE}", "sh ./configure")
        program = ["env", "HOME=/opt/hpcgen/build", "bazel", "--batch", "--output_user_root=/opt/hpcgen/build/out"]
        program.append("--host_jvm_args=-Djavax.net.ssl.trustStore=/etc/ssl/certs/java/cacerts")
        built = ctx.bazel_build(
            self._files(ctx),
            SOURCE,
            program=program,
            options=["--config=probe", "--curses=no", "--verbose_failures"],
            targets=["//:probe"],
            registries=ctx.release.values.get("registries", []),
        )
        yield run("build", built, "install -D -m 755 bazel-bin/probe /opt/probe/probe")

    def runtime(self, ctx):
        return Runtime(copies=("/opt/probe",))

    def test(self, ctx):
        return [Test("answer", "/opt/probe/probe", expect="42 six data")]
'''
CONFIGURE = "echo build:probe --repo_env=PROBE_PYTHON=/opt/python/bin/python > .bazelrc\n"
PIP = """\
def _pip_package(ctx):
    # As rules_python does it: a pip that the rule starts, apart from its settings unless it is told otherwise.
    alone = [] if ctx.os.environ.get("RULES_PYTHON_PIP_ISOLATED") == "0" else ["--isolated"]
    ctx.file("requirement.txt", ctx.attr.requirement)
    done = ctx.execute([ctx.os.environ["PROBE_PYTHON"], "-m", "pip"] + alone + [
        "wheel", "--no-deps", "--require-hashes", "-r", "requirement.txt",
    ], timeout = 120)
    if done.return_code:
        fail("pip: " + done.stderr + done.stdout)
    ctx.file("BUILD", 'filegroup(name="wheel", srcs=glob(["*.whl"]), visibility=["//visibility:public"])')

pip_package = repository_rule(
    implementation = _pip_package,
    attrs = {"requirement": attr.string()},
    environ = ["PROBE_PYTHON", "RULES_PYTHON_PIP_ISOLATED"],
)
"""

MAIN = '#include <stdio.h>\nint main(void) { printf("%d %s %s\\n", A, PACKAGE, DATA); return 0; }\n'
BUILD = r"""
genrule(
    name = "make_probe",
    srcs = ["main.c", "@liba//:a", "@six//:wheel", "@data//file"],
    outs = ["probe"],
    executable = True,
    cmd = "gcc -o $@ -DA=$$(cat $(location @liba//:a)) -DDATA=\\\"$$(cat $(location @data//file))\\\" " +
          "-DPACKAGE=\\\"$$(basename $(location @six//:wheel) | cut -d- -f1)\\\" $(location main.c)",
)
"""
WORKSPACE = """
load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive", "http_file")
http_archive(
    name = "rules_probe", sha256 = "{rules_sha256}", strip_prefix = "rules-1", urls = ["{server}/rules-1.tar.gz"],
)
load("@rules_probe//:pip.bzl", "pip_package")
http_archive(
    name = "liba",
    sha256 = "{liba_sha256}",
    strip_prefix = "liba-1",
    urls = ["{server}/gone/liba-1.tar.gz", "{server}/liba-1.tar.gz"],
)
http_archive(name = "unused", sha256 = "{unused_sha256}", urls = ["{server}/unused-1.tar.gz"])
http_file(name = "data", sha256 = "{data_sha256}", urls = ["{server}/data"])
pip_package(name = "six", requirement = "{requirement}")
"""
LIBA = 'genrule(name = "a", outs = ["a.txt"], cmd = "echo 42 > $@", visibility = ["//visibility:public"])\n'


BUILTIN_MODULES = (
    "apple_support 1.23.1",
    "buildozer 7.1.2",
    "platforms 0.0.9",
    "protobuf 21.7",
    "protobuf 3.19.6",
    "rules_cc 0.0.11",
    "rules_java 7.6.5",
    "rules_license 0.0.3",
    "rules_proto 4.0.0",
    "rules_python 0.22.1",
    "zlib 1.3.1.bcr.3",
)
"""What the modules of Debian's Bazel 7.7.1 itself ask a registry for."""
MODULE = """
module(name = "probe")
bazel_dep(name = "liba", version = "1")
bazel_dep(name = "rules_probe", version = "1")
http_file = use_repo_rule("@bazel_tools//tools/build_defs/repo:http.bzl", "http_file")
http_file(name = "data", sha256 = "{data_sha256}", urls = ["{server}/data"])
name_of = use_repo_rule("@rules_probe//:name.bzl", "name_of")
name_of(name = "six", text = "six-1.16.0")
"""
NAME_RULE = """
def _name_of(ctx):
    ctx.file(ctx.attr.text, "")
    ctx.file("BUILD", 'filegroup(name="wheel", srcs=["%s"], visibility=["//visibility:public"])' % ctx.attr.text)

name_of = repository_rule(implementation = _name_of, attrs = {"text": attr.string()})
"""


def archive(top: str, files: Mapping[str, str]) -> bytes:
    """A tar.gz with the files in one folder, the same bytes each time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(buffer.getvalue(), mtime=0)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def integrity(data: bytes) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(data).digest()).decode()


def served(server: str, requirement: str) -> dict[str, bytes]:
    """What a server of this address has: the release, and what its workspace names."""
    files = {
        "rules-1.tar.gz": archive("rules-1", {"WORKSPACE": "", "BUILD": "", "pip.bzl": PIP}),
        "liba-1.tar.gz": archive("liba-1", {"WORKSPACE": "", "BUILD": LIBA}),
        "unused-1.tar.gz": archive("unused-1", {"WORKSPACE": "", "BUILD": ""}),
        "data": b"data",
    }
    workspace = WORKSPACE.format(
        server=server,
        requirement=requirement,
        rules_sha256=sha256(files["rules-1.tar.gz"]),
        liba_sha256=sha256(files["liba-1.tar.gz"]),
        unused_sha256=sha256(files["unused-1.tar.gz"]),
        data_sha256=sha256(files["data"]),
    )
    own = {"WORKSPACE": workspace, "BUILD": BUILD, "main.c": MAIN, "configure": CONFIGURE}
    return {**files, "probe-1.0.tar.gz": archive("probe-1.0", own)}


def served_modules(server: str) -> dict[str, bytes]:
    """The same with modules of a registry: those that Bazel itself names, empty, and two that the program needs."""
    data = b"data"
    rules = {"BUILD": "", "name.bzl": NAME_RULE}
    own = {each: {"BUILD": ""} for each in BUILTIN_MODULES} | {"liba 1": {"BUILD": LIBA}, "rules_probe 1": rules}
    files = {"data": data}
    for each, content in own.items():
        name, version = each.split()
        described = f'module(name = "{name}", version = "{version}")\n'
        packed = archive(f"{name}-{version}", {"MODULE.bazel": described, **content})
        place = f"registry/modules/{name}/{version}"
        source = {
            "url": f"{server}/{name}-{version}.tar.gz",
            "integrity": integrity(packed),
            "strip_prefix": f"{name}-{version}",
        }
        files[f"{name}-{version}.tar.gz"] = packed
        files[f"{place}/MODULE.bazel"] = described.encode()
        files[f"{place}/source.json"] = json.dumps(source).encode()
    module = MODULE.format(server=server, data_sha256=sha256(data))
    release = {
        "MODULE.bazel": module,
        "BUILD": BUILD,
        "main.c": MAIN,
        "configure": "echo build:probe --show_progress_rate_limit=30 > .bazelrc\n",
    }
    return {**files, "probe-1.0.tar.gz": archive("probe-1.0", release)}


def write_collection(folder: Path, server: str, files: Mapping[str, bytes], bazel: str, **values: Any) -> Path:
    """The blocks and the stack; ``values`` of the release's row. Python is needed where no modules are."""
    blocks = folder / "building_blocks"
    blocks.mkdir(parents=True)
    source = {"url": f"{server}/probe-1.0.tar.gz", "sha256": sha256(files["probe-1.0.tar.gz"])}
    row = {"archives": {"source": source}, "values": values}
    said = {"from": "a test", "checked": "2026-11-23", "verified": "yes"}
    (blocks / "bazel.py").write_text(BAZEL)
    (blocks / "bazel.yaml").write_text(json.dumps({"block": "bazel", "source": said, "releases": {bazel: {}}}))
    (blocks / "probe.py").write_text(PROBE.replace("NEEDS", "" if values else 'need("python"),'))
    (blocks / "probe.yaml").write_text(json.dumps({"block": "probe", "source": said, "releases": {"1.0": row}}))
    (folder / "recipes").mkdir()
    stack = {
        "name": "probe",
        "title": "A program built by Bazel",
        "blocks": {"probe": {}, "bazel": {"version": f"=={bazel}"}},
    }
    stack["run"] = {"command": ["/opt/probe/probe"], "gpus_per_node": 0}
    (folder / "recipes" / "probe.yaml").write_text(json.dumps(stack))
    return folder
