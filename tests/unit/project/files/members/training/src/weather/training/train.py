import hydra
import torch
from weather.models.net import net
from weather.training.data import batches


@hydra.main(version_base=None)
def main(config):
    model = net().to("cuda")
    for batch in batches():
        torch.sum(model(batch.to("cuda"))).backward()


if __name__ == "__main__":
    main()
