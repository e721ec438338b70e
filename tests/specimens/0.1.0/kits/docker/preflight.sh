#!/bin/bash
#
# Preflight of example-app for example-cluster, partition thin
# by hpcgen 0.1.0; made again by:
#   hpcgen --collection collection render --locked hpcgen.lock
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

set -euo pipefail
unset SLURM_EXPORT_ENV

need() {
    if ! command -v "$1" > /dev/null; then
        echo "preflight.sh: $1 is not on PATH; it comes with the site's container engine or MPI" >&2
        exit 69
    fi
}
need docker

HPCGEN_IMAGE=${1:-${HPCGEN_IMAGE:-}}
image=${HPCGEN_IMAGE:-example-app:example-cluster}
if ! docker image inspect "$image" > /dev/null 2>&1; then
    echo "preflight.sh: there is no image $image: make it with build.sh, or set HPCGEN_IMAGE" >&2
    exit 66
fi

export HPCGEN_RANKS=1
export OMP_NUM_THREADS=48

# Preflight: do the nodes have what the image and the job count on? Looked for before the program starts, in seconds.
preflight_finding() { # FAILED or warning, what, expected, seen, what to do
    printf 'preflight\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(uname -n)" "$@"
}

preflight_node() { # image
    local word seen missing=''
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

preflight() {
    {
        preflight_node "$image"
        printf 'preflight-passed\t%s\n' 'this machine has what the job counts on'
    } 2>&1 | preflight_report || return 78
}

preflight || exit 78
