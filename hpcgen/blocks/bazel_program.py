"""How Bazel is started in a build step: without a server, and with the site's certificates."""

from __future__ import annotations

from hpcgen.blocks.context import Context
from hpcgen.core.model.image_paths import SCRATCH

_JAVA_TRUST = {
    "apt": "/etc/ssl/certs/java/cacerts",
    "dnf": "/etc/pki/java/cacerts",
    "zypper": "/var/lib/ca-certificates/java-cacerts",
}


def bazel_program(ctx: Context, root: str, memory_mb: int) -> list[str]:
    """Bazel, without the server that it would leave running and talk to over a loopback interface.

    Parameters
    ----------
    root: the folder for all that it makes and fetches.
    memory_mb: what it may plan with, a quarter of it for itself; 0 for no limit.
    """
    startup = [
        "--batch",
        f"--output_user_root={root}",
        f"--host_jvm_args=-Xmx{min(4096, memory_mb // 4) if memory_mb else 4096}m",
    ]
    if ctx.use("bazel").at_least("4"):
        startup.append("--local_startup_timeout_secs=300")
    if ctx.facts.network.ca_certificates:
        # Bazel's own Java does not know the site's certificates, the system's trust store does.
        trust = _JAVA_TRUST[str(ctx.base.release.values["package_manager"])]
        startup.append(f"--host_jvm_args=-Djavax.net.ssl.trustStore={trust}")
    return ["env", f"HOME={SCRATCH}", "bazel", *startup]
