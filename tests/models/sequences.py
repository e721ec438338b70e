"""Networks of PyTorch over time, with control flow, data-dependent shapes and buffers; each as in ``networks.py``."""

from __future__ import annotations

import torch
from networks import Of, seeded
from torch import nn
from torch.nn import functional

# Recurrent networks.


def lstm():
    """Its result is a sequence and a pair of states."""
    seeded(30)
    return nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)


def gru_time_first():
    seeded(31)
    return nn.GRU(4, 6)


def projected_lstm():
    seeded(32)
    return nn.LSTM(6, 8, proj_size=3, batch_first=True)


class UnrolledCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(6, 10)

    def forward(self, x):
        hidden = x.new_zeros(x.shape[0], 10)
        for step in range(x.shape[1]):
            hidden = self.cell(x[:, step], hidden)
        return hidden


def unrolled_cell():
    seeded(4)
    return UnrolledCell()


class Packed(nn.Module):
    """Sequences of their own lengths: the last state of each."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 5, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.rnn(packed)[1][0]


def packed_sequences():
    seeded(33)
    return Packed()


def last_step():
    seeded(34)
    return Of(
        lambda parts, x: parts["out"](parts["rnn"](x)[0][:, -1]),
        rnn=nn.RNN(5, 7, batch_first=True),
        out=nn.Linear(7, 2),
    )


@torch.jit.script
def decayed(x: torch.Tensor) -> torch.Tensor:
    """A loop that TorchScript keeps."""
    state = torch.zeros_like(x[:, 0])
    for step in range(x.size(1)):
        state = 0.5 * state + x[:, step]
    return state


def scripted_loop():
    return Of(lambda parts, x: decayed(x) * 2)


# Attention.


def encoder():
    seeded(35)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, x, padding):
        return self.attention(x, x, x, key_padding_mask=padding)


def padded_attention():
    seeded(36)
    return Masked()


def cross_attention():
    seeded(37)

    def function(parts, queries, memory):
        return parts["attention"](queries, memory, memory, need_weights=False)[0]

    return Of(function, attention=nn.MultiheadAttention(12, 2, batch_first=True))


class Causal(nn.Module):
    """Attention to the past, and places out of a table of 64."""

    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.randn(64, 8))
        self.project = nn.Linear(8, 24)

    def forward(self, x):
        x = x + self.places[: x.shape[1]]
        queries, keys, values = self.project(x).chunk(3, -1)
        return functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)


def causal_attention():
    seeded(38)
    return Causal()


# Lengths that a tracer takes for numbers.


def whitened_length():
    """A length as a number: the mean over time by hand."""
    return Of(lambda parts, x: x.sum(1) / len(x[0]) + torch.linspace(0, 1, x.shape[1]).sum())


def ramp():
    return Of(lambda parts, x: x * torch.arange(1, x.shape[1] + 1)[None, :, None] / x.shape[1])


def halves():
    """Two halves of a sequence, of which the first is longer if it is odd."""

    def function(parts, x):
        first, second = torch.chunk(x, 2, dim=1)
        return first.mean(1) - second.mean(1)

    return Of(function)


def every_step():
    return Of(lambda parts, x: sum(torch.tanh(each) * (at + 1) for at, each in enumerate(x.unbind(1))))


def windows():
    return Of(lambda parts, x: x.unfold(1, 4, 2).mean(-1))


def rolled():
    return Of(lambda parts, x: torch.roll(x, x.shape[1] // 2, 1) + x.flip(1))


def long_or_short():
    """Another way for sequences of more than eight steps."""
    return Of(lambda parts, x: x.mean(1) if x.shape[1] > 8 else x.amax(1))


def single_row():
    """Another way for a batch of one."""
    return Of(lambda parts, x: x - x.mean(0) if x.shape[0] > 1 else x)


def best_of_length():
    return Of(lambda parts, x: torch.topk(x, max(1, x.shape[1] // 2), dim=1)[0].sum(1))


# Control flow by values.


def branch_by_sum():
    return Of(lambda parts, x: x * 2 if x.sum() > 0 else x - 1)


def rare_branch():
    """Only values that random data hardly have take the other side."""
    return Of(lambda parts, x: x / x.abs().max() if x.abs().max() > 100 else x)


def halved_until_small():
    def function(parts, x):
        while x.abs().max() > 1:
            x = x / 2
        return x

    return Of(function)


def count_by_value():
    def function(parts, x, times):
        for _ in range(int(times[0])):
            x = x * 1.5
        return x

    return Of(function)


def branch_by_where():
    seeded(40)
    return Of(lambda parts, x: torch.where(x.sum(1, keepdim=True) > 0, parts["a"](x), -x), a=nn.Linear(5, 5))


def branch_by_cond():
    def function(parts, x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))

    return Of(function)


# Shapes by values.


def positive_values():
    return Of(lambda parts, x: x[x > 0])


def places_of_values():
    return Of(lambda parts, x: torch.nonzero(x > 0.5))


def sum_of_chosen():
    return Of(lambda parts, x: torch.masked_select(x, x > 0.25).sum())


def distinct():
    return Of(lambda parts, x: torch.unique(x, return_inverse=True, return_counts=True))


def repeated():
    return Of(lambda parts, x, counts: torch.repeat_interleave(x, counts, dim=0))


# Buffers and changes in place.


def changed_in_place():
    def function(parts, x):
        y = x.clone()
        y[y < 0] = 0
        y[:, 0] = 1
        y[:, 1:3] += x[:, 2:4]
        return y.mul_(2).add_(1)

    return Of(function)


class Counter(nn.Module):
    """It counts its calls, so that no two are alike."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x + self.calls


def counter():
    return Counter()


class Scratch(nn.Module):
    """A buffer that each call fills anew, and of which no call sees another's."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scratch", torch.zeros(64, 4))

    def forward(self, x):
        self.scratch.zero_()
        self.scratch[: x.shape[0]] = x.cumsum(0)
        return self.scratch[: x.shape[0]] * 2


def scratch():
    return Scratch()


class Hidden(nn.Module):
    """A memory of the last call, which two calls alike do not show: it keeps the greatest batch."""

    def __init__(self):
        super().__init__()
        self.register_buffer("most", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.most.copy_(torch.maximum(self.most, torch.tensor(x.shape[0])))
        return x * self.most


def hidden_memory():
    return Hidden()
