#!/bin/bash
#
# Preflight of mpi-hello for example-cluster, partition thin
# by hpcgen 0.1.0; made again by:
#   hpcgen --collection collection render --site example-cluster --stack mpi-hello --format charliecloud
#
# usage: preflight.sh [IMAGE]   in an allocation: what a job looks for on its nodes before it starts
# Exits with 78 where something is missing.
#
# Why this layout:
#   nodes 1: nothing else was asked for
#   ranks per node 1: no layout fits, so one
#   threads per rank 48: 48 cores shared by 1 rank
#   time 01:00:00: default of example-cluster
#   queue test: the first that takes 1 node (1 to 4)
#   memory: a job may use 96 GB of a node

# Before `set -u`: a site's module function may read variables that are not set.
module load mpich/4.0.2

set -euo pipefail
unset SLURM_EXPORT_ENV
folder=$PWD

need() {
    if ! command -v "$1" > /dev/null; then
        echo "preflight.sh: $1 is not on PATH; it comes with the site's container engine or MPI" >&2
        exit 69
    fi
}
need srun
need ch-run

HPCGEN_IMAGE=${1:-${HPCGEN_IMAGE:-}}
image=${HPCGEN_IMAGE:-}
if [ -z "$image" ]; then
    for image in "$folder"/mpi-hello.sqfs "$folder"/mpi-hello; do
        if [ -e "$image" ]; then
            break
        fi
    done
fi
if [ ! -e "$image" ]; then
    echo "preflight.sh: there is no image $image: make it with build.sh, or set HPCGEN_IMAGE" >&2
    exit 66
fi

export HPCGEN_RANKS=1
export OMP_NUM_THREADS=48

container=(
    ch-run
    --unset-env=BASH_ENV
    --unset-env=ENV
    --unset-env=LD_PRELOAD
    --unset-env=PYTHONHOME
    --unset-env=PYTHONPATH
    --unset-env=PYTHONSTARTUP
    --unset-env=PYTHONUSERBASE
    --unset-env=TMPDIR
    -b /opt/example:/opt/example
    -b "$folder":/mnt/0 -c /mnt/0
    "$image" --
    /usr/bin/env
    LD_LIBRARY_PATH=/opt/example/mpich/lib:/opt/mpich/lib:/opt/libfabric/lib:/opt/psm2/lib
    MPI_HOME=/opt/mpich
    PATH=/opt/rank_test/bin:/opt/mpich/bin:/opt/libfabric/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    PWD=/mnt/0
)

# Preflight: do the nodes have what the image and the job count on? Looked for before the program starts, in seconds.
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

preflight_node() { # image
    local word seen missing='' folders
    preflight_there FAILED bind 'correct mpi.binds of the profile of example-cluster' \
        /opt/example
    seen=$(awk -F: '/^(flags|Features)/ { print $2; exit }' /proc/cpuinfo)
    for word in abm adx aes avx avx2 avx512bw avx512cd avx512dq avx512f avx512vl bmi1 bmi2 clflushopt clwb f16c fma movbe pclmulqdq rdrand rdseed xsave xsavec xsaveopt; do
        case " $seen " in
            *" $word "*) ;;
            *) missing="$missing $word" ;;
        esac
    done
    if [ -n "$seen" ] && [ -n "$missing" ]; then
        preflight_finding FAILED CPU 'skylake_avx512, for which the image was compiled' "a CPU without$missing" 'its programs would end with SIGILL: take nodes of the partition thin, or build it for these'
    fi
    word=0.9.8
    case $1 in
        *.sqfs) word=0.26 ;;
    esac
    if [ -n "$word" ]; then
        seen=$(ch-run --version 2>&1 | grep -o -E '[0-9]+(\.[0-9]+)+' | tail -n 1)
        if [ -n "$seen" ] && preflight_older "$seen" "$word"; then
            preflight_finding FAILED engine ch-run" $word or newer" "$seen" 'load another release, or correct containers of the profile of example-cluster'
        fi
    fi
    missing=''
    folders=(
        /opt/example/mpich/lib
    )
    for word in "${folders[@]}"; do
        if [ -r "$word"/libmpi.so.12 ]; then
            missing=''
            break
        fi
        missing="$missing $word"
    done
    if [ -n "$missing" ]; then
        preflight_finding FAILED 'host MPI' libmpi.so.12 "none in$missing" 'correct mpi.libraries and mpi.binds of the profile of example-cluster'
    fi
    printf 'preflight-node\t%s\n' "$(uname -n)"
}

