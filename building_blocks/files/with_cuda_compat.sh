#!/bin/sh
# Starts a command with the newer CUDA libraries of this folder, on a node whose driver is of an older branch.
# Under a driver as new as they are, or a newer one, the node's own serve it.
here=$(dirname "$0")
seen=/proc/driver/nvidia/version
branch=$(sed -n 's/.*Kernel Module[^.]* \([0-9]\{3,\}\)\..*/\1/p' "$seen" 2> /dev/null | head -n 1)
if [ -n "$branch" ] && [ "$branch" -lt "$(cat "$here/branch")" ]; then
    export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
exec "$@"
