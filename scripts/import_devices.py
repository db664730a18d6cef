"""Turns a table of device peaks (CSV) into the catalogue's TOML files, one per vendor.

    python scripts/import_devices.py devices.csv configs/devices

The columns are ``key, name_patterns, vendor, arch, sm_or_cu, boost_mhz, mem_gb, mem_bw_gbs, l2_mb``, the
dense peaks in TFLOP/s (``fp64, fp64_tensor, fp32, tf32, fp16, bf16, fp8, fp4``) and TOP/s (``int8, int4``),
``sparsity_mult, source, confidence``. The files were edited by hand after the first import (variants that
share a name, matrix rates that the table has no column for): import into another folder and compare.
After any change run ``python scripts/index_devices.py``.
"""

from __future__ import annotations

import csv
import json
import sys
from decimal import Decimal
from pathlib import Path

MATRIX = {
    "fp64_tensor": "float64",
    "tf32": "tf32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "float8",
    "fp4": "float4",
    "int8": "int8",
    "int4": "int4",
}
VECTOR = {"fp64": "float64", "fp32": "float32"}
NO_MATRIX_UNITS = ("sm_60", "Apple")
"""Architectures whose half precision runs on the vector units."""
MAKERS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "apple": "Apple"}
UPPER = {"rtx", "gb", "gh", "mi", "pcie", "sxm", "sxm2", "nvl", "gcd", "d", "ws"}


def scaled(text: str, factor: int) -> int:
    """A decimal text times a power of ten, exactly."""
    return int(Decimal(text) * factor)


def number(value: int) -> str:
    return f"{value:_}"


def plain_name(key: str) -> str:
    """``rtx_a6000`` as ``RTX A6000``: a first guess, made better by hand."""
    words = []
    for word in key.split("_"):
        upper = word in UPPER or any(c.isdigit() for c in word)
        words.append(word.upper() if upper else word.capitalize())
    return " ".join(words)


def patterns(text: str) -> list[str]:
    return [p for p in text.split("|") if p] if "(" not in text.replace("(NVIDIA )?", "") else [text]


def section(row: dict[str, str]) -> str:
    """One device as TOML."""
    key = row["key"]
    lines = [
        f"[{key}]",
        f"name = {json.dumps(plain_name(key))}",
        f"patterns = [{', '.join(_literal(p) for p in patterns(row['name_patterns']))}]",
        f"vendor = {json.dumps(MAKERS.get(row['vendor'], row['vendor']))}",
        f"architecture = {json.dumps(row['arch'])}",
        f"multiprocessors = {row['sm_or_cu']}",
        f"boost_hz = {number(scaled(row['boost_mhz'], 10**6))}",
    ]
    if row["mem_gb"]:
        lines.append(f"memory_bytes = {number(scaled(row['mem_gb'], 2**30))}")
    lines.append(f"memory_bandwidth_bytes_per_s = {number(scaled(row['mem_bw_gbs'], 10**9))}")
    if row["l2_mb"]:
        lines.append(f"l2_bytes = {number(scaled(row['l2_mb'], 2**20))}")
    lines += [
        f"sparsity = {row['sparsity_mult']}",
        f"source = {json.dumps(row['source'])}",
        f"confidence = {json.dumps({'med': 'medium'}.get(row['confidence'], row['confidence']))}",
    ]
    matrix, vector = rates(row)
    for title, table in (("matrix", matrix), ("vector", vector)):
        if table:
            lines.append(f"[{key}.{title}_flops_per_s]")
            lines += [f"{precision} = {number(value)}" for precision, value in table.items()]
    return "\n".join(lines) + "\n"


def rates(row: dict[str, str]) -> tuple[dict[str, int], dict[str, int]]:
    """Dense FLOP/s by precision, on the matrix and on the vector units."""
    tera = 10**12
    vector = {name: scaled(row[column], tera) for column, name in VECTOR.items() if row[column]}
    matrix = {name: scaled(row[column], tera) for column, name in MATRIX.items() if row[column]}
    if row["arch"].startswith(NO_MATRIX_UNITS) and "float16" in matrix:
        vector["float16"] = matrix.pop("float16")
    return matrix, vector


def _literal(pattern: str) -> str:
    return f"'{pattern}'"


def main(table: Path, folder: Path) -> None:
    by_vendor: dict[str, list[str]] = {}
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            by_vendor.setdefault(row["vendor"], []).append(section(row))
    folder.mkdir(parents=True, exist_ok=True)
    for vendor, sections in by_vendor.items():
        (folder / f"{vendor}.toml").write_text("\n".join(sections), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: import_devices.py TABLE.csv FOLDER")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
