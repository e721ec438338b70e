
# The base images, from the bundle into the engine's store; docker reads them where they are.
bases=(@{bases})
options+=(--build-context "bundle=$bundle")
# Not in the recipe: buildah before 1.30 has no RUN --network. Its isolation chroot takes no other network than the
# host's.
if [ "${BUILDAH_ISOLATION:-}" != chroot ]; then
    options+=(--network none)
fi
# Else podman and buildah ask localhost for a newer base: its name says that this is its registry.
[ "$(basename "$engine")" = docker ] || options+=(--pull=never)
for ((number = 0; number < ${#bases[@]}; number += 2)); do
    stored=${bases[number]} held=${bases[number + 1]}
    case $(basename "$engine") in
        docker) options+=(--build-context "$stored=oci-layout://$bundle/images:$held") ;;
        *)
            # Pulled, it is called as the path is, which must then be a name that an image can have; or, by buildah 1.43,
            # as the layout calls it.
            "$engine" tag "$(cd "$bundle" && "$engine" pull --quiet "oci:images:$held" | tail -n 1)" "$stored"
            for name in localhost/images "docker.io/library/$held"; do
                "$engine" rmi "$name" > /dev/null 2>&1 || true
            done
            ;;
    esac
done
