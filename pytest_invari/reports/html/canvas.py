"""Drawing: figures as SVG that lives in the page, takes its colours from it, and is the same in every run."""

from __future__ import annotations

import io
import unicodedata
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pytest_invari.reports.html.parts import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WIDTH = 350
"""The width of a picture in its own units, which are those of the page on a phone."""

_FONT_SIZE = 11

# Colours that stand for a role. The page's style sheet says what they look like, in light and in dark.
INK, FAINT, BAND, BOUND, PAPER = "#0a0001", "#0a0002", "#0a0003", "#0a0004", "#0a0005"
SERIES = ("#0a0011", "#0a0012", "#0a0013", "#0a0014", "#0a0015", "#0a0016")
_MARKERS = ("o", "s", "^", "D", "v", "P")

_ROLES = {INK: "ink", FAINT: "faint", BAND: "band", BOUND: "bound", PAPER: "paper"} | {
    colour: f"s{number}" for number, colour in enumerate(SERIES, 1)
}
_SETTINGS = {
    # Text stays text: it can be searched, scales with the page, and needs no font of ours.
    "svg.fonttype": "none",
    "svg.hashsalt": "pytest-invari",
    # A reranker called a$b$c is no formula.
    "text.parse_math": False,
    "font.size": _FONT_SIZE,
    "axes.labelsize": _FONT_SIZE,
    "legend.fontsize": _FONT_SIZE,
    "xtick.labelsize": _FONT_SIZE - 1,
    "ytick.labelsize": _FONT_SIZE - 1,
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


def named(name: str) -> str:
    """A series' name in a legend, from which Matplotlib leaves out what begins with an underscore."""
    return short(f" {name}" if name.startswith("_") else name)


def series(number: int) -> dict[str, Any]:
    """Colour and marker of the series of this *number*: colours alone tell nothing to many readers.

    Thirty-six series differ in one of the two.
    """
    colour = SERIES[number % len(SERIES)]
    marker = _MARKERS[(number + number // len(SERIES)) % len(_MARKERS)]
    return {"color": colour, "marker": marker}


def short(name: str, most: int = 48) -> str:
    """A name that fits into a picture, where *most* letters of usual width do; the tables have all of it."""
    if sum(map(_width, name)) <= most:
        return name
    return f"{_beginning(name, most // 2)}…{_beginning(name[::-1], most // 2 - 1)[::-1]}"


def _beginning(name: str, most: int) -> str:
    """As many of the first characters as fit."""
    ends = accumulate(map(_width, name))
    return "".join(character for character, end in zip(name, ends, strict=True) if end <= most)


def _width(character: str) -> float:
    """About how much of a line a character takes, as many letters; the reader's font is not known."""
    if unicodedata.combining(character):
        return 0
    if unicodedata.east_asian_width(character) in "WF" or character in "mMW@%":
        return 2
    return 1.5 if character.isupper() or character == "w" else 1


def chart(names: int, across: str, up: str = "") -> tuple[Figure, Any]:
    """A figure and its axes, with room below for the legend of so many *names* and the axes' labels."""
    from matplotlib.figure import Figure

    figure = Figure((WIDTH / 72, (220 + 16 * names) / 72), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(axis="x", visible=False)
    axes.tick_params(color=FAINT)
    return figure, axes


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


def picture(figure: Figure, name: str, title: str, description: str, caption: str = "") -> Picture:
    """Turn a figure into SVG for the page, within :func:`drawing`.

    Args:
        figure: what is drawn, in the colours of this module; a legend of what is labelled is added below it.
        name: unique in the page; it goes before every id.
        title: what the picture is, and *description* what it shows; both are read by screen readers.
        caption: what is said of it below its title.
    """
    text = io.StringIO()
    unset: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    if any(axes.get_legend_handles_labels()[0] for axes in figure.axes):
        figure.legend(loc="outside lower left")
    figure.savefig(text, format="svg", metadata=unset)
    root = ET.fromstring(text.getvalue())
    used = {part.get(_LINK, "").removeprefix("#") for part in root.iter()} | {
        part.get("clip-path", "").removeprefix("url(#").removesuffix(")") for part in root.iter()
    }
    for part in root.iter():
        _plain(part, name, used)
    _describe(root, name, title, description)
    return Picture(title, caption, ET.tostring(root, encoding="unicode"))


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
    root.set("aria-labelledby", f"{name}-title")
    root.set("aria-describedby", f"{name}-text")
    for place, (tag, kind, words) in enumerate((("title", "title", title), ("desc", "text", description))):
        element = ET.Element(tag, {"id": f"{name}-{kind}"})
        element.text = words
        root.insert(place, element)
