"""Writes `configs/devices/index.json`, which saves parsing the TOML files at run time.

python scripts/index_devices.py
"""

from __future__ import annotations

from torchroof.device.shelf import INDEX, index_text
from torchroof.resources import configs_folder

if __name__ == "__main__":
    folder = configs_folder() / "devices"
    (folder / INDEX).write_text(index_text(folder), encoding="utf-8")
