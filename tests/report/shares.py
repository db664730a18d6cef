"""Writes the golden table of attributed time; after a change of rules, with its reason in the commit:

``PYTHONPATH=. python tests/report/shares.py > tests/report/golden_shares.txt``
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchroof.report.build import analyse
from torchroof.report.model import ReportData
from torchroof.trace.reader import read

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
HEAD = "trace                                       kernel ns        op ns     layer ns  left over"


def line(name: str, data: ReportData) -> str:
    """Kernel time of the file, with an op, and with a layer, in ns; and what is in no row, by reason."""
    totals = data.totals
    rest = ", ".join(f"{u.reason} {u.kernel_ns}" for u in data.unattributed) or "-"
    if totals.kernel_ns is None:
        return f"{name:40}{'?':>13}{'?':>13}{'?':>13}  {', '.join(n.kind for n in data.notes)}"
    return f"{name:40}{totals.kernel_ns:13}{totals.attributed_ns:13}{totals.layered_ns:13}  {rest}"


def table(folder: Path) -> Iterator[str]:
    yield HEAD
    for path in sorted((*folder.glob("*.json.gz"), *folder.glob("malformed/*.json.gz"))):
        yield line(path.name.removesuffix(".json.gz"), analyse(read(path, partial=True)))


if __name__ == "__main__":
    print("\n".join(table(TRACES)))
