#!/bin/bash
#
# preflight of tf-horovod for supermuc, partition thin: tensorflow 2.15.1, horovod 0.28.1, intel_mpi 2019.6.166 on ubuntu 22.04
# made by hpcgen 0.2.0: hpcgen render --site supermuc --stack tf-horovod --set tensorflow.install=source
# why these versions: plan.json next to this file, or the same command with plan in place of render
# layout: 1 node × 4 ranks × 12 threads
#   nodes 1: layout of the site for thin
#   ranks per node 4: layout of the site for thin; measured: 3DGAN, seconds per epoch on 4 / 512 nodes, 907.26 / 7.84
#     with 4 × 12 and the host's Intel MPI against 3806 / 33 with 1 × 48 and 2302 / 25 with 2 × 48 hyper-threads
#   threads per rank 12: layout of the site for thin
#   time 01:00:00: default of supermuc
#   queue micro: the first that takes 1 node for 01:00:00 (1 to 16 nodes, up to 48:00:00)
#   memory: a job may use 77 GB of a node
# usage: preflight.sh [IMAGE]      in an allocation; exits with 78 if something is missing

# A job has loaded its modules already.
if [ -z "${2:-}" ]; then
    module load slurm_setup
    module load mpi.intel/2019
    module load devEnv/Intel/2019
    module load charliecloud
fi

set -euo pipefail
unset SLURM_EXPORT_ENV
folder=$PWD
: "${USER:=$(id -un 2> /dev/null || id -u)}"; export USER
command -v ch-run > /dev/null || { echo 'preflight.sh: ch-run is not on PATH; it comes with the container engine of the site' >&2; exit 69; }
command -v mpiexec > /dev/null || { echo 'preflight.sh: mpiexec is not on PATH; it comes with the MPI or batch system of the site' >&2; exit 69; }

[ "${HPCGEN_PREFLIGHT:-1}" != 0 ] || exit 0
HPCGEN_IMAGE=${1:-${HPCGEN_IMAGE:-}}
image=${HPCGEN_IMAGE:-}
if [ -z "$image" ]; then
    for image in "$folder"/tf-horovod "$folder"/tf-horovod.sqfs; do
        if [ -e "$image" ]; then
            break
        fi
    done
fi
if [ ! -e "$image" ]; then
    echo "preflight.sh: there is no image $image: make it with build.sh, or set HPCGEN_IMAGE" >&2
    exit 66
fi

export FI_PROVIDER=psm2
export FI_PROVIDER_PATH=/dss/dsshome1/lrz/sys/intel/impi2019u6/compilers_and_libraries_2020.0.154/linux/mpi/intel64/libfabric/lib/prov
export HPCGEN_RANKS=4
export I_MPI_FABRICS=shm:ofi
export I_MPI_HYDRA_BOOTSTRAP=slurm
export I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0
export I_MPI_OFI_PROVIDER=psm2
export I_MPI_PIN_RESPECT_CPUSET=0
export OMP_NUM_THREADS=12
export TF_NUM_INTEROP_THREADS=12
export TF_NUM_INTRAOP_THREADS=12
# Where downloads are kept for all jobs. It must be a folder that is seen inside.
export HPCGEN_CACHE="${HPCGEN_CACHE:-${XDG_CACHE_HOME:-$({ echo "$SCRATCH"/hpcgen-cache-"$USER"; } 2> /dev/null || true)}}"
# Without an allocation the ranks are started on this machine.
if [ -z "${SLURM_JOB_ID:-}${PBS_JOBID:-}" ]; then
    export I_MPI_HYDRA_BOOTSTRAP=fork
fi

# The lines of the ranks are read here, so none of the caller's variables may label or redirect them.
unset I_MPI_DEBUG_OUTPUT OMPI_MCA_orte_output_filename OMPI_MCA_orte_tag_output OMPI_MCA_orte_timestamp_output \
    OMPI_MCA_orte_xml_output PRTE_MCA_output SLURM_LABELIO SLURM_STDERRMODE SLURM_STDOUTMODE SLURM_UNBUFFEREDIO

# The site's file systems that this node has are seen inside in their own place.
places=(/hppfs/work /hppfs/scratch)
file_systems=()
for path in "${places[@]}"; do
    [ ! -d "$path" ] || file_systems+=(-b "$path:$path")
