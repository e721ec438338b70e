
# The base images, from the bundle into ch-image's storage.
bases=(@{bases})
for ((number = 0; number < ${#bases[@]}; number += 2)); do
    stored=${bases[number]} held=${bases[number + 1]}
    if ! ch-image list | grep -Fqx -e "$stored"; then
        ch-image import "$bundle"/files/*/"$held.root.tar" "$stored"
    fi
done
options+=(--bind "$bundle:@{mount}")
