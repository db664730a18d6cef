"""Names cleaned and shortened."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from torchroof.views.text import clean, shorten

NAMES = st.text(max_size=60)


@given(NAMES)
def test_cleaned_text_steers_nothing_and_keeps_its_length(name: str) -> None:
    cleaned = clean(name)
    assert len(cleaned) == len(name)
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in cleaned)
    assert clean(name, ascii_only=True).isascii()


@given(NAMES.map(clean), st.integers(4, 40))
def test_a_shortened_label_fits(label: str, width: int) -> None:
    short = shorten(label, width)
    assert cell_len(short) <= width
    assert short == label or cell_len(label) > width


def test_what_is_harmless_stays() -> None:
    assert clean("Größe_层[0].<lambda>") == "Größe_层[0].<lambda>"


@pytest.mark.parametrize(
    ("width", "short"),
    [
        (41, "bert.encoder.layer.3.attention.self.query"),
        # The last name, the number, then names from the end: 'attention' fits into 24, 'layer' does not.
        (24, "…3.attention.self.query"),
        (16, "…3…self.query"),
        (10, "…3…query"),
    ],
)
def test_a_path_keeps_its_numbers_and_its_last_name(width: int, short: str) -> None:
    assert shorten("bert.encoder.layer.3.attention.self.query", width) == short


def test_layers_stay_apart_when_shortened() -> None:
    paths = [f"bert.encoder.layer.{i}.attention.output.dense" for i in range(24)]
    assert len({shorten(path, 18) for path in paths}) == 24


def test_other_labels_are_cut_in_the_middle() -> None:
    assert shorten("aten::convolution_backward", 15) == "aten::…backward"
