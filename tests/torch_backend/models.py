"""Small nets of the kinds that users have, each with two shapes of its input."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class ResidualBlock(nn.Module):
    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))
        self.second = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.second(torch.relu(self.first(x))))


class Recurrent(nn.Module):
    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.layer = kind(6, 5, **options)
        self.head = nn.Linear(10 if options.get("bidirectional") else 5, 3)

    def forward(self, x: torch.Tensor) -> Any:
        y, state = self.layer(x)
        return self.head(y), state


class Scaled(nn.Module):
    """A weight, and a buffer that counts the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.linear(x) + self.calls


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, padding=1)
        self.middle = nn.Conv2d(8, 16, 3, padding=1, stride=2)
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.out = nn.Sequential(nn.Conv2d(16, 2, 1), nn.Upsample(scale_factor=2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skip = torch.relu(self.down(x))
        deep = torch.relu(self.middle(skip))
        return self.out(torch.cat([skip, self.up(deep)], 1))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3), nn.Softmax(-1))


def cnn() -> nn.Module:
    features = (nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1))
    return nn.Sequential(*features, nn.Flatten(), nn.Dropout(), nn.Linear(8, 5))


def depthwise() -> nn.Module:
    separable = (nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Hardswish(), nn.Conv2d(8, 16, 1))
    return nn.Sequential(*separable, nn.ReLU6(), nn.AvgPool2d(2))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], tuple[int, ...]]] = {
    "mlp": (mlp, (2, 8), (5, 8)),
    "cnn": (cnn, (1, 3, 16, 16), (2, 3, 12, 12)),
    "resnet": (ResidualBlock, (1, 8, 8, 8), (2, 8, 6, 6)),
    "lstm": (lambda: Recurrent(nn.LSTM, num_layers=2, batch_first=True), (1, 4, 6), (2, 3, 6)),
    "gru": (lambda: Recurrent(nn.GRU, bidirectional=True), (4, 1, 6), (3, 2, 6)),
    "transformer": (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (1, 5, 16), (2, 3, 16)),
    "depthwise": (depthwise, (1, 8, 8, 8), (2, 8, 6, 6)),
    "unet": (UNet, (1, 3, 8, 8), (2, 3, 4, 4)),
}
