"""Prove one part of PyTorch; exit status 1 if it does not hold.

torch_check.py convolution [oneDNN]   forward and backward against sums written out; with oneDNN, that it did the work
torch_check.py ranks                  two processes on this machine add tensors over Gloo
torch_check.py compile                torch.compile makes a program that computes the same
torch_check.py gpu [sm_XY or gfxXYZ]  a product on the GPU, and that this PyTorch has code for it
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

VERBOSE = {"ONEDNN_VERBOSE": "1", "DNNL_VERBOSE": "1", "MKLDNN_VERBOSE": "1"}


def far(found, wanted):
    """How far two tensors are from each other, as a part of the largest value."""
    return float((found.double().cpu() - wanted).abs().max() / wanted.abs().max())


def convolution(*asked):
    """A convolution and its gradients, against products of unfolded matrices in double precision."""
    if asked:
        return convolution_by_onednn()
    torch.manual_seed(1)
    pictures = torch.randn(4, 8, 16, 16).requires_grad_()
    kernels = torch.randn(16, 8, 3, 3).requires_grad_()
    found = torch.nn.functional.conv2d(pictures, kernels, padding=1)
    (found * found).sum().backward()
    columns = torch.nn.functional.unfold(pictures.detach().double(), 3, padding=1)
    matrix = kernels.detach().double().reshape(16, -1)
    wanted = matrix @ columns
    of_kernels = (2 * wanted @ columns.transpose(1, 2)).sum(0).reshape(16, 8, 3, 3)
    of_pictures = torch.nn.functional.fold(matrix.t() @ (2 * wanted), (16, 16), 3, padding=1)
    worst = max(
        far(found.detach(), wanted.reshape(4, 16, 16, 16)),
        far(kernels.grad, of_kernels),
        far(pictures.grad, of_pictures),
    )
    print(f"convolution, forward and backward, differs by {worst:.1e}")
    return worst < 1e-4


def convolution_by_onednn():
    """The same in a process that says what oneDNN does."""
    words = [sys.executable, str(Path(__file__).resolve()), "convolution"]
    done = subprocess.run(words, stdout=subprocess.PIPE, env=dict(os.environ, **VERBOSE))
    output = done.stdout.decode().splitlines()
    lines = [line for line in output if "_verbose" in line and ",exec," in line]
    lines = [line for line in lines if ",convolution," in line]
    backward = [line for line in lines if ",backward_" in line]
    print(output[-1] if output else "no output")
    print("oneDNN did", len(lines), "convolutions,", len(backward), "of them backward")
    return done.returncode == 0 and 0 < len(backward) < len(lines)


def ranks(*asked):
    """Two processes, each of which adds its number plus one."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, str(Path(__file__).resolve()), "rank", str(Path(folder, "meet"))]
        started = [subprocess.Popen([*words, str(rank)]) for rank in range(2)]
        return [each.wait(timeout=300) for each in started] == [0, 0]


def rank(place, number):
    """One of them."""
    import torch.distributed as dist

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=int(number), world_size=2)
    total = torch.full((1000,), float(number) + 1.0)
    dist.all_reduce(total)
    dist.barrier()
    dist.destroy_process_group()
    if number == "0":
        print("two ranks over Gloo: 1 + 2 =", float(total[0]))
    return bool((total == 3.0).all())


def compile(*asked):
    """A function that is worth fusing, compiled and as it is."""

    def function(values):
        return (torch.sin(values) ** 2 + torch.cos(values) ** 2).sum(dim=1) + values.mean(dim=1)

    values = torch.randn(64, 1000)
    worst = far(torch.compile(function)(values), function(values.double()))
    print(f"torch.compile differs by {worst:.1e}")
    return worst < 1e-4


def gpu(code=""):
    """A product on the GPU; ``code`` is what the partition's GPU needs."""
    values = torch.randn(512, 512)
    kind = "cuda" if torch.cuda.is_available() or not hasattr(torch, "xpu") else "xpu"
    found = values.to(kind) @ values.to(kind)
    worst, module = far(found, values.double() @ values.double()), getattr(torch, kind)
    known = torch.cuda.get_arch_list()
    print(f"product on {module.get_device_name(0)} differs by {worst:.1e}, code for", *known)
    return worst < 1e-2 and (not code or has_code(code, known))


def has_code(code, known):
    """Whether code for one of these runs on this GPU: the same, or an older one of the same generation."""
    if not code.startswith("sm_"):
        return code in [name.split(":")[0] for name in known]
    numbers = [int("".join(filter(str.isdigit, name))) for name in known if name.startswith("sm_")]
    wanted = int(code[3:])
    return any(wanted // 10 == number // 10 and number <= wanted for number in numbers)


def main():
    """The exit status."""
    parts = {"convolution": convolution, "ranks": ranks, "rank": rank, "compile": compile, "gpu": gpu}
    return 0 if parts[sys.argv[1]](*sys.argv[2:]) else 1


if __name__ == "__main__":
    sys.exit(main())
