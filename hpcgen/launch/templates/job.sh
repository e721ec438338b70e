# The job script in parts, put together by script.py with a blank line between them.
#: top
#!/bin/bash@{shell_options}
@{directives}
@{account}
#
@{header}
#
@{usage}
#
# Why this layout:
@{reasons}
#: account
# ACCOUNT MISSING: this site wants one. Write it here as a line of its own:
# @{directive}YOUR-ACCOUNT
#: usage
# usage: @{file_name} [COMMAND …]   another command than the stack's own
#: usage_image
# HPCGEN_IMAGE names another image.
#: usage_preflight
# HPCGEN_PREFLIGHT=0 leaves the preflight out, HPCGEN_PREFLIGHT=warn starts the command whatever it finds.
#: usage_alone
# usage: @{file_name} [IMAGE]   in an allocation: what a job looks for on its nodes before it starts
# Exits with @{status} where something is missing.
#: modules
# Before `set -u`: a site's module function may read variables that are not set.
@{modules}
#: start
set -euo pipefail
@{start}
@{folder}

need() {
    if ! command -v "$1" > /dev/null; then
        echo "@{file_name}: $1 is not on PATH; it comes with the site's container engine or MPI" >&2
        exit 69
    fi
}
@{programs}
#: given
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
    echo "@{file_name}: there is no image $image@{todo}" >&2
    exit 66
fi
#: command
if [ "$#" -eq 0 ]; then
    set -- @{command}
fi
#: alone
# Without an allocation the ranks are started on this machine.
if [ -z "${SLURM_JOB_ID:-}${PBS_JOBID:-}" ]; then
    @{exports}
fi
#: gpu
# The GPU driver's libraries have to be in the image: ch-fromhost copies them there, on this system.
#: definition
case $image$folder in
    *['"\$:']*)
        echo "@{file_name}: the container engine cannot read a path with one of \" \\ \$ : in it: $image, $folder" >&2
        exit 65
        ;;
esac
# What srun reads to start the container: seen by all nodes, gone when the job ends.
edf=$(mktemp "$folder/edf-XXXXXX.toml")
trap 'rm -f "$edf"' EXIT
printf '%s\n' > "$edf" \
    @{lines}

#: container
container=(
    @{words}
)
#: preflight
# Preflight: do the nodes have what the image and the job count on? Looked for before the program starts, in seconds.
@{preflight}