preflight_report() { # findings as people read them; 78 if one of them stops the job
    awk -F '\t' -v nodes=1 '
        $1 == "preflight" && NF == 7 {
            key = $3 FS $4 FS $5 FS $6 FS $7
            if (!known[key]++)
                order[++n] = key
            if ($2 != "" && !told[key, $2]++ && ++count[key] <= 3)
                where[key] = where[key] (count[key] > 1 ? ", " : " on ") $2
            next
        }
        $1 == "preflight-node" { heard += !here[$2]++; asked = 1; next }
        $1 == "preflight-asked" { asked = 1; next }
        $1 == "preflight-passed" { passed = $2; next }
        { line[lines++ % 20] = $0 }
        END {
            for (i = 1; i <= n; i++) {
                split(order[i], part, FS)
                more = count[order[i]] > 3 ? " and " count[order[i]] - 3 " more" : ""
                text = "preflight: " part[1] ": " part[2] where[order[i]] more
                print text ": expected " part[3] "; seen: " part[4] "; " part[5]
                if (part[1] == "FAILED")
                    failed = 1
            }
            if (asked && heard < nodes) {
                print "preflight: FAILED: nodes: expected " nodes "; seen: " heard + 0 "; the others did not answer"
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
        timeout --foreground -k 10 120 srun --export=ALL --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=48 --mpi=pmi2 "${container[@]}" \
            /usr/bin/env I_MPI_DEBUG=4 MPIR_CVAR_DEBUG_SUMMARY=1 MPIR_CVAR_CH4_OFI_CAPABILITY_SETS_DEBUG=1 /opt/rank_test/bin/rank_test < /dev/null || status=$?
        printf '\npreflight-status %s\n' "$status"
    } 2>&1 | MPI_FILE='/(libmpi(_[a-z0-9_]+)?\.so|libmpich\.so)' awk \
        -v wanted=1 -v limit=120 -v said='libfabric provider: ' \
        -v whose='the host'"'"'s (mpich)' -v folders='/opt/example/mpich/lib /opt/example /opt/example/mpich' \
        -v fabric=omni-path -v provider='' -v same='' -v slow='tcp sockets udp net' \
        -v weight=FAILED '
        function finding(mark, what, expected, seen, todo) {
            printf "preflight\t\t%s\t%s\t%s\t%s\t%s\n", mark, what, expected, seen, todo
            found = 1
        }
        function right(path, i) {
            for (i = 1; i <= places; i++)
                if (index(path, place[i] "/") == 1)
                    return 1
            return places == 0
        }
        BEGIN { places = split(folders, place, " ") }
        /^rank [0-9]+ of [0-9]+ on / {
            ranks++
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
        /^library |^\[[0-9]+\] MPI startup\(\)|^MPIDI_OFI_|^MAXIMUM |^==|^$/ { next }
        { line[lines++ % 20] = $0 }
        END {
            how = status == 124 || status == 137 ? "it took longer than " limit " s" : "status " status
            job = "one job of " wanted " ranks"
            lines_below = "read the lines below; hpcgen test IMAGE tells more"
            if (ranks == 0)
                finding("FAILED", "ranks", job, "none, " how, lines_below)
            else if (size != "")
                finding("FAILED", "ranks", job, ranks " ranks in jobs of " size,
                    "the PMI of the launcher does not fit the MPI in use: srun --mpi=list tells what there is, mpi.pmi of the profile what is used")
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
            split(used, layer, ";")
            tcp = used != "" && index(" " slow " ", " " layer[1] " ")
            if (tcp || used != "" && same != "" && !index(" " same " ", " " layer[1] " "))
                finding(tcp ? "FAILED" : weight, "fabric provider", (provider != "" ? provider : "another than TCP") " for " fabric, used,
                    "look for the library of the provider in the image or beside the MPI of the host, and for its device on this node")
            print "preflight-passed\t" ranks " rank" (ranks > 1 ? "s" : "") " with" all (used != "" ? " over " used : "")
        }' | preflight_report
}

preflight() {
    if [ -z "${SLURM_JOB_ID:-}" ]; then
        echo "preflight: left out: srun would queue for nodes of its own, since this is outside of an allocation" >&2
        return 0
    fi
    {
        preflight_node "$image"
    } 2>&1 | preflight_report || return 78
    preflight_ranks
}

preflight || exit 78
