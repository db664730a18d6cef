"""Counts the skipped tests of a JUnit file: ``skips.py JUNIT.xml KNOWN``. Exit 1 when more than known.

Tests marked ``shared`` read public traces from a folder beside the checkout. They may be skipped where that
folder is absent, and nowhere else.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces"


def main(junit: str, known: int) -> int:
    shared: list[str] = []
    others: list[str] = []
    for case in ET.parse(junit).iter("testcase"):
        skip = case.find("skipped")
        if skip is None:
            continue
        reads_shared = any(p.get("value") == "shared" for p in case.iter("property"))
        reason = skip.get("message", "")
        (shared if reads_shared else others).append(f"{case.get('classname')}::{case.get('name')}: {reason}")
    print(f"{len(shared) + len(others)} skipped; {known} known ones, and {len(shared)} that read shared traces")
    print("\n".join(f"  {line}" for line in shared + others))
    faults = []
    if len(others) > known:
        faults.append(f"{len(others)} tests were skipped, {known} are known to be (KNOWN_SKIPS in .ci/run)")
    if shared and TRACES.is_dir():
        faults.append(f"{len(shared)} tests marked shared were skipped although {TRACES.name} is there")
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
