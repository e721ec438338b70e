"""A few training steps with DeepSpeed, whose optimizer states are divided among the ranks (ZeRO stage 1).

Every rank trains the same small model on data of its own and prints one line

    rank R size N stage 1 device D loss X

RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT say which rank it is; without them it is the only one. Exit
status 1: the loss did not fall, or the ranks ended with different weights. 3: the job has another number of ranks than
HPCGEN_RANKS says.
"""

import os
import sys

import deepspeed
import torch
import torch.distributed as dist

STEPS = 20
BACKENDS = {"cuda": "nccl", "xpu": "xccl"}
ALONE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
CONFIGURATION = {
    "train_micro_batch_size_per_gpu": 64,
    "optimizer": {"type": "Adam", "params": {"lr": 0.1, "torch_adam": True}},
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,
    "zero_force_ds_cpu_optimizer": False,
}


def train(rank, device):
    """First loss, last loss, and the weights."""
    torch.manual_seed(1000 + rank)
    model = torch.nn.Linear(4, 1, bias=False)
    inputs = torch.randn(64, 4).to(device)
    targets = inputs @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]], device=device)
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=CONFIGURATION)
    losses = []
    for _ in range(STEPS):
        loss = torch.nn.functional.mse_loss(engine(inputs), targets)
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    return losses[0], losses[-1], model.weight.detach().clone()


def main():
    """The exit status."""
    for name, value in ALONE.items():
        os.environ.setdefault(name, value)
    if os.environ["MASTER_ADDR"] == "127.0.0.1":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    rank, size, local_rank = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    wanted = int(os.environ.get("HPCGEN_RANKS", "0"))
    if wanted and size != wanted:
        sys.stderr.write(f"expected {wanted} ranks, this job has {size}\n")
        return 3
    device = torch.device("cpu")
    for kind in BACKENDS:
        module = getattr(torch, kind, None)
        if module is not None and module.is_available():
            device = torch.device(kind, local_rank % module.device_count())
            module.set_device(device)
    deepspeed.init_distributed(BACKENDS.get(device.type, "gloo"))
    first, last, weights = train(rank, device)
    everywhere = [torch.empty_like(weights) for _ in range(size)]
    dist.all_gather(everywhere, weights)
    same = all(float((other - weights).abs().max()) < 1e-5 for other in everywhere)
    # One write, so that the lines of several ranks do not mix.
    sys.stdout.write(f"rank {rank} size {size} stage 1 device {device} loss {last:.6f}\n")
    sys.stdout.flush()
    if not same:
        sys.stderr.write(f"rank {rank}: the weights differ between the ranks\n")
    dist.destroy_process_group()
    return 0 if same and last < first else 1


if __name__ == "__main__":
    sys.exit(main())
