"""A few training steps with PyTorch, data-parallel where there are several ranks, to prove that a job is one job.

Every rank trains the same small model on data of its own (DistributedDataParallel sums the gradients: over NCCL, RCCL
or oneCCL on GPUs, over Gloo on CPUs) and prints one line

    rank R size N device D loss X

RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT say which rank it is, as torchrun and torch_ranks.py set them;
without them it is the only one. Exit status 1: the loss did not fall, or the ranks ended with different weights. 3: the
job has another number of ranks than HPCGEN_RANKS says.
"""

import os
import sys

import torch
import torch.distributed as dist

STEPS = 20
BACKENDS = {"cuda": "nccl", "xpu": "xccl"}


def device_of(local_rank):
    """The GPU of this rank where there is one; a rank that sees only its own takes that."""
    for kind in BACKENDS:
        module = getattr(torch, kind, None)
        if module is not None and module.is_available():
            device = torch.device(kind, local_rank % module.device_count())
            module.set_device(device)
            return device
    return torch.device("cpu")


def train(rank, size, device):
    """First loss, last loss, and the weights."""
    torch.manual_seed(1000 + rank)  # the ranks start apart, so that the broadcast has work to do
    model = torch.nn.Linear(4, 1, bias=False).to(device)
    inputs = torch.randn(64, 4).to(device)
    targets = inputs @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]], device=device)
    several = size > 1
    trained = torch.nn.parallel.DistributedDataParallel(model) if several else model
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(trained(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1], model.weight.detach()


def agree(weights, size):
    """Whether all ranks have the same weights."""
    if size == 1:
        return True
    everywhere = [torch.empty_like(weights) for _ in range(size)]
    dist.all_gather(everywhere, weights)
    return all(float((other - weights).abs().max()) < 1e-5 for other in everywhere)


def main():
    """The exit status."""
    rank, size, local_rank = (int(os.environ.get(n, d)) for n, d in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0)))
    wanted = int(os.environ.get("HPCGEN_RANKS", "0"))
    if wanted and size != wanted:
        sys.stderr.write(f"expected {wanted} ranks, this job has {size}\n")
        return 3
    device = device_of(local_rank)
    if size > 1:
        dist.init_process_group(BACKENDS.get(device.type, "gloo"))
    first, last, weights = train(rank, size, device)
    same = agree(weights, size)
    # One write, so that the lines of several ranks do not mix.
    sys.stdout.write(f"rank {rank} size {size} device {device} loss {last:.6f}\n")
    sys.stdout.flush()
    if not same:
        sys.stderr.write(f"rank {rank}: the weights differ between the ranks\n")
    if size > 1:
        dist.destroy_process_group()
    return 0 if same and last < first else 1


if __name__ == "__main__":
    sys.exit(main())
