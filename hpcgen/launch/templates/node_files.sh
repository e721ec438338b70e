# What a job script puts on its nodes, in parts put together by node_files.py.
#: each_node
# What each node has for itself goes when the job ends.
each_node=(@{words})
node_place=@{folder}/hpcgen-$UID@{job}-$$
keeper='' placed=''
leave_nodes() {
    [ -n "$placed" ] || return 0
    if [ -n "$keeper" ]; then
        "${each_node[@]}" touch "$node_place/end" || true
        wait "$keeper" || true
    fi
    "${each_node[@]}" rm -rf --one-file-system "$node_place" || true
}
trap leave_nodes EXIT
#: auto
# Its size times the number of nodes says whether copies are quicker than what the nodes would read.
megabytes=$(($(stat -Lc %s "$image") * @{nodes} / 1000000))
if [ "$megabytes" -lt @{limit} ]; then
    stage=none
elif [ "$(stat -fc %T "${node_place%/*}")" = tmpfs ]; then
    stage=none
    echo "@{file_name}: stage: none: ${node_place%/*} takes memory here; --stage node copies there all the same" >&2
else
    echo "@{file_name}: stage: node: $megabytes MB for @{nodes} nodes together, @{limit} or more" >&2
fi
#: asked
if [ -d "$image" ]; then
    stage=none
    echo "@{file_name}: stage: none: $image is a folder, which is read where it is" >&2
fi
#: stage
stage=node
@{decided}
if [ "$stage" = node ]; then
    began=$SECONDS placed=yes
    if "${each_node[@]}" mkdir -m 700 "$node_place" &&
        { @{copy}"${each_node[@]}" cp -L -- "$image" "$node_place/"; }; then
        image=$node_place/${image##*/}
        echo "@{file_name}: stage: copied to $image of @{nodes} in $((SECONDS - began)) s" >&2
    else
        echo "@{file_name}: warning: the image was not copied to every node; it is read from $image" >&2
        "${each_node[@]}" rm -rf --one-file-system "$node_place" || true
    fi
fi
#: packed
# Packed data is mounted on each node until the job ends, or unpacked there where nothing mounts it for a user.
packed=(@{sources})
hold_packed() { # place, way, file ...
    local place=$1 way=$2 file target number=0 program
    mkdir -p -m 700 "$place" && [ -O "$place" ] || return
    program=$(command -v squashfuse_ll || command -v squashfuse) || way=unpack
    for file in "${@:3}"; do
        target=$place/data-$((number++))
        mkdir "$target"
        if [ "$way" = unpack ] || ! "$program" "$file" "$target"; then
            unsquashfs -n -f -d "$target" "$file" > /dev/null || { touch "$place/failed"; return 1; }
            echo "@{file_name}: $file is unpacked to $target of $HOSTNAME" >&2
        fi
    done
    touch "$place/ready"
    while [ ! -e "$place/end" ]; do sleep 0.5; done
    for target in "$place"/data-*; do
        fusermount3 -u "$target" || fusermount -u "$target" || umount "$target"
    done 2> /dev/null
    return 0
}
packed_ready() { # place
    local rounds=0
    while [ ! -e "$1/ready" ] && [ ! -e "$1/failed" ]; do
        [ -d "$1" ] || [ $((rounds += 1)) -lt 300 ] || return
        sleep 0.2
    done
    [ -e "$1/ready" ]
}
placed=yes
"${each_node[@]}" bash -c "$(declare -f hold_packed)"'; hold_packed "$@"' hold "$node_place" @{way} "${packed[@]}" &
keeper=$!
"${each_node[@]}" bash -c "$(declare -f packed_ready)"'; packed_ready "$1"' ready "$node_place" || {
    echo "@{file_name}: packed data could not be mounted or unpacked on every node: ${packed[*]}" >&2
    exit 66
}
