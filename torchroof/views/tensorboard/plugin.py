"""The entry point of the TensorBoard plugin. Nothing here may raise: TensorBoard would not start.

Only tensorboard and the standard library are imported at module level; everything else when the tab is asked for.
"""

from __future__ import annotations

import logging
from typing import Any

from tensorboard.plugins import base_plugin

from torchroof.views.tensorboard.names import PLUGIN, SAMPLES

_LOG = logging.getLogger(__name__)


class Loader(base_plugin.TBLoader):  # type: ignore[misc]
    """Loads the plugin, and asks TensorBoard to keep more windows of a run than its ten."""

    def fix_flags(self, flags: Any) -> None:
        """``--samples_per_plugin torchroof=N`` of the user's goes before ours."""
        try:
            if not isinstance(flags.samples_per_plugin, dict):
                flags.samples_per_plugin = dict(flags.samples_per_plugin or {})
            flags.samples_per_plugin.setdefault(PLUGIN, SAMPLES)
        except Exception:
            _LOG.debug("torchroof: the number of kept windows was not raised", exc_info=True)

    def load(self, context: Any) -> Any:
        """The plugin, or None where it cannot be: then TensorBoard runs without it."""
        try:
            from torchroof.views.tensorboard.routes import TorchroofPlugin

            return TorchroofPlugin(context)
        except Exception as why:
            _LOG.warning("the torchroof tab is not shown: %s: %s", type(why).__name__, why)
            return None
