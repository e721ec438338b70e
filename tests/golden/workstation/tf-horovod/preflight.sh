#!/bin/bash
#
# preflight of tf-horovod for workstation, partition main: tensorflow 2.15.1, horovod 0.28.1, mpich 4.3.2 on ubuntu 22.04
# made by hpcgen 0.2.0: hpcgen render --site workstation --stack tf-horovod
# why these versions: plan.json next to this file, or the same command with plan in place of render
# layout: 1 node × 1 rank × 8 threads
#   nodes 1: the default
#   ranks per node 1: no layout fits, so one
#   threads per rank 8: 8 cores shared by 1 rank
#   time 01:00:00: default of workstation
#   memory: a job may use 16 GB of a node
# usage: preflight.sh [IMAGE]      in an allocation; exits with 78 if something is missing

set -euo pipefail
unset SLURM_EXPORT_ENV
command -v docker > /dev/null || { echo 'preflight.sh: docker is not on PATH; it comes with the container engine of the site' >&2; exit 69; }

[ "${HPCGEN_PREFLIGHT:-1}" != 0 ] || exit 0
HPCGEN_IMAGE=${1:-${HPCGEN_IMAGE:-}}
image=${HPCGEN_IMAGE:-tf-horovod:workstation}
if [ "$#" -le 1 ] && ! docker image inspect "$image" > /dev/null 2>&1; then
    echo "preflight.sh: there is no image $image: make it with build.sh, or set HPCGEN_IMAGE" >&2
    exit 66
fi

export HPCGEN_RANKS=1
export OMP_NUM_THREADS=8
export TF_NUM_INTEROP_THREADS=8
export TF_NUM_INTRAOP_THREADS=8

preflight_finding() { # FAILED or warning, what, expected, seen, what to do
    printf 'preflight\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(uname -n)" "$@"
}

preflight_node() { # image, the node that the launcher is started on
    local word seen missing=''
    seen=$(awk -F: '/^(flags|Features)/ { print $2; exit }' /proc/cpuinfo)
    for word in abm avx avx2 bmi1 bmi2 f16c fma movbe; do
        case " $seen " in
            *" $word "*) ;;
            *) missing="$missing $word" ;;
        esac
    done
    if [ -n "$seen" ] && [ -n "$missing" ]; then
        preflight_finding FAILED CPU 'x86_64_v3, for which the image was compiled' "a CPU without$missing" 'its programs would end with SIGILL: use nodes of the partition main, or build it for these'
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

preflight() {
    {
        preflight_node "$image"
        printf 'preflight-passed\t%s\n' 'this machine meets all requirements'
    } 2>&1 | preflight_report || return 78
}

if ! preflight; then
    if [ "${HPCGEN_PREFLIGHT:-1}" != warn ]; then
        [ -z "${2:-}" ] || echo "$2: the command was not started; HPCGEN_PREFLIGHT=0 skips the preflight" >&2
        exit 78
    fi
    echo "${2:-preflight.sh}: continuing anyway: HPCGEN_PREFLIGHT=warn" >&2
fi
