#!/bin/sh
# What a network does, by OSU's benchmarks and HPL; every rank of a job runs this, with the same words.
#
#   net-test latency     between two ranks; of pairs, one half of the ranks to the other, where there are more
#   net-test bandwidth   likewise
#   net-test allreduce   of all ranks (the default)
#   net-test nccl [COLLECTIVE]  between GPUs, one for each rank: all_reduce (the default), sendrecv, alltoall and so on
#   net-test hpl [N [NB]]  a system of N equations (by default 4000 for each row of the grid of ranks) in blocks of NB (128)
#
# Further words go to OSU's or NVIDIA's program, such as -m 1:1048576 or -e 8G. What is printed is what the programs print. A job's
# HPCGEN_RANKS says how many ranks there are: one program of MPI is started for each, as they are.
set -eu
osu=/opt/osu/bin
ranks=${HPCGEN_RANKS:-0}
what=${1:-allreduce}
[ $# -eq 0 ] || shift

stop() {
    echo "net-test: $1" >&2
    exit 2
}

[ "$ranks" -ge 2 ] || stop "HPCGEN_RANKS is $ranks; at least 2 ranks are needed"
pairs() { # OSU's program for two ranks, and for pairs
    if [ "$ranks" -eq 2 ]; then
        echo "$osu/$1"
    elif [ $((ranks % 2)) -eq 0 ]; then
        echo "$osu/$2"
    else
        stop "$what is measured between pairs, and $ranks ranks are an odd number"
    fi
}

case $what in
latency)
    program=$(pairs osu_latency osu_multi_lat)
    exec "$program" "$@"
    ;;
bandwidth)
    program=$(pairs osu_bw osu_mbw_mr)
    exec "$program" "$@"
    ;;
allreduce) exec "$osu/osu_allreduce" "$@" ;;
nccl)
    collective=all_reduce
    case ${1:-} in
    [a-z]*)
        collective=$1
        shift
        ;;
    esac
    program=/opt/nccl_tests/bin/${collective}_perf
    [ -x "$program" ] || stop "there is no $program; the stack net-test-gpu has NVIDIA's benchmarks"
    # It takes the GPU with the number of the rank on its node, and a rank may see no other than its own.
    case ${CUDA_VISIBLE_DEVICES:-all} in
    all | *,*) ;;
    *) export NCCL_TESTS_DEVICE=0 ;;
    esac
    exec "$program" -b 8 -e 1G -f 2 -g 1 "$@"
    ;;
hpl) ;;
*) stop "'$what' is none of latency, bandwidth, allreduce, nccl, hpl" ;;
esac

# The grid of ranks is as square as their number allows.
rows=1
tried=1
while [ $((tried * tried)) -le "$ranks" ]; do
    [ $((ranks % tried)) -ne 0 ] || rows=$tried
    tried=$((tried + 1))
done
size=${1:-$((4000 * rows))}
block=${2:-128}
folder=$(mktemp -d)
# HPL reads HPL.dat where it is started. A rank of a remote node has no other way to it than a file of its own.
cd "$folder"
cat >HPL.dat <<END
HPL of net-test
written by net-test for this job alone
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
$size        Ns
1            # of NBs
$block       NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
$rows        Ps
$((ranks / rows)) Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
END
status=0
/opt/hpl/bin/xhpl || status=$?
rm -rf "$folder"
exit "$status"
