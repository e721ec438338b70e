import torch


def batches():
    yield torch.zeros(2, 4)
