"""Models of PyTorch with random weights of a seed: AlexNet, SqueezeNet, BERT of the base size, and one as in CANDLE.

Shapes are those of the publications; the weights mean nothing, so that nothing is downloaded.
"""

import torch
from torch import nn

SEED = 7


def seeded(build):
    """A factory that always gives the same weights, in the mode for inference."""

    def made(*arguments, **named):
        torch.manual_seed(SEED)
        return build(*arguments, **named).eval()

    made.__name__, made.__doc__ = build.__name__, build.__doc__
    return made


@seeded
def alexnet(classes=1000):
    """AlexNet in the one-tower form: 61,100,840 parameters for 1000 classes."""
    features = [
        *(nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2)),
    ]
    classifier = [
        *(nn.Dropout(), nn.Linear(256 * 6 * 6, 4096), nn.ReLU()),
        *(nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU()),
        nn.Linear(4096, classes),
    ]
    return nn.Sequential(*features, nn.Flatten(), *classifier)


class Fire(nn.Module):
    """SqueezeNet's part: few channels, then two convolutions side by side."""

    def __init__(self, inputs, squeezed, expanded):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.one, self.three = nn.Conv2d(squeezed, expanded, 1), nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x):
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.one(x)), torch.relu(self.three(x))], 1)


@seeded
def squeezenet(classes=1000):
    """SqueezeNet 1.1: 1,235,496 parameters for 1000 classes."""
    return nn.Sequential(
        *(nn.Conv2d(3, 64, 3, stride=2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True)),
        *(Fire(64, 16, 64), Fire(128, 16, 64), nn.MaxPool2d(3, 2, ceil_mode=True)),
        *(Fire(128, 32, 128), Fire(256, 32, 128), nn.MaxPool2d(3, 2, ceil_mode=True)),
        *(Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), Fire(512, 64, 256)),
        *(nn.Dropout(), nn.Conv2d(512, classes, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    )


class Layer(nn.Module):
    """One layer of BERT."""

    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output, self.after_attention = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, width)
        self.after, self.dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(0.1)

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)

    def forward(self, x, mask):
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        weights = torch.softmax(query @ key.transpose(-1, -2) / self.size**0.5 + mask, -1)
        seen = (self.dropout(weights) @ value).transpose(1, 2).flatten(2)
        x = self.after_attention(x + self.dropout(self.output(seen)))
        return self.after(x + self.dropout(self.outer(nn.functional.gelu(self.inner(x)))))


class Bert(nn.Module):
    """The encoder, and the pooled first word."""

    def __init__(self, words, width, layers, heads, inner, places):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.types, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList([Layer(width, heads, inner) for _ in range(layers)])
        self.pooler = nn.Linear(width, width)
        for each in self.modules():
            if isinstance(each, (nn.Linear, nn.Embedding)):
                nn.init.normal_(each.weight, std=0.02)

    def forward(self, input_ids, attention_mask):
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.words(input_ids) + self.places(places) + self.types(torch.zeros_like(input_ids))
        x, mask = self.norm(x), (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
        for each in self.layers:
            x = each(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


@seeded
def bert(words=30522, width=768, layers=12, heads=12, inner=3072, places=512):
    """BERT-base-uncased by its shapes: 109,482,240 parameters."""
    return Bert(words, width, layers, heads, inner, places)


@seeded
def candle(genes=942, drugs=4392, width=1000):
    """As CANDLE's Combo and Uno: a tower of dense layers for a cell line's genes and one for a drug, then one for both.

    It says how much a drug slows the growth of a tumour's cells.
    """
    return Candle(genes, drugs, width)


class Candle(nn.Module):
    """Two towers, and a third on both."""

    def __init__(self, genes, drugs, width):
        super().__init__()
        self.genes, self.drugs = tower(genes, width), tower(drugs, width)
        self.both = nn.Sequential(*tower(2 * width, width), nn.Linear(width, 1))

    def forward(self, genes, drug):
        return self.both(torch.cat([self.genes(genes), self.drugs(drug)], 1))


def tower(inputs, width, layers=3):
    """Dense layers with dropout."""
    sizes = [inputs] + [width] * layers
    parts = [[nn.Linear(sizes[at], sizes[at + 1]), nn.ReLU(), nn.Dropout(0.1)] for at in range(layers)]
    return nn.Sequential(*(each for part in parts for each in part))
