import einops
import torch


def net():
    return torch.nn.Linear(4, 4)
