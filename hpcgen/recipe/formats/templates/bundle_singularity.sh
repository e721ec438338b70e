
# The definition file takes the kit's files and the base images from one folder.
work=$(mktemp -d)
trap 'rm -rf "$partial" "$work"' EXIT
context=$work
@{context}
ln -s "$bundle" "$work/@{link}"
kit=$work
options+=(--bind "$bundle:@{mount}:ro")
