"""A decoder-only transformer: pre-norm blocks, causal attention, the embedding shared with the output."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from torchroof.workloads.training import Workload, labels, training


@dataclass(frozen=True, slots=True)
class Sizes:
    """``heads`` divides ``width``."""

    vocabulary: int
    context: int
    width: int
    heads: int
    layers: int
    batch_size: int
    steps: int
    learning_rate: float


class Attention(nn.Module):  # type: ignore[misc]
    """Causal self-attention of several heads on (batch, context, width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, context, width = x.shape
        split = self.qkv(x).view(batch, context, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
        out: torch.Tensor = self.out(mixed.transpose(1, 2).reshape(batch, context, width))
        return out


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        out: torch.Tensor = x + self.down(self.act(self.up(self.norm2(x))))
        return out


class Transformer(nn.Module):  # type: ignore[misc]
    """Scores of shape (batch * context, vocabulary) from tokens of shape (batch, context)."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(s.vocabulary, s.width)
        self.position = nn.Embedding(s.context, s.width)
        self.blocks = nn.ModuleList(Block(s.width, s.heads) for _ in range(s.layers))
        self.norm = nn.LayerNorm(s.width)
        self.head = nn.Linear(s.width, s.vocabulary, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        scores: torch.Tensor = self.head(self.norm(x)).flatten(0, 1)
        return scores


def build(s: Sizes, device: str) -> Workload:
    """Each token is to foretell the next one of its text; the texts are noise."""
    model = Transformer(s).to(device)
    texts = labels(s.vocabulary, (s.batch_size, s.context + 1), device)
    return training(
        model,
        torch.optim.AdamW(model.parameters(), lr=s.learning_rate),
        texts[:, :-1].contiguous(),
        texts[:, 1:].flatten(),
    )
