# The function that starts each rank, in parts, put together by binding.py; every image has bash, cut, sed and taskset.
#: function
# Starts each rank of a node inside the container, by the number that its launcher gave it there.
own_gpu() {
    local @{names}
    case ${@{local_rank}:-} in
        @{ranks}
        *)
            echo "own_gpu: @{local_rank} is '${@{local_rank}:-}', and should be 0 to @{last}: the rank has no GPU" >&2
            exit 78
            ;;
    esac
#: visible
    # The nth of the GPUs that the batch system has chosen, or of all.
    @{visible}=$(echo "${@{visible}:-@{every}}" | cut -d, -f"$nth")
    export @{visible}
#: cpus
    taskset -cp "$cpus" "$$" > /dev/null 2>&1
    seen=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$$/status")
    if [ "$seen" != "$cpus" ]; then
        echo "own_gpu: rank $@{local_rank} of $(uname -n) was to keep to CPUs $cpus, and has $seen" >&2
    fi
#: end
    exec "$@"
}
