"""Networks of PyTorch without recurrence: convolutions, normalisation, embeddings, numbers of other kinds, outputs.

Each function returns a module with weights of its own seed; ``pytorch.yaml`` says what goes in.
"""

from __future__ import annotations

import collections
import math

import torch
from torch import nn
from torch.nn import functional


class Of(nn.Module):
    """A module that computes a function, with modules of its own below ``parts``."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        self.parts = nn.ModuleDict(parts)

    def forward(self, *given):
        return self.function(self.parts, *given)


def seeded(seed):
    torch.manual_seed(seed)


# Convolutions.


def cnn():
    seeded(1)
    features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    model = nn.Sequential(features, nn.Flatten(), nn.Linear(8 * 8 * 8, 10))
    # Statistics as after training.
    features[1].running_mean.normal_()
    features[1].running_var.uniform_(0.5, 2)
    return model


def fully_convolutional():
    seeded(2)
    return nn.Sequential(nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.GELU(), nn.Conv2d(6, 2, 1), nn.Sigmoid())


def adaptive_pool():
    """Bins of another width for another size of image."""
    seeded(3)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d((3, 3)), nn.Flatten(), nn.Linear(36, 5))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(4, 4, 3, padding=1)
        self.up = nn.Conv2d(6, 2, 3, padding=1)

    def forward(self, x):
        low = torch.relu(self.mid(torch.relu(self.down(x))))
        high = functional.interpolate(low, size=x.shape[-2:], mode="bilinear", align_corners=False)
        return self.up(torch.cat([high, x], 1))


def unet():
    seeded(4)
    return UNet()


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(5, 8, 3, dilation=2)
        self.second = nn.Conv1d(8, 3, 2)

    def forward(self, x):
        x = torch.tanh(self.first(functional.pad(x, (4, 0))))
        return self.second(functional.pad(x, (1, 0)))


def causal_convolution():
    seeded(5)
    return Causal()


def volumes():
    seeded(6)
    return nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.LeakyReLU(), nn.ConvTranspose3d(4, 2, 2, stride=2))


def shuffled_pixels():
    seeded(7)
    return nn.Sequential(
        nn.Conv2d(3, 3, 3, padding=1, groups=3), nn.Conv2d(3, 12, 1), nn.PixelShuffle(2), nn.Hardswish()
    )


def resampled():
    """A grid of places, between -1 and 1 and beyond, at which an image is read."""
    return Of(lambda parts, image, grid: functional.grid_sample(image, grid, padding_mode="border", align_corners=True))


def bicubic():
    return Of(lambda parts, x: functional.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=False))


# Normalisation.


def batch_statistics():
    """Batch normalisation without running statistics: it takes those of the batch, in evaluation too."""
    seeded(8)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Tanh())


class KeptTraining(nn.Sequential):
    def train(self, mode=True):
        super().train(mode)
        self[1].train(True)
        return self


def batch_norm_kept_in_training():
    """One layer stays in training whatever mode is asked for, as its authors want it."""
    seeded(9)
    return KeptTraining(nn.Linear(6, 8), nn.BatchNorm1d(8, momentum=0.0), nn.ReLU())


def group_and_instance_norm():
    seeded(10)
    return nn.Sequential(nn.Conv2d(4, 8, 3), nn.GroupNorm(4, 8), nn.SiLU(), nn.InstanceNorm2d(8, affine=True))


def parametrised_weights():
    seeded(11)
    first = nn.utils.parametrizations.weight_norm(nn.Linear(7, 9))
    second = nn.utils.parametrizations.spectral_norm(nn.Linear(9, 3))
    return nn.Sequential(first, nn.LayerNorm(9), nn.ELU(), second, nn.RMSNorm(3))


# Embeddings.


def embedded_words():
    seeded(12)
    table = nn.Embedding(50, 8, padding_idx=0)
    return Of(lambda parts, words: parts["out"](parts["table"](words).mean(1)), table=table, out=nn.Linear(8, 4))


def embedding_bag():
    seeded(13)
    return nn.EmbeddingBag(40, 6, mode="mean", padding_idx=0)


class Recommender(nn.Module):
    """Numbers and three categories, each with a table of its own."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(size, 4) for size in (10, 20, 30)])
        self.dense = nn.Linear(5, 4)
        self.top = nn.Linear(6, 1)

    def forward(self, numbers, categories):
        vectors = [table(categories[:, at]) for at, table in enumerate(self.tables)]
        stacked = torch.stack([self.dense(numbers), *vectors], 1)
        products = stacked @ stacked.transpose(1, 2)
        rows, columns = torch.triu_indices(4, 4, offset=1)
        return torch.sigmoid(self.top(products[:, rows, columns]))


def recommender():
    seeded(14)
    return Recommender()


# Numbers of other kinds.


def double():
    seeded(15)
    return nn.Sequential(nn.Linear(6, 16), nn.Softplus(), nn.Linear(16, 2)).double()


def bytes_of_an_image():
    seeded(16)
    return Of(lambda parts, x: parts["conv"](x.float() / 255 - 0.5).amax((2, 3)), conv=nn.Conv2d(3, 4, 3))


def half():
    seeded(17)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).half()


def whole_division():
    """Division and remainder of negative whole numbers, where languages differ."""
    return Of(
        lambda parts, a, b: (
            torch.div(a, b, rounding_mode="floor"),
            torch.remainder(a, b),
            torch.fmod(a, b),
            torch.div(a, b, rounding_mode="trunc"),
        )
    )


