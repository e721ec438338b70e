# The script that starts a program of an image as a command of the host, in parts, put together by command.py.
#: top
#!/bin/bash
# Starts a program of @{title} in its image, in the place of this process. Written by hpcgen @{version}.
#
# usage: @{usage}
#: modules
# Before `set -u`: a site's module function may read variables that are not set. Output belongs to the program.
if type @{verb} > /dev/null 2>&1; then
    {
        @{modules}
    } >&2
fi
#: connection
case ${1:-} in
    /*) ;;
    *)
        echo "@{file_name}: usage: @{usage}" >&2
        exit 64
        ;;
esac
connection=${1%/*}
case $connection in
    *[:,]*)
        echo "@{file_name}: container engines cannot bind a path with : or , in it: $connection" >&2
        exit 65
        ;;
esac
#: ranks
# How many ranks a launcher started on this node: they share one container, since they read each other's memory.
ranks=${MPI_LOCALNRANKS:-${OMPI_COMM_WORLD_LOCAL_SIZE:-}}
if [ -z "$ranks" ]; then
    ranks=1
    node=${SLURM_NODEID:-0}
    # Such as 2(x3),1: two on each of three nodes, one on the fourth.
    counts=${SLURM_STEP_TASKS_PER_NODE:-1},
    while [ -n "$counts" ]; do
        each=${counts%%,*} counts=${counts#*,} times=1
        case $each in *"(x"*) times=${each#*x} ;; esac
        times=${times%")"}
        if [ "$node" -lt "$times" ]; then
            ranks=${each%%"("*}
            break
        fi
        node=$((node - times))
    done
fi
joined=()
[ "$ranks" -le 1 ] || joined=(@{join})
#: between
# GPUs of several nodes send by the site's network, or the library of collectives stops. On one node these are not set: they
# would stop what needs no network. What the caller has set stays.
nodes=@{nodes} all=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-1}}
if [ "$nodes" -gt 1 ] || [ "$all" -gt "${OMPI_COMM_WORLD_LOCAL_SIZE:-${MPI_LOCALNRANKS:-$all}}" ]; then
    @{settings}
fi
#: terminal
terminal=
if [ -t 0 ] && [ -t 1 ]; then
    terminal=yes
fi
#: program
exec "${container[@]}" "$@"
#: kernel
exec "${container[@]}" @{words} "@{inside}/${1##*/}"
