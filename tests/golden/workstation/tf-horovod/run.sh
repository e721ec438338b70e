#!/bin/bash
#
# job script of tf-horovod for workstation, partition main: tensorflow 2.15.1, horovod 0.28.1, mpich 4.3.2 on ubuntu 22.04
# made by hpcgen 0.2.0: hpcgen render --site workstation --stack tf-horovod
# why these versions: plan.json next to this file, or the same command with plan in place of render
# layout: 1 node × 1 rank × 8 threads
#   nodes 1: the default
#   ranks per node 1: no layout fits, so one
#   threads per rank 8: 8 cores shared by 1 rank
#   time 01:00:00: default of workstation
#   memory: a job may use 16 GB of a node
# usage: run.sh [COMMAND …]      HPCGEN_IMAGE: another image      HPCGEN_PREFLIGHT=0|warn

set -euo pipefail
folder=$PWD
command -v docker > /dev/null || { echo 'run.sh: docker is not on PATH; it comes with the container engine of the site' >&2; exit 69; }

image=${HPCGEN_IMAGE:-tf-horovod:workstation}
if ! docker image inspect "$image" > /dev/null 2>&1; then
    echo "run.sh: there is no image $image: make it with build.sh, or set HPCGEN_IMAGE" >&2
    exit 66
fi

[ "$#" -gt 0 ] || set -- python3 /opt/horovod/share/step.py

export HPCGEN_RANKS=1
export OMP_NUM_THREADS=8
export TF_NUM_INTEROP_THREADS=8
export TF_NUM_INTRAOP_THREADS=8

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

container=(
    docker run --rm
    --security-opt label=disable
    --user "$(id -u):$(id -g)" -e HOME=/tmp
    --ipc=host
    -v "$folder":/mnt/0 -w /mnt/0
    -e HPCGEN_RANKS
    -e OMP_NUM_THREADS
    -e TF_NUM_INTEROP_THREADS
    -e TF_NUM_INTRAOP_THREADS
    -e HPCGEN_CACHE
    -e KERAS_HOME
    -e HYDRA_BOOTSTRAP=fork
    -e I_MPI_HYDRA_BOOTSTRAP=fork
    "$image"
    mpiexec -n 1
    /bin/bash -c "$(declare -f own_caches); own_caches \"\$@\"" own_caches /tmp
)

# Do the nodes have what the image and the job rely on? Takes seconds; if not, the job ends here with 78.
preflight=$(dirname "$0")/preflight.sh
if [ -r "$preflight" ]; then
    bash "$preflight" "$image" run.sh "${container[@]}"
else
    echo "run.sh: preflight skipped: there is no $preflight" >&2
fi

"${container[@]}" "$@"
