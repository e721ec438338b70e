"""Torque and PBS Pro: ``#PBS`` options. They part where resources are asked for."""

from __future__ import annotations

from hpcgen.schedulers.base import Header, Scheduler, option, queue_options, site_options
from hpcgen.support.units import walltime_text

NAME_LENGTH = 15
"""Older releases refuse longer job names."""


def job_name(name: str) -> str:
    """A name that every release takes: a letter first, and not too long."""
    return (name if name[0].isalpha() else f"j{name}")[:NAME_LENGTH]


class Torque(Scheduler):
    """``-l nodes=N:ppn=SLOTS:gpus=G,walltime=…``."""

    file_name = "job.pbs"
    mark = "#PBS"
    start = 'cd "${PBS_O_WORKDIR:-.}"'
    account_option = "-A "

    def directives(self, header: Header) -> list[str]:
        """Name, shell, output, resources, queue, account, then the site's own."""
        lines = [option("-N", job_name(header.name), " "), "-S /bin/bash"]
        if header.scheduler.output:
            lines.append(option("-o", header.scheduler.output, " "))
        if header.scheduler.error:
            lines.append(option("-e", header.scheduler.error, " "))
        lines += self.resources(header)
        lines += queue_options(header, "-q", " ")
        if header.job.account:
            lines.append(option("-A", header.job.account, " "))
        return lines + site_options(header)

    def resources(self, header: Header) -> list[str]:
        """Whole nodes: as many slots as a node has, and all its GPUs."""
        wanted = f"nodes={header.job.nodes}:ppn={header.slots}"
        if header.gpus:
            wanted += f":gpus={header.gpus}"
        return [option("-l", f"{wanted},walltime={walltime_text(header.job.walltime_s)}", " ")]


class Pbs(Torque):
    """PBS Pro and OpenPBS: one chunk per node."""

    def resources(self, header: Header) -> list[str]:
        """``select`` with the ranks and threads of a chunk, the chunks on different nodes."""
        job = header.job
        named = header.partition.chunk
        chunk = [str(job.nodes), *(named or [f"ncpus={header.slots}"])]
        chunk += [f"mpiprocs={job.ranks_per_node}", f"ompthreads={job.threads_per_rank}"]
        if header.gpus and not named:
            chunk.append(f"ngpus={header.gpus}")
        lines = [
            option("-l", f"select={':'.join(chunk)}", " "),
            option("-l", f"walltime={walltime_text(job.walltime_s)}", " "),
        ]
        if job.nodes > 1:
            lines.append("-l place=scatter")
        return lines
