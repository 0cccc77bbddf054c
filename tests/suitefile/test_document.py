"""Lines of TOML keys, found without a parser that knows them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_invari.suitefile.document import Document, KeyPath

names = st.sampled_from(["a", "b", "c", "long_name", '"quoted key"'])
values = st.sampled_from(
    [
        "1",
        '"x = 1"',
        "'[[a]]'",
        "[\n  1, # a = 2\n  2,\n]",
        '"""\n[not.a.header]\nb = 1\n"""',
        "{x = 1, y = 2}",
        "[]",
        "{}",
    ]
)
fillers = st.sampled_from(["", "# comment = 1", "   "])


@st.composite
def documents(draw: Any) -> tuple[str, dict[KeyPath, int]]:
    """A TOML text with the line of every key that it was written from."""
    lines: list[str] = []
    expected: dict[KeyPath, int] = {}
    for table in draw(st.lists(names, unique=True, min_size=1, max_size=3)):
        repeated = draw(st.integers(1, 2)) if draw(st.booleans()) else 0
        for index in range(repeated or 1):
            plain = table.strip('"')
            key: KeyPath = (plain, index) if repeated else (plain,)
            lines += draw(st.lists(fillers, max_size=2))
            lines.append(f"[[{table}]]" if repeated else f"[{table}]")
            expected[key] = len(lines)
            for name in draw(st.lists(names, unique=True, max_size=3)):
                value = draw(values)
                lines += draw(st.lists(fillers, max_size=1))
                expected[(*key, name.strip('"'))] = len(lines) + 1
                lines += f"{name} = {value}".split("\n")
    return "\n".join(lines), expected


@given(documents())
def test_every_key_is_found_at_the_line_where_it_was_written(
    document: tuple[str, dict[KeyPath, int]],
) -> None:
    text, expected = document
    tomllib.loads(text)
    read = Document(Path("x.toml"), text)
    assert {key: read.line(key) for key in expected} == expected


def test_dotted_keys_and_tables_below_an_array_are_found() -> None:
    text = "[[a]]\nx.y = 1\n[a.b]\nz = 2\n[[a]]\n[a.b]\nz = 3\n"
    read = Document(Path("x.toml"), text)
    assert read.line(("a", 0, "x", "y")) == 2
    assert read.line(("a", 0, "b", "z")) == 4
    assert read.line(("a", 1, "b", "z")) == 7


def test_an_unknown_key_is_placed_at_the_nearest_table() -> None:
    assert Document(Path("x.toml"), "\n[a]\nb = 1\n").line(("a", "missing")) == 2
