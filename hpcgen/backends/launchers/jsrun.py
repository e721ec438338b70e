"""jsrun, IBM's launcher beside LSF: each rank is a resource set of its own."""

from __future__ import annotations

from hpcgen.backends.launchers.base import Launcher
from hpcgen.core.model.job import Job


class Jsrun(Launcher):
    """Cores, and GPUs where it is to give them, by resource set.

    Source: olcf/olcf-user-docs, systems/summit_user_guide.rst, "Job Launcher (jsrun)". Never started.
    """

    name = "jsrun"
    program = "jsrun"

    def words(self, job: Job, gpus_per_rank: int = 0) -> list[str]:
        threads = str(job.threads_per_rank)
        words = [self.command, "-n", str(job.ranks), "-r", str(job.ranks_per_node), "-a", "1", "-c", threads]
        words += ["-g", str(gpus_per_rank)] if gpus_per_rank else []
        return [*words, "-b", f"packed:{threads}"]

    def binds_gpus(self, gpus_per_rank: int) -> bool:
        return gpus_per_rank > 0

    @property
    def local_rank(self) -> str:
        return "JSM_NAMESPACE_LOCAL_RANK"
