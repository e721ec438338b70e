"""Slurm: ``#SBATCH`` options, as man sbatch has them."""

from __future__ import annotations

from hpcgen.schedulers.base import Header, Scheduler, option, queue_options, site_options
from hpcgen.support.units import walltime_text


class Slurm(Scheduler):
    """Whole nodes, with ranks and threads stated."""

    file_name = "job.slurm"
    mark = "#SBATCH"
    account_option = "--account="
    # After sbatch --export=NONE every srun, the one that mpiexec starts too, gives its ranks no environment.
    start = "unset SLURM_EXPORT_ENV"

    def directives(self, header: Header) -> list[str]:
        """Name, output, time, nodes, ranks, threads, queue, account, GPUs, then the site's own."""
        job = header.job
        lines = [option("-J", header.name, " ")]
        if header.scheduler.output:
            lines.append(option("-o", header.scheduler.output, " "))
        if header.scheduler.error:
            lines.append(option("-e", header.scheduler.error, " "))
        lines += [
            option("--time", walltime_text(job.walltime_s)),
            option("--nodes", job.nodes),
            option("--ntasks-per-node", job.ranks_per_node),
            option("--cpus-per-task", job.threads_per_rank),
        ]
        lines += queue_options(header, "--partition")
        if job.account:
            lines.append(option("--account", job.account))
        own = site_options(header)
        request = header.scheduler.gpu_request
        if header.gpus and request != "none" and not any(line.startswith(("--gres", "--gpus")) for line in own):
            lines.append(option(f"--{request}", f"gpu:{header.gpus}" if request == "gres" else header.gpus))
        return lines + own
