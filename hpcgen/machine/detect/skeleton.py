"""An empty profile with what belongs where: for an administrator who fills it in by hand."""

from __future__ import annotations

_TEXT = """\
# A site profile to be filled in. `hpcgen check FILE` names what is still missing, `hpcgen schema site` every field.
# Write a fact only if you know it: a missing fact constrains nothing.
name: {name}
title:                      # for people: the system's name and where it is

system:
  os:                       # ID of /etc/os-release: debian, rocky, sles, ubuntu …
  # os_version:             # VERSION_ID of /etc/os-release
  # kernel:                 # uname -r
  # glibc:                  # what libc.so.6 says of itself
  # user_namespaces:        # true if users without rights may make them
  # architecture: aarch64   # x86_64 unless it is said

default_partition: main
partitions:
  main:                     # one kind of node
    # nodes:
    cpu:
      target:               # archspec's name: skylake_avx512, zen3, neoverse_v2 …
      cores:                # of the node
      # sockets:
      # numa_domains:
      # threads_per_core:
    memory:
      total_gb:
      # usable_gb:          # what a job may take before the node suffers
    # gpu:
    #   vendor:             # nvidia, amd, intel
    #   model:
    #   count:
    #   memory_gb:
    #   capability:         # NVIDIA's compute capability, such as 8.0
    #   target:             # AMD's instruction set, such as gfx90a
    #   driver:             # NVIDIA's version; AMD's release, such as 6.3 or 30.10
    # queues:
    #   - name:
    #     max_nodes:
    #     max_time:         # hours:minutes:seconds

containers:
  preferred:                # the engine that jobs use: apptainer, charliecloud, podman …
  engines: {{}}               # by name: version, allowed, reason

scheduler:
  kind:                     # slurm, torque, pbs, gridengine, flux, none

network:
  internet:
    login:                  # true or false
    compute:
  # ca_certificates: []
  # proxy: {{}}
  # mirrors: {{}}

# fabric:
#   kind:                   # none, omni-path, infiniband, slingshot, efa, ethernet
#   provider:               # libfabric's: psm2, verbs, cxi, efa
#   devices: []

# mpi:                      # the host's, if it takes the place of the image's
#   flavour:                # intel, mpich, cray-mpich, mvapich2, parastation, openmpi
#   version:
#   abi:                    # mpich or openmpi, by the library's SONAME; mpi5: the standard's
#   root:
#   launcher:               # srun, mpiexec, mpirun
#   libraries: []
#   binds: []

# file_systems: {{}}
# environment: {{}}
# notes: []

sources: {{}}                 # by path (mpi.version): from, checked (a date), verified (yes or no), note
"""


def skeleton(name: str) -> str:
    """The text of an empty profile."""
    return _TEXT.format(name=name)
