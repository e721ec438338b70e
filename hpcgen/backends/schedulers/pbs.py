"""PBS Pro and OpenPBS: Torque's commands, with resources in chunks and with a history of jobs that ended."""

from __future__ import annotations

from hpcgen.backends.schedulers.base import Header, of_job, option
from hpcgen.backends.schedulers.torque import WISHED, Torque
from hpcgen.core.support.units import walltime_text


class Pbs(Torque):
    """PBS Pro and OpenPBS: a job asks for one chunk per node."""

    name = "pbs"
    memory_forms = {"mem": ("mem={}mb", "node")}
    title = "PBS"
    looking = ("qstat", "-x", "-f")
    wished = {**WISHED, "array": "-J {}"}
    nodes_in_request = False
    kind_of_node = ""
    mail_words = {"begin": "b", "end": "e", "fail": "a"}

    def wish(self, name: str, value: str) -> str:
        """An array is one range of tasks."""
        return "" if name == "array" and "," in value else super().wish(name, value)

    def resources(self, header: Header) -> list[str]:
        """``select`` with the ranks and threads of a chunk, the chunks on different nodes."""
        job = header.job
        named = header.partition.chunk
        chunk = [str(job.nodes), *(named or [f"ncpus={header.slots}"])]
        chunk += [f"mpiprocs={job.ranks_per_node}", f"ompthreads={job.threads_per_rank}"]
        asked = ["nodes", "ranks_per_node", "threads_per_rank"]
        if header.gpus and not named:
            asked.append("gpus_per_node")
            chunk.append(f"ngpus={header.gpus}")
        if memory := self.memory(header):
            asked.append("memory_per_rank_gb")
            chunk.append(memory)
        lines = [
            option("-l", f"select={':'.join(chunk)}", " ", of_job(*asked)),
            option("-l", f"walltime={walltime_text(job.walltime_s)}", " ", of_job("walltime_s")),
        ]
        if job.nodes > 1:
            lines.append("-l place=scatter")
        return lines

    def ask(self, job_id: str) -> list[list[str]]:
        """With finished jobs, then without for a server that keeps no history."""
        return [["qstat", "-x", "-f", job_id], ["qstat", "-f", job_id]]
