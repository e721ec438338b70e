"""Models of PyTorch that are hard to convert, or cannot be."""

import torch
from torch import nn


class Loop(nn.Module):
    """Unrolled by a tracer, for the length that it saw."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(6, 10)

    def forward(self, x):
        hidden = x.new_zeros(x.shape[0], 10)
        for step in range(x.shape[1]):
            hidden = self.cell(x[:, step], hidden)
        return hidden


class TracedLoop(Loop):
    """The same, where torch.export refuses it."""

    def forward(self, x):
        if x.sum() < -1e30:
            return self.cell(x[:, 0], x.new_zeros(x.shape[0], 10))
        return super().forward(x)


class Threshold(nn.Module):
    """Another branch from a length on that no trial would meet by chance."""

    def forward(self, x):
        return x * 2 if x.shape[1] > 40 else x + 1


class Squeezed(nn.Module):
    """A batch of one loses its axis."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 1)

    def forward(self, x):
        return self.layer(x).squeeze()


class Nested(nn.Module):
    def forward(self, x):
        return {"logits": x * 2, "hidden": [x + 1, (x.sum(-1), None)], "count": 3}


class Spectrum(nn.Module):
    def forward(self, x):
        return torch.fft.rfft(x, dim=-1).abs()


class Complex(nn.Module):
    def forward(self, x):
        return torch.fft.rfft(x, dim=-1)


class NonZero(nn.Module):
    def forward(self, x):
        return torch.nonzero(x > 0.5)


class Counting(nn.Module):
    """Writes into a buffer that decides nothing."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return self.layer(x)


class Remembering(Counting):
    def forward(self, x):
        self.calls += 1
        return self.layer(x) + self.calls


class Double(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3).double()

    def forward(self, x):
        return torch.linalg.vector_norm(self.layer(x), dim=-1)


class Convolution(nn.Module):
    """Takes images of multiples of four alone."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.further = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.up = nn.Sequential(nn.ConvTranspose2d(8, 8, 2, stride=2), nn.BatchNorm2d(8))

    def forward(self, image):
        high = self.down(image).relu()
        return torch.cat([high, self.up(self.further(high))], 1).mean((2, 3))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.layer(x)


class TimeFirst(nn.Module):
    """torch.export takes its length for a constant; PyTorch's own checks of shapes are choices where it is traced."""

    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(6, 8)

    def forward(self, x):
        return self.layer(x)[0]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.places = nn.Embedding(50, 16), nn.Embedding(24, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, words):
        places = torch.arange(words.shape[1], device=words.device)
        return self.encoder(self.embedding(words) + self.places(places))


class Special(nn.Module):
    def forward(self, x):
        return torch.special.bessel_j0(x)


class Scripted(nn.Module):
    """Keeps its loop over the axis as TorchScript."""

    def forward(self, x):
        total = x[:, 0]
        for step in range(1, x.shape[1]):
            total = total * 0.5 + x[:, step]
        return total


class Counted(nn.Module):
    """Keeps a number of Python from run to run."""

    runs = 0

    def forward(self, x):
        self.runs += 1
        return x * self.runs


def made(kind):
    torch.manual_seed(4)
    module = globals()[kind]()
    return torch.jit.script(module) if kind == "Scripted" else module


def bert():
    from transformers import BertConfig, BertModel

    torch.manual_seed(4)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}
    return BertModel(BertConfig(vocab_size=99, max_position_embeddings=64, **sizes))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(4)
    return GPT2LMHeadModel(GPT2Config(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4))