def rounding():
    return Of(
        lambda parts, x: (torch.round(x * 4), x.to(torch.int32), torch.trunc(x), x % 0.75, torch.sign(x), x // 0.5)
    )


def large_values():
    """What must not overflow on the way."""
    return Of(
        lambda parts, x: (
            torch.logsumexp(x, 1),
            functional.softplus(x),
            torch.log_softmax(x, 1),
            torch.logit(torch.sigmoid(x / 50)),
        )
    )


def spectrum():
    return Of(lambda parts, x: torch.fft.rfft(x, dim=1).abs())


def filtered_by_fft():
    def function(parts, x):
        kept = torch.fft.rfft2(x) * torch.exp(-parts["decay"].weight[0])
        return torch.fft.irfft2(kept, s=(8, 8))

    seeded(18)
    return Of(function, decay=nn.Linear(5, 1))


def short_time_fourier():
    window = torch.hann_window(16)
    return Of(lambda parts, x: torch.stft(x, 16, 8, window=window, return_complex=True, center=False).abs().square())


def special_functions():
    return Of(lambda parts, x: (torch.erf(x), torch.lgamma(x.abs() + 1), torch.special.expit(x), torch.special.i0(x)))


def linear_algebra():
    def function(parts, x):
        spread = x @ x.transpose(1, 2) + 4 * torch.eye(4)
        return torch.linalg.solve(spread, x), torch.linalg.det(spread)

    return Of(function)


def cholesky():
    return Of(lambda parts, x: torch.linalg.cholesky(x @ x.transpose(1, 2) + 4 * torch.eye(4)))


# What comes out.


def dict_output():
    seeded(20)
    parts = {"body": nn.Linear(6, 8), "mean": nn.Linear(8, 2), "spread": nn.Linear(8, 2)}

    def function(parts, x):
        hidden = torch.relu(parts["body"](x))
        # Not in the order of the alphabet.
        return {"spread": functional.softplus(parts["spread"](hidden)), "mean": parts["mean"](hidden)}

    return Of(function, **parts)


def nested_output():
    seeded(21)

    def function(parts, x):
        y = parts["a"](x)
        return y, [y.sum(1), None, (y.mean(1, keepdim=True), y.argmax(1))]

    return Of(function, a=nn.Linear(6, 5))


Pair = collections.namedtuple("Pair", "values places")


def named_tuple_output():
    def function(parts, x):
        values, places = torch.topk(x, 3, dim=1)
        return Pair(values, places)

    return Of(function)


def scalar_output():
    return Of(lambda parts, x, y: functional.mse_loss(x, y))


def truth_output():
    return Of(lambda parts, x: (x > 0.5, (x > 0).any(1), x.argmax(1)))


def same_output_twice():
    """Its input too is given back."""

    def function(parts, x):
        y = parts["a"](x)
        return y, y, x

    seeded(22)
    return Of(function, a=nn.Linear(4, 4))


class Optional(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, mask=None, scale: float = 2.0):
        y = self.layer(x) * scale
        return y if mask is None else y.masked_fill(mask, 0.0)


def optional_input():
    seeded(23)
    return Optional()


def masked_input():
    seeded(23)
    return Optional()


def unused_input():
    return Of(lambda parts, x, y: x * 2)


# Inputs with axes of their own.


def scores_of_pairs():
    seeded(24)
    return Of(lambda parts, left, right: parts["a"](left) @ parts["a"](right).T, a=nn.Linear(8, 4))


def distances():
    return Of(lambda parts, left, right: torch.cdist(left, right))


class GraphNetwork(nn.Module):
    """Messages along edges, of which there are as many as there are."""

    def __init__(self):
        super().__init__()
        self.message = nn.Linear(5, 7)

    def forward(self, nodes, edges):
        sent = torch.relu(self.message(nodes[edges[0]]))
        sums = torch.zeros(nodes.shape[0], 7).index_add(0, edges[1], sent)
        counts = torch.zeros(nodes.shape[0]).index_add(0, edges[1], torch.ones(edges.shape[1]))
        return sums / counts.clamp(min=1)[:, None]


def graph_network():
    seeded(25)
    return GraphNetwork()


def scattered():
    return Of(lambda parts, x, at: torch.zeros(x.shape[0], 9).scatter_reduce(1, at, x, "amax", include_self=False))


def sorted_values():
    return Of(
        lambda parts, x: (
            *torch.sort(x, dim=1, descending=True, stable=True),
            torch.cumsum(x, 1),
            torch.median(x, 1)[0],
        )
    )


def bins():
    return Of(
        lambda parts, x: (
            torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.25, 1.0])),
            functional.one_hot((x[:, 0] > 0).long(), 3),
        )
    )


def dropout_in_training():
    """Active dropout: two runs differ."""

    class Kept(nn.Dropout):
        def forward(self, x):
            return functional.dropout(x, self.p, training=True)

    seeded(26)
    return nn.Sequential(nn.Linear(6, 12), Kept(0.5), nn.Linear(12, 2))


def attention_scale():
    """The root of a length that changes, as attention without a head's size has it."""
    return Of(lambda parts, x: torch.softmax(x @ x.transpose(1, 2) / math.sqrt(x.shape[1]), -1))
