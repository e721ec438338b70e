
# The base images, from the bundle into ch-image's storage; anew each time, as a stopped import leaves half an image.
bases=(@{bases})
for ((number = 0; number < ${#bases[@]}; number += 2)); do
    stored=${bases[number]} held=${bases[number + 1]}
    ch-image import "$bundle"/files/*/"$held.root.tar" "$stored"
done
options+=(--bind "$bundle:@{mount}")
