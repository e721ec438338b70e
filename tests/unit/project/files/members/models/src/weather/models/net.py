import einops
import torch


def net():
    return torch.nn.Linear(4, 4)


def flat(field):
    return einops.rearrange(field, "x y -> (x y)")
