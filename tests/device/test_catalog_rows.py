"""Every row of the catalogue against multiprocessors × clock × operations per clock, a second witness.

The operations per clock are a property of the architecture, known without the devices' datasheets.
"""

from __future__ import annotations

import pytest

from torchroof.device.catalog import entries
from torchroof.device.entry import Entry

M, V = "matrix", "vector"
Rates = dict[tuple[str, str], float]


def rates(v64: float = 0, v32: float = 0, m64: float = 0, **matrix: float) -> Rates:
    """Dense FLOPs per clock and multiprocessor, a multiply-add being 2."""
    named = {"tf32": "tf32", "fp8": "float8", "fp4": "float4", "i8": "int8", "i4": "int4", "m32": "float32"}
    table: Rates = {(V, "float64"): v64, (V, "float32"): v32, (M, "float64"): m64}
    table |= {(M, named[k]): v for k, v in matrix.items() if k in named}
    half = matrix.get("half", 0)
    table |= {(M, "float16"): half, (M, "bfloat16"): matrix.get("bf16", half)}
    table[V, "float16"] = matrix.get("v16", 0)
    return table


ARCHITECTURES: dict[str, Rates] = {
    "sm_60": rates(64, 128, v16=256),
    "sm_70": rates(64, 128, half=1024),
    "sm_75": rates(4, 128, half=1024, i8=2048, i4=4096),
    "sm_80": rates(64, 128, 128, tf32=1024, half=2048, i8=4096, i4=8192),
    "sm_86": rates(4, 256, tf32=512, half=1024, i8=2048, i4=4096),
    "sm_87": rates(4, 256, tf32=1024, half=2048, i8=4096, i4=8192),
    "sm_89": rates(4, 256, tf32=512, half=1024, fp8=2048, i8=2048, i4=4096),
    "sm_90": rates(128, 256, 256, tf32=2048, half=4096, fp8=8192, i8=8192),
    "sm_100": rates(128, 256, 128, tf32=4096, half=8192, fp8=16384, fp4=32768, i8=16384),
    "sm_103": rates(4, 256, 4, tf32=4096, half=8192, fp8=16384, fp4=49152, i8=512),
    "sm_120": rates(4, 256, tf32=512, half=1024, fp8=2048, fp4=4096, i8=2048),
    "sm_121": rates(4, 256, tf32=512, half=1024, fp8=2048, fp4=4096, i8=2048),
    "gfx908": rates(64, 128, m32=256, half=1024, bf16=512, i8=1024),
    "gfx90a": rates(128, 128, 256, m32=256, half=1024, i8=1024, i4=1024),
    "gfx942": rates(128, 256, 256, m32=256, tf32=1024, half=2048, fp8=4096, i8=4096),
    "gfx950": rates(128, 256, 128, m32=256, half=4096, fp8=8192, fp4=16384, i8=8192),
    "gfx1100": rates(8, 256, half=512, i8=512, i4=1024),
    "Xe-HPC": rates(256, 256, tf32=2048, half=4096, i8=8192),
    "Xe-HPG": rates(0, 256, half=2048, i8=4096, i4=8192),
    "Xe2": rates(16, 256, tf32=1024, half=2048, i8=4096, i4=8192),
    "Gaudi2": rates(bf16=131072, fp8=262144),
    "Gaudi3": rates(m32=16384, tf32=32768, half=32768, bf16=131072, fp8=131072),
    "Apple": rates(0, 256, v16=256),
}

HALVED = {(M, "tf32"): 0.5, (M, "float16"): 0.5, (M, "bfloat16"): 0.5, (M, "float8"): 0.5}
"""Cards that do products with float32 accumulation at half the rate, in a marked architecture text."""
INTEGER_HALVED = {"a10g", "l40", "l20"}
"""Of these, the ones whose integer rate is halved too."""
QUARTERED = {"h20", "h20_3e"}

MATRIX_HZ = {
    **dict.fromkeys(["h100_sxm_80gb", "h100_bare_96gb", "h200_sxm", "h800_sxm", "gh200_96gb", "gh200_144gb"], 1830e6),
    **dict.fromkeys(["h100_pcie", "h800_pcie"], 1620e6),
    **dict.fromkeys(["h100_nvl", "h200_nvl"], 1545e6),
    **dict.fromkeys(["b200", "b300"], 1856e6),
    **dict.fromkeys(["gb200", "gb300"], 2008e6),
    "b100": 1440e6,
    **dict.fromkeys(["h20", "h20_3e"], 1850e6),
}
"""Datasheets of Hopper and Blackwell take matrix peaks (not float64) at a lower clock than the boost clock."""

EXPLAINED = {
    ("h800_sxm", V, "float64"): "capped for export",
    ("h800_sxm", M, "float64"): "capped for export",
    ("h800_pcie", V, "float64"): "capped for export",
    ("h800_pcie", M, "float64"): "capped for export",
    ("h20", V, "float64"): "capped for export",
    ("h20", M, "float64"): "capped for export",
    ("h20_3e", V, "float64"): "capped for export",
    ("h20_3e", M, "float64"): "capped for export",
    ("h20", V, "float32"): "needs 2.2 GHz; sources agree on 44",
    ("h20_3e", V, "float32"): "as the H20",
    ("b300", M, "float4"): "14 PFLOP/s printed for the GPU, 13.5 follow from the board",
    ("b300", V, "float32"): "printed rounded",
    ("b300", V, "float64"): "printed rounded",
    ("b300", M, "float64"): "printed rounded",
    ("gb300", M, "int8"): "printed rounded",
    ("gb300", V, "float64"): "printed rounded",
    ("gb300", M, "float64"): "printed rounded",
    ("l40s", M, "int4"): "printed equal to int8, probably a slip; the smaller is kept",
}


