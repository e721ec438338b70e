#!/bin/bash
#
# Job script of onnxruntime for workstation, partition main
# by hpcgen 0.1.0; made again by:
#   hpcgen render --site workstation --stack onnxruntime
#
# usage: run.sh [COMMAND …]   another command than the stack's own
# HPCGEN_IMAGE names another image.
#
# Why this layout:
#   nodes 1: nothing else was asked for
#   ranks per node 1: stack onnxruntime runs without MPI
#   threads per rank 8: 8 cores shared by 1 rank
#   time 01:00:00: default of workstation
#   memory: a job may use 16 GB of a node

set -euo pipefail
folder=$PWD

need() {
    if ! command -v "$1" > /dev/null; then
        echo "run.sh: $1 is not on PATH; it comes with the site's container engine or MPI" >&2
        exit 69
    fi
}
need docker

image=${HPCGEN_IMAGE:-onnxruntime:workstation}
if ! docker image inspect "$image" > /dev/null 2>&1; then
    echo "run.sh: there is no image $image: make it with build.sh, or set HPCGEN_IMAGE" >&2
    exit 66
fi

if [ "$#" -eq 0 ]; then
    set -- python3 /opt/onnxruntime/share/onnx_step.py
fi

export HPCGEN_RANKS=1
export OMP_NUM_THREADS=8

container=(
    docker run --rm
    --security-opt label=disable
    --user "$(id -u):$(id -g)" -e HOME=/tmp
    -v "$folder":/mnt/0 -w /mnt/0
    -e HPCGEN_RANKS
    -e OMP_NUM_THREADS
    "$image"
)
"${container[@]}" "$@"