done
# Starts each rank with its caches inside the container, where no variable names another place. Downloads are shared by all.
own_caches() { # a folder on the node, command
    local shared=${HPCGEN_CACHE:-${XDG_CACHE_HOME:-$PWD/.cache}}
    local home=${HOME:-}
    # What is in the home directory already is used there.
    local each name downloads=(KERAS_HOME=.keras)
    for each in "${downloads[@]}"; do
        name=${each%%=*}
        if [ -z "${!name:-}" ] && { [ ! -d "$home/${each#*=}" ] || [ -d "$shared/${each##*/}" ]; }; then
            mkdir -p "$shared/${each##*/}" && export "$name=$shared/${each##*/}"
        fi
    done
    shift
    exec "$@"
}

mpi=/dss/dsshome1/lrz/sys/intel/impi2019u6/compilers_and_libraries_2020.0.154/linux/mpi/intel64
# Ranks of a node start together: the first makes the folder where the image is mounted, for which they would race.
container=(
    /bin/sh -c "command -p mkdir -p '/var/tmp/${USER:-}.ch/mnt' 2> /dev/null; exec \"\$@\"" folder-first
    ch-run
    -b /lrz/sys/.:/lrz/sys
    -b /dss/dsshome1/lrz/sys/.:/dss/dsshome1/lrz/sys
    ${file_systems[@]+"${file_systems[@]}"}
    -b "$folder":/mnt/0 -c /mnt/0
    "$image" --
    /usr/bin/env -u BASH_ENV -u CURL_CA_BUNDLE -u ENV -u LD_PRELOAD -u PYTHONHOME -u PYTHONPATH -u PYTHONSTARTUP -u PYTHONUSERBASE -u REQUESTS_CA_BUNDLE -u SSL_CERT_DIR -u SSL_CERT_FILE -u TMPDIR
    FI_PROVIDER_PATH="$mpi"/libfabric/lib/prov
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1
    I_MPI_ROOT="$mpi"
    LD_LIBRARY_PATH="$mpi"/lib/release:"$mpi"/lib:"$mpi"/libfabric/lib:/opt/intel_mpi/intel64/lib:/opt/intel_mpi/intel64/lib/release:/opt/intel_mpi/intel64/libfabric/lib:/opt/psm2/lib
    MALLOC_MMAP_THRESHOLD_=33554432
    MALLOC_TRIM_THRESHOLD_=4294967296
    PATH=/opt/rank_test/bin:/opt/intel_mpi/intel64/bin:/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    PYTHONNOUSERSITE=1
    THP_MEM_ALLOC_ENABLE=1
    PWD=/mnt/0
    XDG_CACHE_HOME="${XDG_CACHE_HOME:-/mnt/0/.cache}"
    IPYTHONDIR="${IPYTHONDIR:-/mnt/0/.cache/ipython}"
    JUPYTER_CONFIG_DIR="${JUPYTER_CONFIG_DIR:-/mnt/0/.cache/jupyter/config}"
    JUPYTER_DATA_DIR="${JUPYTER_DATA_DIR:-/mnt/0/.cache/jupyter/data}"
    MPLCONFIGDIR="${MPLCONFIGDIR:-/mnt/0/.cache/matplotlib}"
    /bin/bash -c "$(declare -f own_caches); own_caches \"\$@\"" own_caches /tmp
)
# Ranks are tried by the line of the job script that calls, as somebody may have changed it there.
launch=(mpiexec -n 4 -ppn 4 "${container[@]}")
[ "$#" -lt 3 ] || launch=("${@:3}")

preflight_finding() { # FAILED or warning, what, expected, seen, what to do
    printf 'preflight\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(uname -n)" "$@"
}

preflight_there() { # FAILED or warning, what, what to do, paths
    local path
    for path in "${@:4}"; do
        [ -e "$path" ] || preflight_finding "$1" "$2" "$path" 'nothing there' "$3"
    done
}

preflight_older() { # version, than another, as far as both go
    awk -v here="$1" -v than="$2" 'BEGIN {
        n = split(here, a, "."); m = split(than, b, ".")
        for (i = 1; i <= n && i <= m; i++)
            if (a[i] + 0 != b[i] + 0)
                exit !(a[i] + 0 < b[i] + 0)
        exit 1
    }'
}

