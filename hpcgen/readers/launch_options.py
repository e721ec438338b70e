"""What starts ranks or a container, with its options: which take a value, and which say how many ranks there are.

From srun(1), mpirun(1) of Open MPI 4 and 5, mpiexec of MPICH (hydra) and Intel MPI, horovod's launch.py,
torch/distributed/run.py, the launchers' parsers of accelerate 1.15 and deepspeed 0.19, the helps of apptainer, podman
and ch-run, and tests of podman-hpc. Those of shifter, enroot, sarus, pyxis, aprun, jsrun, ibrun, PALS and flux are from
memory of their manuals, not verified.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from hpcgen.core.model.own_project import JobField
from hpcgen.core.secret_rules import secret_name


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


class LaunchOptions(NamedTuple):
    """The options of one program. Names are without dashes before them, and with ``-`` in place of ``_``.

    ``valued``: those with a value, behind ``=`` or as the next word. ``flags``: those without. ``two``: with two words.
    ``families``: how names of further ones begin that take a value. ``joined``: whether a letter and its value may be
    one word (``-n4``), and letters stand together (``-it``). ``fields``: what a value says.
    """

    valued: frozenset[str]
    flags: frozenset[str] = frozenset()
    two: frozenset[str] = frozenset()
    families: tuple[str, ...] = ()
    joined: bool = False
    fields: Mapping[str, JobField] = {}


class GivenOption(NamedTuple):
    """One option as it stands on a command line; ``said``: its text."""

    name: str
    value: str
    said: str


class Taken(NamedTuple):
    """``given``: the options that a command line begins with, ``rest``: what follows. ``strange``: unknown options."""

    given: list[GivenOption]
    rest: list[str]
    strange: list[str]


def take(words: list[str], options: LaunchOptions) -> Taken:
    """The options that words begin with, and the rest."""
    given: list[GivenOption] = []
    strange: list[str] = []
    at = 0
    while at < len(words) and re.match(r"-.", words[at]):
        word = words[at]
        at += 1
        if word == "--":
            break
        before, joined, value = word.partition("=")
        name = before.lstrip("-").replace("_", "-")
        letter = _letter(name, options) if options.joined and not word.startswith("--") else None
        if letter == "":
            continue
        if letter is not None and len(name) > 1:
            name, value = letter[0], (letter[1:] + joined + value).removeprefix("=")
            if not value and at < len(words):
                value, at = words[at], at + 1
                word = f"{word} {value}"
        elif not joined:
            more = _words_of(name, options)
            if more is None:
                # A number belongs to what stands before it; a program never begins with a digit.
                number = at < len(words) and re.match(r"\d+\b(?!/)", words[at])
                more = 1 if number or secret_name(name) else 0
                strange.append(word)
            value = " ".join(words[at : at + more])
            at += more
            word = f"{word} {value}".rstrip()
        elif name not in options.valued | options.flags and not name.startswith(options.families or ("\0",)):
            strange.append(before)
        given.append(GivenOption(name, value, word))
    return Taken(given, words[at:], strange)


def _letter(name: str, options: LaunchOptions) -> str | None:
    """Of letters in one word what begins with the first that takes a value, empty if none does; None for all else."""
    rest = name.lstrip("".join(each for each in options.flags if len(each) == 1))
    return rest if not rest or rest[0] in options.valued else None


def _words_of(name: str, options: LaunchOptions) -> int | None:
    if name in options.flags:
        return 0
    if name in options.two:
        return 2
    valued = name in options.valued or (options.families and name.startswith(options.families))
    return 1 if valued else None


# What starts ranks.

_SRUN = LaunchOptions(
    _set(
        "n N c t p A J o e i w x C D G m q L d B M r S T W "
        "nodes ntasks ntasks-per-node tasks-per-node ntasks-per-core ntasks-per-gpu ntasks-per-socket cpus-per-task "
        "cpus-per-gpu time time-min partition account job-name jobid gpus gpus-per-node gpus-per-task gpus-per-socket "
        "gres gres-flags mem mem-per-cpu mem-per-gpu mem-bind constraint cluster-constraint clusters distribution "
        "output error input mpi chdir nodelist nodefile exclude hint export export-file cpu-bind cpu-freq gpu-bind "
        "gpu-freq accel-bind reservation qos het-group network threads-per-core cores-per-socket sockets-per-node "
        "extra-node-info core-spec thread-spec bcast-exclude begin deadline delay-boot dependency comment container "
        "container-id epilog prolog task-epilog task-prolog extra licenses mail-type mail-user mcs-label mincpus "
        "msg-timeout open-mode power prefer priority profile relative segment signal slurmd-debug switches threads "
        "tmp tres-bind tres-per-task uid gid wait wckey acctg-freq bb bbf treewidth "
        "container-image container-mounts container-workdir container-name container-save container-env environment "
        "image volume"
    ),
    _set(
        "E H I k K l O Q s u v X Z exclusive immediate kill-on-bad-exit label no-kill overcommit overlap exact "
        "oversubscribe preserve-env pty quiet unbuffered verbose test-only spread-job use-min-nodes reboot hold "
        "no-allocate contiguous disable-status quit-on-interrupt propagate send-libs resv-ports x11 bcast compress "
        "multi-prog nice interactive get-user-env whole stepmgr container-mount-home no-container-mount-home "
        "container-remap-root no-container-remap-root container-entrypoint no-container-entrypoint "
        "container-entrypoint-log container-writable container-readonly"
    ),
    joined=True,
)
_MPI = LaunchOptions(
    _set(
        "n np c N H host hosts hostfile machinefile f ppn perhost rr grr wdir wd x rf rankfile map-by bind-to rank-by "
        "npernode npersocket gtool configfile launcher launcher-exec bootstrap bootstrap-exec iface path prefix "
        "preload-files preload-files-dest-dir output-filename output timeout am tune stdin app cpus-per-proc "
        "cpus-per-rank cpu-set cpu-list slot-list ppr display runtime-options personality default-hostfile "
        "report-uri max-restarts envlist genvlist genvexcl env-list umask membind topolib rmk demux usize order-nodes "
        "localhost outfile-pattern errfile-pattern prepend-pattern nameserver ckpoint-interval ckpoint-prefix "
        "ckpointlib gpus-per-proc pmi-port hosts-group s trace tracer depth d cpu-bind mem-bind gpu-bind mempolicy "
        "rlimits label-format envfile jobid line-buffer dvm dvm-uri parallel-localize"
    ),
    _set(
        "oversubscribe nooversubscribe nolocal allow-run-as-root report-bindings display-map display-allocation "
        "display-devel-map tag-output timestamp-output merge-stderr-to-stdout q v quiet verbose pernode bycore bynode "
        "byslot bysocket bind-to-core bind-to-socket bind-to-none use-hwthread-cpus novm noprefix continuous "
        "enable-recovery do-not-launch do-not-resolve xml l prepend-rank genvall genvnone envall envnone "
        "disable-hostname-propagation print-rank-map print-all-exitcodes check-mpi noconf info ilp64 "
        "skip-launch-node disable-auto-cleanup preload-binary leave-session-attached allow-oversubscribe no-vni "
        "no-transfer transfer exclusive index-machinefile get-stack-traces report-state-on-timeout forward-signals"
    ),
    _set("mca gmca pmca prtemca pmixmca env genv"),
    fields={
        "n": "ranks",
        "np": "ranks",
        "c": "ranks",
        "ppn": "ranks_per_node",
        "perhost": "ranks_per_node",
        "npernode": "ranks_per_node",
        "N": "ranks_per_node",
        "depth": "threads",
        "d": "threads",
        "cpus-per-proc": "threads",
        "cpus-per-rank": "threads",
    },
)
_JSRUN = LaunchOptions(
    _set(
        "n a c g r d b l p E D X M m S e h i o k t U L nrs tasks-per-rs cpu-per-rs gpu-per-rs rs-per-host "
        "rs-per-socket launch-distribution bind latency-priority np env env-no-propagate erf-input erf-output smpiargs "
        "memory-per-rs use-resources chdir stdio-stdout stdio-stderr stdio-stdin stdio-mode exit-on-error "
        "appfile nodes-per-job progress"
    ),
    _set("v V verbose allocate-only immediate"),
    joined=True,
)
_FLUX = LaunchOptions(
    _set(
        "n N c g t q B o l S ntasks nodes nslots cores cores-per-task gpus-per-task tasks-per-node tasks-per-core "
        "gpus-per-node cores-per-node time-limit queue bank env env-remove env-file job-name setopt setattr "
        "dependency requires begin-time cwd signal input output error urgency conf add-file rlimit taskmap flags "
        "config-path"
    ),
    _set("v x exclusive label-io unbuffered verbose watch dry-run quiet"),
    joined=True,
    fields={
        "n": "ranks",
        "ntasks": "ranks",
        "N": "nodes",
        "nodes": "nodes",
        "c": "threads",
        "cores-per-task": "threads",
        "tasks-per-node": "ranks_per_node",
        "g": "gpus_per_rank",
        "gpus-per-task": "gpus_per_rank",
        "gpus-per-node": "gpus_per_node",
    },
)
_HOROVODRUN = LaunchOptions(
    _set(
        "np num-proc H hosts hostfile start-timeout network-interface network-interfaces output-filename config-file p "
        "ssh-port i ssh-identity-file fusion-threshold-mb cycle-time-ms cache-capacity autotune-log-file min-np "
        "min-num-proc max-np max-num-proc slots-per-host elastic-timeout reset-limit host-discovery-script "
        "timeline-filename mpi-args log-level num-nccl-streams thread-affinity gloo-timeout-seconds"
    ),
    _set(
        "verbose disable-cache hierarchical-allreduce no-hierarchical-allreduce hierarchical-allgather "
        "no-hierarchical-allgather autotune no-autotune timeline-mark-cycles no-timeline-mark-cycles stall-check "
        "no-stall-check tcp binding-args gloo mpi jsrun log-with-timestamp log-hide-timestamp"
    ),
    families=("autotune-", "stall-check-"),
    fields={"np": "ranks", "num-proc": "ranks"},
)
LAUNCHERS: Mapping[str, LaunchOptions] = {
    "srun": _SRUN,
    **dict.fromkeys(("mpirun", "mpiexec", "mpiexec.hydra", "mpirun_rsh", "orterun", "prterun", "prun"), _MPI),
    "ibrun": LaunchOptions(_set("n o np"), _set("v"), fields={"n": "ranks", "np": "ranks"}),
    "aprun": LaunchOptions(
        _set("n N d S j cc L r m e E F p P t sn sl mem-per-pe pes pes-per-node depth cpu-binding node-list"),
        _set("ss q B b R C D T y z zz quiet batch-args"),
        joined=True,
        fields={"n": "ranks", "pes": "ranks", "N": "ranks_per_node", "pes-per-node": "ranks_per_node", "d": "threads"},
    ),
    "jsrun": _JSRUN,
    "flux": _FLUX,
    "horovodrun": _HOROVODRUN,
}
"""What starts the ranks of a job. ``flux`` does it as ``flux run``."""

# What starts the processes of one framework, on each node or on all of them.

_TORCHRUN = LaunchOptions(
    _set(
        "nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts monitor-interval start-method "
        "event-log-handler role log-dir r redirects t tee local-ranks-filter node-rank master-addr master-port "
        "local-addr logs-specs numa-binding signals-to-handle duplicate-stdout-filters duplicate-stderr-filters "
        "shutdown-timeout"
    ),
    _set("standalone m module no-python run-path use-env virtual-local-rank"),
)
FRAMEWORKS: Mapping[str, LaunchOptions] = {
    "torchrun": _TORCHRUN,
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "accelerate": LaunchOptions(
        _set(
            "config-file num-processes num-machines machine-rank main-process-ip main-process-port mixed-precision "
            "num-cpu-threads-per-process gpu-ids gradient-accumulation-steps gradient-clipping rdzv-backend rdzv-conf "
            "max-restarts monitor-interval role t tee log-dir main-training-function mpirun-hostfile mpirun-ccl env vm "
            "dynamo-backend dynamo-mode zero-stage zero3-init-flag zero3-save-16bit-model deployment-type"
        ),
        _set(
            "cpu multi-gpu tpu ipex use-xpu use-deepspeed use-fsdp use-megatron-lm use-parallelism-config m module "
            "no-python q quiet debug same-network enable-cpu-affinity downcast-bf16 tpu-cluster no-tpu-cluster "
            "tpu-use-sudo dynamo-use-fullgraph dynamo-use-dynamic dynamo-use-regional-compilation "
            "fp8-use-autocast-during-eval"
        ),
        families=("fsdp-", "deepspeed-", "megatron-lm-", "offload-", "parallelism-config-", "fp8-", "aws-"),
    ),
    "deepspeed": LaunchOptions(
        _set(
            "H hostfile i include e exclude num-nodes min-elastic-nodes max-elastic-nodes num-gpus num-accelerators "
            "master-addr master-port node-rank launcher launcher-args autotuning log-level enable-each-rank-log "
            "bind-core-list ssh-port venv-script"
        ),
        _set(
            "module no-python no-local-rank no-ssh no-ssh-check force-multi save-pid q quiet bind-cores-to-rank "
            "elastic-training"
        ),
    ),
}
"""What starts processes for one framework, by the name of its program or module. ``accelerate`` does as ``launch``."""
SIZES = _set(
    "nnodes nproc-per-node node-rank rdzv-backend rdzv-endpoint rdzv-id rdzv-conf master-addr master-port standalone "
    "num-processes num-machines machine-rank main-process-ip main-process-port multi-gpu same-network num-nodes "
    "num-gpus num-accelerators include hostfile m module local-addr use-env gpu-ids num-cpu-threads-per-process "
    "no-local-rank no-python"
)
"""LaunchOptions of these that say how many processes there are and how they find each other, or what is started."""

# Containers.


class ContainerRuntime(NamedTuple):
    """A program that starts others in a container.

    ``verbs``: words before its options, empty if there is none. ``names``: options that name the image. ``positional``:
    whether the first word behind the options does, where none of them has.
    """

    options: LaunchOptions
    verbs: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    positional: bool = True


_APPTAINER = LaunchOptions(
    _set(
        "B bind H home W workdir pwd cwd env env-file S scratch o overlay app add-caps drop-caps apply-cgroups "
        "blkio-weight blkio-weight-device cpu-shares cpus cpuset-cpus cpuset-mems memory memory-reservation "
        "memory-swap pids-limit dns hostname mount network network-args fusemount pem-path security authfile "
        "docker-host oom-kill-disable shell"
    ),
    _set(
        "e cleanenv c contain C containall f fakeroot nv nvccli rocm w writable writable-tmpfs p pid i ipc u userns "
        "uts no-home no-mount no-init no-privs no-umask no-eval no-https n net no-ad no-compat compat disable-cache "
        "keep-privs allow-setuid ignore-subuid ignore-fakeroot-command ignore-userns underlay unsquash no-pid sharens "
        "s silent q quiet v verbose d debug nocolor passphrase vm intel-hpu no-tmp-sandbox tmp-sandbox"
    ),
    joined=True,
)
_PODMAN = LaunchOptions(
    _set("a e h l m p u v w c"),
    _set(
        "d detach i interactive t tty P publish-all q quiet rm rmi init read-only privileged replace no-healthcheck "
        "no-hosts sig-proxy oom-kill-disable disable-content-trust tls-verify unsetenv-all rootfs env-host http-proxy "
        "passwd read-only-tmpfs gpu nccl mpi cuda-mpi openmpi-pmi2 openmpi-pmix cfs cvmfs home scratch jupyter help"
    ),
    families=tuple("abcdefghijklmnopqrstuvwxyz"),
    joined=True,
)
"""Of the long options of podman and docker those take a value that are not among the flags."""
_SHIFTER = LaunchOptions(
    _set("i image e env env-file m module V volume w workdir entrypoint"),
    _set("v verbose E clearenv h help"),
    joined=True,
)
RUNTIMES: Mapping[str, ContainerRuntime] = {
    **dict.fromkeys(("apptainer", "singularity"), ContainerRuntime(_APPTAINER, _set("exec run"))),
    **dict.fromkeys(
        ("apptainer_wrapper", "singularity_wrapper"), ContainerRuntime(_APPTAINER, _set("exec run"), positional=False)
    ),
    **dict.fromkeys(("docker", "podman", "podman-hpc", "nerdctl"), ContainerRuntime(_PODMAN, _set("run"))),
    "shifter": ContainerRuntime(_SHIFTER, names=_set("i image"), positional=False),
    "ch-run": ContainerRuntime(
        LaunchOptions(
            _set("b bind c cd g gid j join-ct join-pid m mount t u uid s storage set-env unset-env quiet test env"),
            _set(
                "d env-no-expand join no-home home no-passwd private-tmp t write w W write-fake v verbose "
                "unsafe cdi seccomp color"
            ),
            joined=True,
        )
    ),
    "enroot": ContainerRuntime(
        LaunchOptions(_set("c conf e env m mount rc"), _set("r root w rw"), joined=True), _set("start")
    ),
    "sarus": ContainerRuntime(
        LaunchOptions(
            _set("mount volume env e workdir w device entrypoint pid annotation name hooks"),
            _set("mpi ssh init glibc t tty centralized-repository"),
        ),
        _set("run"),
    ),
}
"""What starts a program in a container."""
PYXIS = _set("container-image image environment")
"""LaunchOptions of srun that name an image, or a file that does."""
