"""Start a program of PyTorch as one rank of a job, whatever launched the ranks.

    torch_ranks.py PROGRAM ARGUMENT ...

translates the launcher's variables into those of torch.distributed (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
MASTER_ADDR, MASTER_PORT) and becomes the program. What is set already stays: under torchrun nothing changes. The ranks
meet on the job's first node, by the batch system's list of nodes. Exit status 2: nothing says which rank this is on
several nodes, or where they meet.
"""

import os
import re
import sys
from pathlib import Path

RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID", "MV2_COMM_WORLD_RANK", "FLUX_TASK_RANK")
SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PALS_SIZE", "MV2_COMM_WORLD_SIZE", "FLUX_JOB_SIZE")
LOCAL_RANK = (
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "PALS_LOCAL_RANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "FLUX_TASK_LOCAL_ID",
)
LOCAL_SIZE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")
NODE_FILES = ("PBS_NODEFILE", "PALS_NODEFILE", "LSB_DJOB_HOSTFILE", "OAR_NODEFILE", "PE_HOSTFILE")
JOB = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID")
FIRST_PORT, PORTS = 20000, 20000


def first_of(names, environment):
    """The first of some variables that is set; None without one."""
    return next((environment[name] for name in names if environment.get(name)), None)


def of_slurm(environment):
    """Rank, size, number on the node and ranks of the node as srun says them; all None without srun.

    Ranks that an MPI's own launcher started inside one task of srun have that launcher's variables too.
    """
    names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE")
    rank, size, local, on_node = (environment.get(name) for name in names)
    size = size or environment.get("SLURM_NTASKS")
    # "2(x3),1": three nodes with two tasks and one with one.
    per_node = re.match(r"\d+", on_node or "")
    return (rank, size, local, per_node.group() if per_node else None) if rank and size else (None,) * 4


def place(environment):
    """Rank, size, number on the node and ranks of the node; one rank alone where nothing says otherwise."""
    rank, size = first_of(RANK, environment), first_of(SIZE, environment)
    local, on_node = first_of(LOCAL_RANK, environment), first_of(LOCAL_SIZE, environment)
    of_srun = of_slurm(environment)
    if rank is None or size is None or (size == "1" and of_srun[1] not in (None, "1")):
        rank, size, local, on_node = of_srun
    if rank is None:
        rank, size, local, on_node = "0", "1", "0", "1"
    return rank, size, local, on_node


def first_node(environment):
    """The name of the job's first node; None where nobody says it."""
    listed = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
    if listed:
        return first_of_list(listed)
    for name in NODE_FILES:
        file = Path(environment.get(name) or "/")
        words = file.read_text().split() if file.is_file() else []
        if words:
            return words[0]
    hosts = environment.get("LSB_HOSTS", "").split()
    return hosts[0] if hosts else None


def first_of_list(text):
    """The first node of a list of Slurm's: ``n[08-10,12],login1`` is ``n08``."""
    return re.sub(r"\[(\d+)[^]]*\]", r"\1", re.match(r"(?:[^,[]|\[[^]]*\])+", text).group())


def variables(environment):
    """What torch.distributed reads, as far as it is not set; None where the ranks cannot meet."""
    rank, size, local, on_node = place(environment)
    together = size == "1" or size == on_node
    node = "127.0.0.1" if together else first_node(environment)
    if environment.get("MASTER_ADDR") is None and node is None:
        return None
    job = re.match(r"\d+", first_of(JOB, environment) or "")
    port = FIRST_PORT + int(job.group()) % PORTS if job else FIRST_PORT + 9500
    found = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": local or "0", "MASTER_PORT": str(port)}
    found["MASTER_ADDR"] = node or ""
    if on_node:
        found["LOCAL_WORLD_SIZE"] = on_node
        if environment.get("CCL_PROCESS_LAUNCHER") == "none":
            # oneCCL is told a rank's place on its node by these alone.
            found.update(CCL_LOCAL_RANK=found["LOCAL_RANK"], CCL_LOCAL_SIZE=on_node)
    return {name: environment.get(name, value) for name, value in found.items()}


def main():
    """Becomes the program; the exit status where it cannot."""
    found = variables(os.environ)
    if found is None:
        message = "no variable names the job's first node, where the ranks meet; set MASTER_ADDR (and MASTER_PORT)"
        sys.stderr.write(f"torch_ranks.py: {message}\n")
        return 2
    os.environ.update(found)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
