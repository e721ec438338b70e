
# Everything that the build takes from outside comes from the bundle, which is checked first.
bundle=${HPCGEN_BUNDLE:-}
if [ "${1:-}" = --bundle ]; then
    bundle=${2:-}
    shift $(($# < 2 ? $# : 2))
fi
if [ ! -r "$bundle/SHA256SUMS" ]; then
    echo "build.sh: name the folder of the bundle: build.sh --bundle DIR" >&2
    exit 66
fi
bundle=$(cd "$bundle" && pwd)
if ! cmp -s "$bundle/hpcgen.lock" "$kit/hpcgen.lock"; then
    echo "build.sh: $bundle is the bundle of another lock than this kit's hpcgen.lock" >&2
    exit 65
fi
echo "build.sh: checking $bundle" >&2
if ! (cd "$bundle" && sha256sum --check --quiet --strict SHA256SUMS) >&2; then
    echo "build.sh: $bundle is damaged; copy it again, or ask: hpcgen bundle verify" >&2
    exit 65
fi

