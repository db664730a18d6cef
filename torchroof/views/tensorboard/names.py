"""What the writer and the plugin agree on. Imports nothing: TensorBoard loads it when it starts."""

from __future__ import annotations

PLUGIN = "torchroof"
"""Name of the plugin, in events, addresses and flags."""
REPORT_TAG = "torchroof/report"
SCHEMA = "torchroof.report/1"
"""What the metadata of our summaries says of their blobs; equal to the report's own."""
SAMPLES = 500
"""Windows that TensorBoard keeps of a run. Its default would show ten."""
