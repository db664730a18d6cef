"""A language model of stacked LSTM layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from torchroof.workloads.training import Workload, labels, training


@dataclass(frozen=True, slots=True)
class Sizes:
    vocabulary: int
    context: int
    width: int
    hidden: int
    layers: int
    batch_size: int
    steps: int
    learning_rate: float


class LSTMModel(nn.Module):  # type: ignore[misc]
    """Scores of shape (batch * context, vocabulary) from tokens of shape (batch, context)."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(s.vocabulary, s.width)
        self.lstm = nn.LSTM(s.width, s.hidden, s.layers, batch_first=True)
        self.head = nn.Linear(s.hidden, s.vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.embedding(tokens))
        scores: torch.Tensor = self.head(states).flatten(0, 1)
        return scores


def build(s: Sizes, device: str) -> Workload:
    """Each token is to foretell the next one of its text; the texts are noise."""
    model = LSTMModel(s).to(device)
    texts = labels(s.vocabulary, (s.batch_size, s.context + 1), device)
    return training(
        model,
        torch.optim.Adam(model.parameters(), lr=s.learning_rate),
        texts[:, :-1].contiguous(),
        texts[:, 1:].flatten(),
    )
