"""Architectures that people train, small and with random weights: each with a step of forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Step = Callable[[], object]


class Bottleneck(nn.Module):
    """A block of ResNet-50: 1 x 1, 3 x 3, 1 x 1, and a way around them."""

    def __init__(self, inputs: int, width: int, stride: int = 1) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            *(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
            *(nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)),
        )
        same = stride == 1 and inputs == outputs
        around = (nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.around = nn.Identity() if same else nn.Sequential(*around)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.around(x))


def resnet50() -> tuple[nn.Module, Step]:
    """The depths of ResNet-50, 3, 4, 6 and 3 blocks, at an eighth of its width."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 8, 7, 2, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 8
    for stage, depth in enumerate((3, 4, 6, 3)):
        for block in range(depth):
            layers.append(Bottleneck(inputs, 8 << stage, 2 if stage and not block else 1))
            inputs = 4 * (8 << stage)
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))
    return model, _classify(model, torch.randn(2, 3, 32, 32), 10)


class ConvNeXtBlock(nn.Module):
    """A depthwise 7 x 7, a norm over channels, and two linear layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm, self.wide, self.narrow = (
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
        )
        self.scale = nn.Parameter(torch.full((width,), 1e-2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.depthwise(x).permute(0, 2, 3, 1)
        return x + (self.scale * self.narrow(F.gelu(self.wide(self.norm(y))))).permute(0, 3, 1, 2)


def convnext() -> tuple[nn.Module, Step]:
    model = nn.Sequential(
        *(nn.Conv2d(3, 12, 4, 4), ConvNeXtBlock(12), ConvNeXtBlock(12)),
        *(nn.Conv2d(12, 24, 2, 2), ConvNeXtBlock(24), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)),
    )
    return model, _classify(model, torch.randn(2, 3, 32, 32), 10)


def mobilenet() -> tuple[nn.Module, Step]:
    """Inverted residuals as in MobileNetV2: wider by a factor of 6, depthwise, and back."""

    def block(inputs: int, outputs: int, stride: int) -> nn.Module:
        width = 6 * inputs
        return nn.Sequential(
            *(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU6()),
            *(nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False), nn.BatchNorm2d(width), nn.ReLU6()),
            *(nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)),
        )

    model = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6()),
        *(block(8, 12, 2), block(12, 12, 1), block(12, 16, 2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)),
    )
    return model, _classify(model, torch.randn(2, 3, 32, 32), 10)


class Dlrm(nn.Module):
    """Dense features through an MLP, sparse ones through tables, the products of all pairs, and an MLP on top."""

    def __init__(self, tables: int = 4, width: int = 8) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(20, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        vectors = torch.stack([x, *(table(sparse[i]) for i, table in enumerate(self.tables))], dim=1)
        products = vectors @ vectors.transpose(1, 2)
        rows, columns = torch.tril_indices(vectors.shape[1], vectors.shape[1], -1)
        return self.top(torch.cat([x, products[:, rows, columns]], dim=1))


def dlrm() -> tuple[nn.Module, Step]:
    model = Dlrm()
    dense, sparse, wanted = torch.randn(6, 13), torch.randint(20, (4, 6, 3)), torch.rand(6, 1)

    def step() -> None:
        F.binary_cross_entropy_with_logits(model(dense, sparse), wanted).backward()

    return model, step


def _classify(model: nn.Module, images: torch.Tensor, classes: int) -> Step:
    wanted = torch.randint(classes, (len(images),))

    def step() -> None:
        F.cross_entropy(model(images), wanted).backward()

    return step


# -- from transformers, with attention written out, as torch's counter sees it ------------------------------------

_EAGER: dict[str, Any] = {"attn_implementation": "eager"}


def _tokens(*shape: int) -> torch.Tensor:
    return torch.randint(60, shape)


def bert() -> tuple[nn.Module, Step]:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, **_EAGER
    )
    return _labelled(BertForMaskedLM(config), input_ids=_tokens(2, 11), labels=_tokens(2, 11))


def gpt2() -> tuple[nn.Module, Step]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=16, bos_token_id=1, eos_token_id=2, **_EAGER
    )
    return _labelled(GPT2LMHeadModel(config), input_ids=_tokens(2, 11), labels=_tokens(2, 11))


def llama() -> tuple[nn.Module, Step]:
    """With two key heads for four query heads."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        **_EAGER,
    )
    return _labelled(LlamaForCausalLM(config), input_ids=_tokens(2, 11), labels=_tokens(2, 11))


def qwen2_moe() -> tuple[nn.Module, Step]:
    """Four experts, of which two see each token: how many tokens one sees is a matter of values."""
    from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM

    config = Qwen2MoeConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        moe_intermediate_size=24,
        shared_expert_intermediate_size=24,
        num_experts=4,
        num_experts_per_tok=2,
        **_EAGER,
    )
    return _labelled(Qwen2MoeForCausalLM(config), input_ids=_tokens(2, 11), labels=_tokens(2, 11))


def t5() -> tuple[nn.Module, Step]:
    """An encoder of 11 tokens and a decoder of 7: queries and keys differ in number."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0, **_EAGER
    )
    return _labelled(T5ForConditionalGeneration(config), input_ids=_tokens(2, 11), labels=_tokens(2, 7))


def vit() -> tuple[nn.Module, Step]:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        image_size=16,
        patch_size=4,
        num_labels=5,
        **_EAGER,
    )
    return _labelled(
        ViTForImageClassification(config), pixel_values=torch.randn(2, 3, 16, 16), labels=torch.tensor([1, 4])
    )


def whisper() -> tuple[nn.Module, Step]:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=64,
        num_mel_bins=8,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_source_positions=10,
        max_target_positions=8,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        **_EAGER,
    )
    model = WhisperForConditionalGeneration(config)
    return _labelled(model, input_features=torch.randn(2, 8, 20), labels=_tokens(2, 7))


def clip() -> tuple[nn.Module, Step]:
    """A text tower and an image tower, and the products of their results."""
    from transformers import CLIPConfig, CLIPModel

    tower = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = CLIPConfig(
        text_config={**tower, "vocab_size": 64, "max_position_embeddings": 12, "eos_token_id": 2, "bos_token_id": 1},
        vision_config={**tower, "image_size": 16, "patch_size": 4},
        projection_dim=16,
        **_EAGER,
    )
    model = CLIPModel(config)

    def step() -> None:
        tokens, images = _tokens(3, 9), torch.randn(3, 3, 16, 16)
        model(input_ids=tokens, pixel_values=images, return_loss=True).loss.backward()

    return model, step


def _labelled(model: nn.Module, **inputs: torch.Tensor) -> tuple[nn.Module, Step]:
    def step() -> None:
        model(**inputs).loss.backward()

    return model, step


ARCHITECTURES: dict[str, Callable[[], tuple[nn.Module, Step]]] = {
    each.__name__: each
    for each in (resnet50, convnext, mobilenet, dlrm, bert, gpt2, llama, qwen2_moe, t5, vit, whisper, clip)
}
"""Twelve more than the demo's networks, a U-Net and an LSTM language model among those."""
