# ch-image's cache knows what was imported at most by its name (lib/build_cache.py, adopt; 0.31 not even by that), so it
# would take the steps of another image of the name for those of this one. It is told which one it is by an argument:
# names, sizes and times of its files, as a hash. What was pulled it knows.
base_words() { # NAME ARGUMENT of each image: words for ch-image build; an image with a digest has no ARGUMENT
    local storage held found words=()
    storage=$(ch-image gestalt storage-path | tail -n 1) || storage=
    while [ $# -gt 1 ]; do
        held=${1//\//%}
        held=${held//:/+}
        case $(git -C "$storage/bucache" log -n 1 --format=%s "refs/heads/$held" 2> /dev/null) in
            PULL*) found= ;;
            *) found=$(listing "$storage/img/$held") ;;
        esac
        if [ -n "$found" ] && [ -n "$2" ]; then
            words+=(--build-arg "$2=$found")
        elif [ -n "$found" ]; then
            echo "note: $1 was imported, not pulled: no step of it comes from the cache" >&2
            words+=(--rebuild)
        fi
        shift 2
    done
    echo "${words[*]}"
}
listing() { # FOLDER of an image, without what ch-image puts there; nothing if there is none
    [ ! -d "$1" ] || find "$1" -path "$1/ch" -prune -o -type f ! -name '.git*' -printf '%P %s %T@\n' |
        LC_ALL=C sort | sha256sum | cut -c -64
}
