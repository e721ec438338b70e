"""A few training steps with Horovod and MXNet, one process per rank, to prove that a job is one job.

Every rank trains the same small model on data of its own and prints one line

    rank R size N loss X

Exit status 1: the loss did not fall, or the ranks ended with different weights. 3: the job has another
number of ranks than HPCGEN_RANKS says, because some launchers silently start that many jobs of one rank.
"""

import os
import sys

import horovod.mxnet as hvd
import mxnet as mx
from mxnet import autograd, gluon

STEPS = 20


def train(device):
    """First loss, last loss, and whether all ranks have the same weights in the end."""
    mx.random.seed(1000 + hvd.rank())  # the ranks start apart, so that the broadcast has work to do
    model = gluon.nn.Dense(1, use_bias=False, in_units=4)
    model.initialize(mx.init.Normal(1.0), ctx=device)
    inputs = mx.nd.random.normal(shape=(64, 4), ctx=device)
    targets = mx.nd.dot(inputs, mx.nd.array([[1.0], [-2.0], [3.0], [0.5]], ctx=device))
    parameters = model.collect_params()
    hvd.broadcast_parameters(parameters, root_rank=0)
    trainer = hvd.DistributedTrainer(parameters, "sgd", {"learning_rate": 0.1})
    criterion = gluon.loss.L2Loss()
    losses = []
    for _ in range(STEPS):
        with autograd.record():
            loss = criterion(model(inputs), targets)
        loss.backward()
        trainer.step(len(inputs))
        losses.append(float(loss.mean().asscalar()))
    everywhere = hvd.allgather(model.weight.data(device), name="weights").asnumpy()
    same = bool(abs(everywhere - everywhere[:1]).max() < 1e-5)
    return losses[0], losses[-1], same


def main():
    """The exit status."""
    hvd.init()
    device = mx.gpu(hvd.local_rank() % mx.context.num_gpus()) if mx.context.num_gpus() else mx.cpu()
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