preflight_node() { # image, the node that the launcher is started on
    local word seen missing='' folders
    preflight_there warning fabric 'use other nodes, or correct fabric.devices of the profile of supermuc' \
        /dev/hfi1_0
    preflight_there FAILED bind 'correct mpi.binds of the profile of supermuc' \
        /lrz/sys/. /dss/dsshome1/lrz/sys/.
    seen=$(awk -F: '/^(flags|Features)/ { print $2; exit }' /proc/cpuinfo)
    for word in abm aes avx avx2 avx512bw avx512cd avx512dq avx512f avx512vl bmi1 bmi2 f16c fma movbe pclmulqdq; do
        case " $seen " in
            *" $word "*) ;;
            *) missing="$missing $word" ;;
        esac
    done
    if [ -n "$seen" ] && [ -n "$missing" ]; then
        preflight_finding FAILED CPU 'skylake_avx512, for which the image was compiled' "a CPU without$missing" 'its programs would end with SIGILL: use nodes of the partition thin, or build it for these'
    fi
    word=''
    case $1 in
        *.sqfs) word=0.26 ;;
    esac
    if [ -n "$word" ]; then
        seen=$(ch-run --version 2>&1 | grep -o -E '[0-9]+(\.[0-9]+)+' | tail -n 1)
        if [ -n "$seen" ] && preflight_older "$seen" "$word"; then
            preflight_finding FAILED engine ch-run" $word or newer" "$seen" 'load another release, or correct containers of the profile of supermuc'
        fi
    fi
    missing=''
    folders=(
        /dss/dsshome1/lrz/sys/./intel/impi2019u6/compilers_and_libraries_2020.0.154/linux/mpi/intel64/lib/release
        /dss/dsshome1/lrz/sys/./intel/impi2019u6/compilers_and_libraries_2020.0.154/linux/mpi/intel64/lib
        /dss/dsshome1/lrz/sys/./intel/impi2019u6/compilers_and_libraries_2020.0.154/linux/mpi/intel64/libfabric/lib
    )
    for word in "${folders[@]}"; do
        if [ -r "$word"/libmpi.so.12 ]; then
            missing=''
            break
        fi
        missing="$missing $word"
    done
    if [ -n "$missing" ]; then
        preflight_finding FAILED 'host MPI' libmpi.so.12 "none in$missing" 'correct mpi.libraries and mpi.binds of the profile of supermuc'
    fi
    seen=$(df -Pk /dev/shm 2> /dev/null | awk 'NR == 2 { print $4 }')
    if [ -n "$seen" ] && [ "$seen" -lt 4096 ]; then
        preflight_finding FAILED /dev/shm '4096 kB for 4 ranks' "$seen kB free" 'remove what ended jobs left in it, or ask for it to be mounted with its usual size, half of the memory'
    fi
    printf 'preflight-node\t%s\n' "$(uname -n)"
}

