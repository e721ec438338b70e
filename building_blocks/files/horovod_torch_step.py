"""A few training steps with Horovod and PyTorch, one process per rank, to prove that a job is one job.

Every rank trains the same small model on data of its own and prints one line

    rank R size N loss X

Exit status 1: the loss did not fall, or the ranks ended with different weights. 3: the job has another
number of ranks than HPCGEN_RANKS says, because some launchers silently start that many jobs of one rank.
"""

import os
import sys

import horovod.torch as hvd
import torch

STEPS = 20


def train(device):
    """First loss, last loss, and whether all ranks have the same weights in the end."""
    torch.manual_seed(1000 + hvd.rank())  # the ranks start apart, so that the broadcast has work to do
    model = torch.nn.Linear(4, 1, bias=False).to(device)
    inputs = torch.randn(64, 4).to(device)
    targets = inputs @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]], device=device)
    plain = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    everywhere = hvd.allgather(model.weight.detach(), name="weights")
    same = bool((everywhere - everywhere[:1]).abs().max() < 1e-5)
    return losses[0], losses[-1], same


def main():
    """The exit status."""
    hvd.init()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", hvd.local_rank() % torch.cuda.device_count())
        torch.cuda.set_device(device)
    wanted = int(os.environ.get("HPCGEN_RANKS", "0"))
    if wanted and hvd.size() != wanted:
        sys.stderr.write(f"expected {wanted} ranks, this job has {hvd.size()}\n")
        return 3
    first, last, same = train(device)
    # One write, so that the lines of several ranks do not mix.
    sys.stdout.write(f"rank {hvd.rank()} size {hvd.size()} loss {last:.6f}\n")
    sys.stdout.flush()
    if not same:
        sys.stderr.write(f"rank {hvd.rank()}: the weights differ between the ranks\n")
    return 0 if same and last < first else 1


if __name__ == "__main__":
    sys.exit(main())