def expected(entry: Entry, pipe: str, precision: str) -> float:
    architecture = entry.architecture.split()[0]
    per_clock = ARCHITECTURES[architecture].get((pipe, precision), 0)
    if "half-rate" in entry.architecture:
        per_clock *= HALVED.get((pipe, precision), 1)
    if entry.key in INTEGER_HALVED and precision in ("int8", "int4"):
        per_clock /= 2
    if entry.key in QUARTERED and pipe == M:
        per_clock /= 4
    hz = entry.boost_hz
    # int8 of sm_103 has hardly a matrix path left and is rated at the boost clock.
    at_boost = precision == "float64" or (architecture == "sm_103" and precision == "int8")
    if pipe == M and not at_boost:
        hz = MATRIX_HZ.get(entry.key, hz)
    assert hz is not None and entry.multiprocessors is not None
    return entry.multiprocessors * hz * per_clock


def cells(entry: Entry) -> list[tuple[str, str, float]]:
    return [(M, p, v) for p, v in entry.matrix_flops_per_s.items()] + [
        (V, p, v) for p, v in entry.vector_flops_per_s.items()
    ]


@pytest.mark.parametrize("entry", entries(), ids=lambda e: e.key)
def test_every_rate_follows_from_the_architecture_or_is_explained(entry: Entry) -> None:
    for pipe, precision, value in cells(entry):
        ratio = value / expected(entry, pipe, precision) if expected(entry, pipe, precision) else float("inf")
        off = abs(ratio - 1) > 0.015
        assert off == ((entry.key, pipe, precision) in EXPLAINED), f"{entry.key} {pipe} {precision}: {ratio:.3f}"


def test_the_list_of_explained_cells_names_real_cells() -> None:
    known = {(e.key, pipe, precision) for e in entries() for pipe, precision, _ in cells(e)}
    assert set(EXPLAINED) <= known


@pytest.mark.parametrize(
    ("key", "precision", "sparse"),
    [
        ("h100_sxm_80gb", "bfloat16", 1979e12),
        ("h100_sxm_80gb", "float8", 3958e12),
        ("l4", "float16", 242e12),
        ("l4", "float8", 485e12),
        ("l40s", "float8", 1466e12),
        ("rtx_a6000", "float16", 309.7e12),
        ("rtx_a5000", "float16", 222.2e12),
        ("rtx_6000_ada", "float8", 1457e12),
        ("rtx_5090", "float4", 3352e12),
        ("gb10", "float4", 1e15),
    ],
)
def test_headlines_with_sparsity_are_not_taken_for_dense(key: str, precision: str, sparse: float) -> None:
    entry = next(e for e in entries() if e.key == key)
    assert entry.sparsity == 2
    assert entry.matrix_flops_per_s[precision] * 2 == pytest.approx(sparse, rel=0.06)


def test_the_datasheet_figures_that_reports_lean_on() -> None:
    figures = {
        "t4": (320e9, 8.1e12, 65e12),
        "v100_sxm2_16gb": (900e9, 15.7e12, 125e12),
        "v100_pcie_16gb": (900e9, 14e12, 112e12),
        "a100_sxm_40gb": (1555e9, 19.5e12, 312e12),
        "a100_sxm_80gb": (2039e9, 19.5e12, 312e12),
        "a100_pcie_80gb": (1935e9, 19.5e12, 312e12),
        "rtx_a6000": (768e9, 38.7e12, 154.8e12),
        "l4": (300e9, 30.3e12, 121e12),
        "h100_sxm_80gb": (3350e9, 66.9e12, 989.4e12),
        "h200_sxm": (4800e9, 66.9e12, 989.4e12),
        "b200": (7700e9, 75e12, 2250e12),
        "mi210": (1638e9, 22.6e12, 181e12),
        "mi300x": (5300e9, 163.4e12, 1307.4e12),
    }
    known = {e.key: e for e in entries()}
    for key, (bandwidth, single, half) in figures.items():
        roof = known[key].roof()
        assert roof.bandwidth().value == bandwidth, key  # type: ignore[union-attr]
        assert roof.compute("float32", "vector").value == single, key  # type: ignore[union-attr]
        assert roof.compute("float16", "matrix").value == half, key  # type: ignore[union-attr]


def test_matrix_float32_of_amd_is_apart_from_the_unpacked_vector_rate() -> None:
    known = {e.key: e.roof() for e in entries()}
    for key, matrix in {"mi100": 46.1e12, "mi210": 45.3e12, "mi250x_gcd": 47.9e12}.items():
        assert known[key].compute("float32", "matrix").value == matrix  # type: ignore[union-attr]
        assert known[key].compute("float32", "vector").value < 0.51 * matrix  # type: ignore[union-attr]


def test_keys_and_names_are_unique_and_every_figure_has_a_source() -> None:
    known = entries()
    assert len(known) >= 102
    assert len({e.key for e in known}) == len({e.name.lower() for e in known}) == len(known)
    assert all(e.source and e.confidence in ("high", "medium", "low") for e in known)


def test_a_roof_carries_source_confidence_and_a_given_launch_time() -> None:
    entry = next(e for e in entries() if e.key == "t4")
    roof = entry.roof()
    assert roof.matched == "t4" and roof.name == "T4"
    for ceiling in roof.ceilings:
        if ceiling.kind == "launch":
            assert (ceiling.value, ceiling.unit, ceiling.origin) == (1.5e-6, "s", "given")
        else:
            assert (ceiling.origin, ceiling.source, ceiling.confidence) == ("datasheet", entry.source, "high")
    assert roof.launch() is not None
    assert entry.roof(launch=False).launch() is None
    assert {c.level for c in roof.ceilings if c.kind == "bandwidth"} == {"dram"}
