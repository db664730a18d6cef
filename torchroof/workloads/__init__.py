"""The networks that the demo trains. This file imports no torch; `torchroof.workloads.networks` does."""

NAMES = ("lesson", "resnet", "transformer", "mlp", "lstm", "unet")
