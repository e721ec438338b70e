# ch-image takes no digest and checks none: what it keeps of what it pulled is compared with the digests of the recipe.
# The configuration beside a pulled image says which of the manifests in its download cache are that image's; a manifest
# names the layers, which lie there too. Source: lib/pull.py, filesystem.py and image.py of Charliecloud 0.31 and 0.38.
check_bases() { # NAME DIGEST of each image
    local storage found
    storage=$(ch-image gestalt storage-path | tail -n 1) || storage=
    while [ $# -gt 1 ]; do
        found=$(pulled "$storage" "$1" "$2")
        case $found in
            "$2") ;;
            "") echo "note: whether $1 is $2 is not known: ch-image keeps no record of pulling it" >&2 ;;
            *)
                echo "error: ch-image pulled another $1 than the recipe names: it has $found, not $2" >&2
                return 65
                ;;
        esac
        shift 2
    done
}
pulled() { # STORAGE NAME DIGEST: the digest, or another one that fits the image no less; nothing if there is no record
    local held=${2//\//%} cache=$1/dlcache config manifest digest blob other=
    held=${held//:/+}
    config=$(sha256sum 2> /dev/null < "$1/img/$held/ch/config.pulled.json") || return 0
    for manifest in "$cache/$held%"*.manifest.json; do
        grep -qsF "\"sha256:${config%% *}\"" "$manifest" || continue
        digest=$(sha256sum < "$manifest")
        digest=sha256:${digest%% *}
        while read -r blob; do
            [ ! -e "$cache/$blob.tar.gz" ] || [ "$(sha256sum < "$cache/$blob.tar.gz")" = "$blob  -" ] ||
                digest="a layer that is not sha256:$blob"
        done < <(grep -oE 'sha256:[0-9a-f]{64}' "$manifest" | cut -d : -f 2)
        other=$digest
        [ "$digest" != "$3" ] || break
    done
    echo "$other"
}
