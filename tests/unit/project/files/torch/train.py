import os

import torch
from torch.nn.parallel import DistributedDataParallel


def main():
    torch.distributed.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(1, 1).cuda(int(os.environ["LOCAL_RANK"])))
    print(model)


if __name__ == "__main__":
    main()
