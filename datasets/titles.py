"""Film titles as a reader would write them: "The Matrix (1999)", not "Matrix, The (1999)"."""

from __future__ import annotations

import re

# The articles that MovieLens moves behind a title, in the languages that occur there.
ARTICLES = (
    "The|A|An|L'|La|Le|Les|Un|Une|El|Los|Las|Una|Il|Lo|I|Gli|Der|Die|Das|Ein|Eine|De|Den|Det|En|Et|Ett|"
    "Het|O|Os|As|Um|Uma|Da"
)
# A title and each alternative title in parentheses may end in an article of its own.
MOVED = re.compile(rf"(^|\((?:a\.k\.a\.\s+)?)([^()]+), ({ARTICLES})(?=\s*(?:[()]|$))")


def readable_title(title: str, year: int | None = None) -> str:
    """Put articles back in front, tidy spaces, and add the year where it is given.

    >>> readable_title("City of Lost Children, The (Cité des enfants perdus, La) (1995)")
    'The City of Lost Children (La Cité des enfants perdus) (1995)'
    """
    text = MOVED.sub(_in_front, " ".join(title.split()))
    return text if year is None else f"{text} ({year})"


def _in_front(moved: re.Match[str]) -> str:
    before, name, article = moved.groups()
    space = "" if article.endswith("'") else " "
    return f"{before}{article}{space}{name}"
