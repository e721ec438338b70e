import hydra
import torch

from weather.models.net import net
from weather.training.data import batches


def main():
    model = net().to("cuda")
    for batch in batches():
        model(batch.to("cuda"))


if __name__ == "__main__":
    main()