preflight_report() { # findings as people read them; 78 if one of them stops the job
    awk -F '\t' -v nodes=1 -v own="$(uname -n)" '
        function add(node, key) {
            if (!known[key]++)
                order[++n] = key
            if (node != "" && !told[key, node]++ && ++count[key] <= 3)
                where[key] = where[key] (count[key] > 1 ? ", " : " on ") node
        }
        /^([^a-z]*[]>:] *|.*<stdout>: *)preflight[-a-z]*\t/ { sub(/^([^a-z]*[]>:] *|.*<stdout>: *)/, "") }
        $1 == "preflight" && NF == 7 { add($2, $3 FS $4 FS $5 FS $6 FS $7); next }
        $1 == "preflight-sum" {
            if (!summed[$2, $3]++) {
                sums[++summaries] = $0
                alike[$3, $4]++
            }
            next
        }
        $1 == "preflight-node" { heard += !here[$2]++; sub(/\..*/, "", $2); short[$2]; asked = 1; next }
        $1 == "preflight-expected" { sub(/\..*/, "", $2); expected[wanted++] = $2; next }
        $1 == "preflight-asked" { asked = 1; next }
        $1 == "preflight-passed" { passed = $2; next }
        $0 != "" { line[lines++ % 20] = $0 }
        END {
            # What most nodes have is right, and where there is no such thing, what this node has.
            for (i = 1; i <= summaries; i++) {
                split(sums[i], part, FS)
                size = alike[part[3], part[4]] + (part[2] == own ? 0.5 : 0)
                if (size > most[part[3]]) {
                    most[part[3]] = size
                    usual[part[3]] = part[4]
                    whose[part[3]] = part[2]
                }
            }
            for (i = 1; i <= summaries; i++) {
                split(sums[i], part, FS)
                if (part[4] != usual[part[3]])
                    add(part[2], part[5] FS part[3] FS "the same as on " whose[part[3]] FS "another one" FS part[6])
            }
            for (i = 1; i <= n; i++) {
                split(order[i], part, FS)
                more = count[order[i]] > 3 ? " and " count[order[i]] - 3 " more" : ""
                text = "preflight: " part[1] ": " part[2] where[order[i]] more
                print text ": expected " part[3] "; seen: " part[4] "; " part[5]
                if (part[1] == "FAILED")
                    failed = 1
            }
            if (asked && heard < nodes) {
                for (i = 0; i < wanted; i++)
                    if (!(expected[i] in short) && ++silent <= 3)
                        names = names (silent > 1 ? ", " : "") expected[i]
                # Names of the batch system that the nodes do not have themselves say nothing.
                if (silent == 0 || silent != nodes - heard)
                    names = "the others"
                else if (silent > 3)
                    names = names " and " silent - 3 " more"
                print "preflight: FAILED: nodes: expected " nodes "; seen: " heard + 0 "; no answer from " names
                failed = 1
            }
            for (i = lines > 20 ? lines - 20 : 0; failed && i < lines; i++)
                print "  | " line[i % 20]
            if (!failed && passed != "")
                print "preflight: passed: " passed
            exit failed ? 78 : 0
        }' >&2
}

