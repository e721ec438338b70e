# The job script in parts, put together by script.py with a blank line between them.
#: top
#!/bin/bash@{shell_options}
@{directives}
@{account}
@{before}
@{offered}
#
@{header}
# @{layout}
@{reasons}
# @{usage}
#: account
# This site requires an account; make this line a directive: @{directive}YOUR-ACCOUNT
#: before
# Before it is submitted, in the same shell: @{before}
#: offered
# Each node sets the image up once, not each rank, if these lines become directives with the image that is started:
@{lines}
#: modules
# Before `set -u`: a site's module function may read variables that are not set.
@{before}
@{modules}
#: modules_alone
# A job has loaded its modules already.
if [ -z "${2:-}" ]; then
    @{modules}
fi
#: start
set -euo pipefail
@{start}
@{folder}
@{user}
@{programs}
#: program
command -v @{program} > /dev/null || { echo @{message} >&2; exit 69; }
#: given
[ "${HPCGEN_PREFLIGHT:-1}" != 0 ] || exit 0
HPCGEN_IMAGE=${1:-${HPCGEN_IMAGE:-}}
#: first_image
image=${HPCGEN_IMAGE:-}
if [ -z "$image" ]; then
    for image in @{images}; do
        if [ -e "$image" ]; then
            break
        fi
    done
fi
#: image_missing
if @{missing}; then
    echo "@{file_name}: @{told}" >&2
    exit 66
fi
#: no_command
if [ "$#" -eq 0 ]; then
    echo @{message} >&2
    exit 64
fi
#: command
[ "$#" -gt 0 ] || set -- @{command}
#: alone
# Without an allocation the ranks are started on this machine.
if [ -z "${SLURM_JOB_ID:-}${PBS_JOBID:-}" ]; then
    @{exports}
fi
#: gpu
# The GPU driver's libraries have to be in the image: ch-fromhost copies them there, on this system.
#: file_systems
# The site's file systems that this node has are seen inside in their own place.
places=(@{paths})
file_systems=()
for path in "${places[@]}"; do
    [ ! -d "$path" ] || file_systems+=(@{words})
done
#: data_variables
for name in @{names}; do
    [ -n "${!name:-}" ] || { echo "@{file_name}: $name has no value here, and a bind names it" >&2; exit 66; }
done
#: data
# Data of the host that is seen inside.
@{variables}
for path in @{sources}; do
    [ -e "$path" ] || { echo "@{file_name}: $path, which is to be bound, is not on $HOSTNAME" >&2; exit 66; }
    case $path in *[:,]*) echo "@{file_name}: engines read : and , in $path as separators" >&2; exit 66 ;; esac
done
#: model_store
# Where models and data sets are before the job starts, each in a folder that is named by its content.
export HPCGEN_MODELS="${HPCGEN_CACHE:-${XDG_CACHE_HOME:-@{folder}}}/@{below}"
#: models
for path in @{sources}; do
    [ -e "$path" ] || { echo "@{file_name}: $path is not on $HOSTNAME; hpcgen data fetch brings it" >&2; exit 66; }
    # When it was used last, for `hpcgen clean models`.
    touch -c "$path" 2> /dev/null || true
done
#: hub
# Where the library of the Hugging Face hub finds them by name: what they are called there, commit, branch, place.
HPCGEN_HUB="$HPCGEN_MODELS/@{folder}"
# Somebody else may have fetched them.
{ mkdir -p "$HPCGEN_HUB" && [ -w "$HPCGEN_HUB" ]; } 2> /dev/null || HPCGEN_HUB="$PWD/.cache/@{below}/@{folder}"
while read -r name commit branch place; do
    link=$HPCGEN_HUB/$name/snapshots/$commit main=$HPCGEN_HUB/$name/refs/main
    mkdir -p "${link%/*}" "${main%/*}" || exit 66
    # Another job may make the same one now.
    [ -L "$link" ] || ln -sn "$place" "$link" 2> /dev/null || [ -L "$link" ] || {
        echo "@{file_name}: $link cannot be made" >&2
        exit 66
    }
    [ "$branch" != main ] || [ "$(cat "$main" 2> /dev/null)" = "$commit" ] || printf %s "$commit" > "$main" || exit 66
done << 'END'
@{entries}
END
touch -c "$HPCGEN_HUB" 2> /dev/null || true
#: definition
case @{checked} in
    *[@{signs}]*)
        echo "@{file_name}: the container engine cannot read a path with one of" @{shown} "in it: $image, $folder" >&2
        exit 65
        ;;
esac
# What srun reads to start the container: seen by all nodes, gone when the job ends.
edf=$(mktemp "$folder/edf-XXXXXX.toml")
trap 'rm -f "$edf"@{also}' EXIT
printf '%s\n' > "$edf" \
    @{lines}

#: before_container
# Ranks of a node start together: the first makes the folder where the image is mounted, for which they would race.
#: container
container=(
    @{words}
)
#: launch
# Ranks are tried by the line of the job script that calls, as somebody may have changed it there.
launch=(@{outer}"${container[@]}")
[ "$#" -lt 3 ] || launch=("${@:3}")
#: preflight
# Do the nodes have what the image and the job rely on? Takes seconds; if not, the job ends here with @{status}.
preflight=@{place}
if [ -r "$preflight" ]; then
    bash "$preflight" "$image" @{file_name} @{outer}"${container[@]}"
else
    echo "@{file_name}: preflight skipped: there is no $preflight" >&2
fi
#: checkpoint
alone=(
    @{words}
)
# Called @{seconds} s before the time limit. The program goes on meanwhile.
checkpoint() {
    told=1
    echo "@{file_name}: the time limit is near: checkpoint" >&2
    if "${alone[@]}" @{command}; then
        echo "@{file_name}: checkpoint written" >&2
        @{again}
    else
        echo "@{file_name}: the checkpoint command ended with status $?" >&2
    fi
}
trap checkpoint USR1
attended() {
    local program told status
    @{outer}"${container[@]}" "$@" &
    program=$!
    while true; do
        told=
        status=0
        wait "$program" || status=$?
        # A signal ends the waiting, not the program.
        [ -n "$told" ] || return "$status"
    done
}
#: host_before
# Outside of the image, once.
@{words}
#: host_afterwards
# Outside of the image, once, whatever became of the program, whose status the job has.
afterwards() {
    local ended=$?
    trap - EXIT
    rm -f "${edf:-}"
    @{also}
    @{words} || true
    exit "$ended"
}
trap afterwards EXIT
#: steps
# The steps are started one after the other, each by the whole launch line; the first that fails ends the job.
step() { # name, command
    local status=0 began=$SECONDS step
    step="$1 ($((number += 1)) of @{count})"
    shift
    echo "@{mark} $(date -u +%Y-%m-%dT%H:%M:%SZ) $step begins" >&2
    @{run} || status=$?
    echo "@{mark} $(date -u +%Y-%m-%dT%H:%M:%SZ) $step ended with status $status after $((SECONDS - began)) s" >&2
    [ "$status" = 0 ] || exit "$status"
}
if [ "$#" -gt 0 ]; then
    @{run}
    exit
fi
number=0
@{steps}
#: plain_output
# The lines of the ranks are read here, so none of the caller's variables may label or redirect them.
unset @{names}
#: checks
@{functions}
