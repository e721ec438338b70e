
# The base images, from the bundle into ch-image's storage.
bases=(@{bases})
present=$(ch-image list)
for ((number = 0; number < ${#bases[@]}; number += 2)); do
    stored=${bases[number]} held=${bases[number + 1]}
    if ! grep -Fqx -e "$stored" <<< "$present"; then
        ch-image import "$bundle"/files/*/"$held.root.tar" "$stored"
    fi
done
options+=(--bind "$bundle:@{mount}")
