# The function that starts each rank with its caches, in parts, put together by caches.py; it runs inside the container.
#: shared
# Where downloads are kept for all jobs. It must be a folder that is seen inside.
export HPCGEN_CACHE="${HPCGEN_CACHE:-${XDG_CACHE_HOME:-$({ echo @{folder}; } 2> /dev/null || true)}}"
#: function
# Starts each rank with its caches inside the container, where no variable names another place. Downloads are shared by all.
own_caches() { # a folder on the node, command
#: folder
    local shared=${HPCGEN_CACHE:-${XDG_CACHE_HOME:-$PWD/.cache}}
#: home
    local home=${HOME:-}
#: user
    [ -n "${@{moved}:-}${@{variable}:-}" ] || [ ! -e "$home/"@{path} ] || export @{variable}="$home/"@{path}
#: downloads
    # What is in the home directory already is used there.
    local each name downloads=(@{downloads})
    for each in "${downloads[@]}"; do
        name=${each%%=*}
        if [ -z "${!name:-}" ] && { [ ! -d "$home/${each#*=}" ] || [ -d "$shared/${each##*/}" ]; }; then
            mkdir -p "$shared/${each##*/}" && export "$name=$shared/${each##*/}"
        fi
    done
#: end
    shift
    exec "$@"
}
#: compiled
    # Code that is compiled at run time is each rank's own, on its node: ranks that share it crash.
    # What killed ranks left is no longer locked.
    local name own lock program='' told='' status
    find "$1" -maxdepth 1 -type d -user "$(id -u)" -name 'hpcgen-cache-*' -mmin +1 -exec flock -n {} rm -rf {} \; 2> /dev/null
    own=$(mktemp -d "$1/hpcgen-cache-XXXXXX") && exec {lock}< "$own" && flock -n "$lock"
    shift
    if [ -z "$own" ]; then
        echo "own_caches: the caches of this rank of $(uname -n) are where its program puts them" >&2
        exec "$@"
    fi
    @{kept}
    local compiled=(@{compiled})
    for name in "${compiled[@]}"; do
        [ -n "${!name:-}" ] || export "$name=$own/$name"
        mkdir -p "${!name}"
    done
    @{traps}
    # A program in the background would not be interrupted without this.
    (trap : INT QUIT; exec "$@") <&0 &
    program=$!
    # It may not have been interrupted by what came before it ran.
    [ -z "$told" ] || kill "$program" 2> /dev/null
    while told='' status=0; do
        wait "$program" || status=$?
        [ -n "$told" ] || break
    done
    @{keep}
    rm -rf "$own"
    exit "$status"
}
#: trap
trap 'told=1; [ -z "$program" ] || kill -s @{signal} "$program" 2> /dev/null' @{signal}
#: kept
# Kept for this image, kind of node and layout: code of one rank can be wrong for another.
# Under a launcher of MPI the batch system numbers what that starts on each node, not the ranks.
local kept rank=${PMI_RANK:-${PMIX_RANK:-${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}}}
kept=$(cat /opt/hpcgen/kit/plan.json /opt/hpcgen/kit/hpcgen.lock /etc/ld.so.cache 2> /dev/null | cksum)
kept=$shared/kept/${kept// /-}-@{target}-$HPCGEN_RANKS/$rank.tar
[ ! -r "$kept" ] || tar -C "$own" -xf "$kept"
#: keep
if [ "$status" = 0 ] && mkdir -p "${kept%/*}"; then
    tar -C "$own" -cf "$kept.$$" . && mv "$kept.$$" "$kept"
fi
