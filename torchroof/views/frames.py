"""Tables of a report as pandas DataFrames: unknown figures are ``<NA>``, integers stay integers."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from torchroof.report.lenses import Line, Lines
from torchroof.views.export import plain_columns

if TYPE_CHECKING:
    import pandas as pd


def frame_of_lines(lines: Lines) -> pd.DataFrame:
    """The lines of a table, with the columns of the CSV."""
    hints = get_type_hints(Line)
    columns = plain_columns(lines)
    return _frame(columns, {name: hints.get(name, _made_up(name)) for name in columns})


def frame_of(kind: type, items: Sequence[Any]) -> pd.DataFrame:
    """A line for each of some values of one kind, a column for each of its fields."""
    hints = get_type_hints(kind)
    return _frame({name: [getattr(item, name) for item in items] for name in hints}, hints)


def _frame(columns: dict[str, list[Any]], hints: dict[str, Any]) -> pd.DataFrame:
    import pandas

    return pandas.DataFrame(
        {name: pandas.Series(values, dtype=_dtype_of(values, hints[name])) for name, values in columns.items()}
    )


def _made_up(name: str) -> Any:
    """The type of a column that `plain_columns` adds to a line's own."""
    return float if name == "share_of_step" else int


def _dtype_of(values: list[Any], hint: Any) -> Any:
    """A column's type; integers beyond 64 bits stay Python's own."""
    beyond = any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in values)
    return "object" if beyond else _dtype(hint)


def _dtype(hint: Any) -> Any:
    known = [arg for arg in get_args(hint) if arg is not NoneType] if get_origin(hint) in (Union, UnionType) else [hint]
    return {int: "Int64", float: "Float64", str: "string", bool: "boolean"}.get(known[0], "object")
