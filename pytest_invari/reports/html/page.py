"""The page: its sections put together and rendered, with all text escaped and nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pytest_invari.errors import InvariError

if TYPE_CHECKING:
    from pytest_invari.reports.run import Run


PAGE_BEGINS = (
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<meta name="generator" content="pytest-invari">',
)
"""How the text of a page opens."""


def require_packages() -> None:
    """Refuse a page that could not be made in the end.

    Raises:
        InvariError: a package that makes it is not installed.
    """
    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        raise InvariError(f'--invari-html needs {" and ".join(missing)}: pip install "pytest-invari[report]"')


def page_text(run: Run) -> str:
    """Render the page, the same for the same results."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    from pytest_invari.reports.html.parts import Section
    from pytest_invari.reports.html.sections import sections
    from pytest_invari.reports.html.verdicts import verdicts

    environment = Environment(
        loader=PackageLoader("pytest_invari.reports.html", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = lambda text: Markup("<wbr>").join(map(escape, _pieces(text)))
    style = files("pytest_invari.reports.html").joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    found = sections(run)
    return environment.get_template("page.html.jinja").render(
        head=verdicts(run),
        sections=[each for each in found if isinstance(each, Section)],
        absent=[each for each in found if not isinstance(each, Section)],
        style=Markup(style),
        style_hash=digest,
        safe=Markup,
    )


def _pieces(text: str) -> list[str]:
    """A name in the pieces between which a line may break, as in ``recsys26::``, ``loc_``, ``vs_`` …"""
    return re.findall(r"[^_:\[=@,]*[_:\[=@,]+|[^_:\[=@,]+", text)
