"""Drawing: figures as SVG that lives in the page, takes its colours from it, and is the same in every run."""

from __future__ import annotations

import io
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_invari.reports.html.parts import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BAND", "BOUND", "FAINT", "INK", "MARKERS", "PAPER", "SERIES", "WIDTH", "drawing", "picture"]

WIDTH = 380
"""The width of a picture in its own units, which are those of the page on a phone."""

FONT_SIZE = 11

# Colours that stand for a role. The page's style sheet says what they look like, in light and in dark.
INK, PAPER, FAINT, BAND, BOUND = "#0a0001", "#0a0002", "#0a0003", "#0a0004", "#0a0005"
SERIES = ("#0a0011", "#0a0012", "#0a0013", "#0a0014", "#0a0015", "#0a0016")
MARKERS = ("o", "s", "^", "D", "v", "P")
"""A series has a marker of its own: colours alone tell nothing to many readers."""

_ROLES = {INK: "ink", PAPER: "paper", FAINT: "faint", BAND: "band", BOUND: "bound"} | {
    colour: f"s{number}" for number, colour in enumerate(SERIES, 1)
}
_SETTINGS = {
    # Text stays text: it can be searched, scales with the page, and needs no font of ours.
    "svg.fonttype": "none",
    "svg.hashsalt": "pytest-invari",
    # A reranker called a$b$c is no formula.
    "text.parse_math": False,
    "font.size": FONT_SIZE,
    "axes.labelsize": FONT_SIZE,
    "legend.fontsize": FONT_SIZE,
    "xtick.labelsize": FONT_SIZE - 1,
    "ytick.labelsize": FONT_SIZE - 1,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "grid.alpha": 0.5,
    "axes.axisbelow": True,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": "none",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
}
_PROPERTIES = ("fill", "stroke")
_DROPPED = ("metadata", "style")
_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the block with our settings and nobody else's."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        # A title in a script that the measuring font lacks is drawn by the reader's fonts all the same.
        warnings.simplefilter("ignore")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def picture(figure: Figure, name: str, title: str, description: str) -> Picture:
    """Turn a figure into SVG for the page, within :func:`drawing`.

    Args:
        figure: what is drawn, in the colours of this module.
        name: unique in the page; it goes before every id.
        title: what the picture is, and *description* what it shows; both are read by screen readers.
    """
    text = io.StringIO()
    unset: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(text, format="svg", metadata=unset)
    root = ET.fromstring(text.getvalue())
    used = {part.get(_LINK, "").removeprefix("#") for part in root.iter()} | {
        part.get("clip-path", "").removeprefix("url(#").removesuffix(")") for part in root.iter()
    }
    for part in root.iter():
        _plain(part, name, used)
    _describe(root, name, title, description)
    return Picture(title, ET.tostring(root, encoding="unicode"))


def _plain(part: ET.Element, name: str, used: set[str]) -> None:
    """Make an element HTML's: no name space, no inline style, and ids that are this picture's own."""
    for child in list(part):
        if child.tag.removeprefix(_SVG) in _DROPPED:
            part.remove(child)
    part.tag = part.tag.removeprefix(_SVG)
    old = part.get("id")
    if old is not None:
        if old in used:
            part.set("id", f"{name}-{old}")
        else:
            del part.attrib["id"]
    if link := part.attrib.pop(_LINK, ""):
        part.set("href", f"#{name}-{link.removeprefix('#')}")
    if clip := part.get("clip-path", ""):
        part.set("clip-path", clip.replace("url(#", f"url(#{name}-"))
    if path := part.get("d"):
        part.set("d", " ".join(path.split()))
    classes = []
    for declaration in part.attrib.pop("style", "").split(";"):
        key, _, value = (word.strip() for word in declaration.partition(":"))
        if key in _PROPERTIES and value in _ROLES:
            classes.append(f"{key}-{_ROLES[value]}")
        elif key and key != "font-family":
            part.set(key, value.removesuffix("px"))
    if classes:
        part.set("class", " ".join(classes))
    # Only whitespace stands between elements, and none is wanted.
    if part.tag != "text":
        part.text = None
    part.tail = None


def _describe(root: ET.Element, name: str, title: str, description: str) -> None:
    """What a screen reader says in place of the picture; its numbers are in the table beside it."""
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.set("class", "plot")
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-text")
    for place, (tag, kind, words) in enumerate((("title", "title", title), ("desc", "text", description))):
        element = ET.Element(tag, {"id": f"{name}-{kind}"})
        element.text = words
        root.insert(place, element)