preflight_ranks() {
    local status=0
    {
        timeout --foreground -k 10 120 "${launch[@]}" \
            /usr/bin/env I_MPI_DEBUG=4 MPIR_CVAR_DEBUG_SUMMARY=1 MPIR_CVAR_CH4_OFI_CAPABILITY_SETS_DEBUG=1 /opt/rank_test/bin/rank_test < /dev/null || status=$?
        printf '\npreflight-status %s\n' "$status"
    } 2>&1 | MPI_FILE='/(libmpi(_[a-z0-9_]+)?\.so|libmpich\.so)' awk \
        -v wanted=4 -v limit=120 -v said='libfabric provider: ' \
        -v whose='the host'"'"'s (intel)' -v folders='/dss/dsshome1/lrz/sys/intel/impi2019u6/compilers_and_libraries_2020.0.154/linux/mpi/intel64/lib/release /dss/dsshome1/lrz/sys/intel/impi2019u6/compilers_and_libraries_2020.0.154/linux/mpi/intel64/lib /dss/dsshome1/lrz/sys/intel/impi2019u6/compilers_and_libraries_2020.0.154/linux/mpi/intel64/libfabric/lib /lrz/sys /dss/dsshome1/lrz/sys /dss/dsshome1/lrz/sys/intel/impi2019u6/compilers_and_libraries_2020.0.154/linux/mpi/intel64' \
        -v fabric=omni-path -v provider=psm2 -v same=psm2 -v slow='tcp sockets udp net' \
        -v weight=FAILED '
        function finding(mark, what, expected, seen, todo, node) {
            printf "preflight\t%s\t%s\t%s\t%s\t%s\t%s\n", node, mark, what, expected, seen, todo
            found = 1
        }
        function right(path, i) {
            for (i = 1; i <= places; i++)
                if (index(path, place[i] "/") == 1)
                    return 1
            return places == 0
        }
        BEGIN { places = split(folders, place, " ") }
        # Behind a label of the launcher, or the half of a line of another rank, which was written in pieces.
        match($0, /rank [0-9]+ (of [0-9]+ on |maps \/|has library )/) { $0 = substr($0, RSTART) }
        /^([^a-z]*[]>:] *|.*<stdout>: *)library / { sub(/^([^a-z]*[]>:] *|.*<stdout>: *)/, "") }
        /^rank [0-9]+ of [0-9]+ on / {
            ranks++
            host[$2] = $6
            if ($4 != wanted)
                size = $4
            next
        }
        /^rank [0-9]+ maps \// {
            path = substr($0, index($0, "/"))
            if (path ~ ENVIRON["MPI_FILE"] && !known[$2, path]++) {
                mapped[$2] = mapped[$2] " " path
                if (!right(path) && !wrong[path]++)
                    bad = bad " " path
            }
            next
        }
        index($0, said) {
            if (used == "") {
                used = substr($0, index($0, said) + length(said))
                sub(/[^A-Za-z0-9_;].*/, "", used)
            }
            next
        }
        /^preflight-status [0-9]+$/ { status = $2; next }
        /^rank [0-9]+ has library / { other[$2] = $0; sub(/^rank [0-9]+ has library /, "", other[$2]); next }
        /^library / { first = substr($0, 9); next }
        /^\[[0-9]+\] MPI startup\(\)|^MPIDI_OFI_|^MAXIMUM |^==|^$/ { next }
        { line[lines++ % 20] = $0 }
        END {
            how = status == 124 || status == 137 ? "it took longer than " limit " s" : "status " status
            job = "one job of " wanted " ranks"
            lines_below = "read the lines below; hpcgen test IMAGE shows more"
            if (ranks == 0)
                finding("FAILED", "ranks", job, "none, " how, lines_below)
            else if (size != "")
                finding("FAILED", "ranks", job, ranks " ranks in jobs of " size,
                    "the PMI of the launcher does not match the MPI in use: srun --mpi=list shows the choices, mpi.pmi of the profile sets one")
            else if (status != 0)
                finding("FAILED", "ranks", job " that ends well", how, lines_below)
            if (found) {
                for (i = lines > 20 ? lines - 20 : 0; i < lines; i++)
                    print line[i % 20]
                exit
            }
            for (rank in mapped)
                if (!sets[mapped[rank]]++)
                    all = all (kinds++ ? " and" : "") mapped[rank]
            todo = "compare mpi.libraries and mpi.binds of the profile with this machine"
            if (kinds == 0)
                finding("FAILED", "MPI library", whose " from " folders, "none in any rank", todo)
            else if (bad != "")
                finding("FAILED", "MPI library", whose " from " folders, substr(bad, 2), todo)
            else if (kinds > 1)
                finding("FAILED", "MPI library", "the same in every rank", substr(all, 2), todo)
            for (rank in other)
                finding("FAILED", "MPI library", first ", as rank 0 has", other[rank],
                    "ask for the same release on all nodes, or use other nodes", host[rank])
            split(used, layer, ";")
            tcp = used != "" && index(" " slow " ", " " layer[1] " ")
            if (tcp || used != "" && same != "" && !index(" " same " ", " " layer[1] " "))
                finding(tcp ? "FAILED" : weight, "fabric provider", (provider != "" ? provider : "another than TCP") " for " fabric, used,
                    "check that the image or the host MPI has the provider library, and that this node has its device")
            print "preflight-passed\t" ranks " rank" (ranks > 1 ? "s" : "") " with" all (used != "" ? " over " used : "")
        }' | preflight_report
}

preflight() {
    {
        preflight_node "$image"
        caches=(KERAS_HOME=.keras)
        for word in "${caches[@]}"; do
            name=${word%%=*}
            seen=${HPCGEN_CACHE:-${XDG_CACHE_HOME:-$PWD/.cache}}/${word##*/}
            [ -n "${word#*=}" ] || seen=''
            seen=${!name:-$seen}
            if [[ $seen == "$HOME"/* ]]; then
                preflight_finding warning "$name" 'a folder outside the home directory, which may hold 100 GB' "$seen" 'set it, or HPCGEN_CACHE for all downloads, to a folder on a larger file system, and move its contents'
                break
            fi
        done
    } 2>&1 | preflight_report || return 78
    preflight_ranks
}

if ! preflight; then
    if [ "${HPCGEN_PREFLIGHT:-1}" != warn ]; then
        [ -z "${2:-}" ] || echo "$2: the command was not started; HPCGEN_PREFLIGHT=0 skips the preflight" >&2
        exit 78
    fi
    echo "${2:-preflight.sh}: continuing anyway: HPCGEN_PREFLIGHT=warn" >&2
fi
