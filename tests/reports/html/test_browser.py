"""The page in a browser: it runs nothing, asks for nothing, fits a phone, and can be read in light and dark.

Collected only where there is a chromium (see conftest.py).
"""

from __future__ import annotations

import functools
import html
import http.server
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest

pytestmark = pytest.mark.browser

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars"),
    *("--enable-logging=stderr", "--v=0", "--virtual-time-budget=10000"),
)
SCHEMES = {
    "light": "--blink-settings=preferredColorScheme=1",
    "dark": "--blink-settings=preferredColorScheme=0",
}
STROKES = "path.stroke-s1, path.stroke-s2, path.stroke-s3, path.stroke-bound"
FILLS = "use.fill-s1, use.fill-s2, use.fill-s3"

# What a page of another file can ask of the report, which itself may run nothing.
FRAME = """<!DOCTYPE html>
<title>frame</title><link rel="icon" href="data:,">
<iframe id="frame" src="report.html" style="width: WIDTHpx; height: 800px; border: 0"></iframe>
<pre id="found"></pre>
<script>
addEventListener("load", () => {
  const view = document.getElementById("frame").contentWindow, page = view.document;
  const style = (each, name) => view.getComputedStyle(each)[name];
  const all = which => [...page.querySelectorAll(which)];
  const lines = each => {
    const range = page.createRange();
    range.selectNodeContents(each);
    return new Set([...range.getClientRects()].map(box => box.top)).size;
  };
  const box = each => each.getBoundingClientRect();
  const within = (one, other) => one.left >= other.left - 1 && one.right <= other.right + 1
    && one.top >= other.top - 1 && one.bottom <= other.bottom + 1;
  const meet = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
    && one.top < other.bottom - 2 && other.top < one.bottom - 2;
  const words = all("svg").map(each => [...each.querySelectorAll("text")]
    .map(text => [text.textContent, box(text), box(each)]));
  const colours = (which, name) => [...new Set(all(which).map(each => style(each, name)))];
  document.getElementById("found").textContent = JSON.stringify({
    title: page.title,
    width: page.documentElement.clientWidth,
    content: page.documentElement.scrollWidth,
    beyond: all("body *").filter(each => !each.closest(".scroll, svg"))
      .filter(each => each.getBoundingClientRect().right > view.innerWidth + 1)
      .map(each => each.outerHTML.slice(0, 80)),
    cut: words.flat().filter(([, text, picture]) => !within(text, picture)).map(([text]) => text),
    met: words.flatMap(all => all.flatMap(([text, one], place) => all.slice(place + 1)
      .filter(([, other]) => meet(one, other)).map(([other]) => `${text} and ${other}`))),
    fetched: view.performance.getEntriesByType("resource").map(each => each.name),
    rules: page.styleSheets[0].cssRules.length,
    scripts: page.scripts.length,
    paper: style(page.body, "backgroundColor"),
    text: [...colours("p, th, td, h1, h2, h3, a, figcaption, summary, small", "color"),
           ...colours("svg text", "fill")],
    shade: colours(".shade9", "backgroundColor")[0],
    shaded: colours(".shade9, .shade9 small", "color"),
    series: [...colours("STROKES", "stroke"), ...colours("FILLS", "fill")],
    letters: Math.min(...all("svg text").map(each => each.getBoundingClientRect().height)),
    narrow: (all("details").forEach(each => each.open = true), all("th, td"))
      .filter(each => each.textContent.length > 12 && each.getBoundingClientRect().width < 120)
      .map(each => each.outerHTML.slice(0, 80)),
    torn: all(".data th, .data td").filter(each => each.textContent.length <= 12 && lines(each) > 1)
      .map(each => each.outerHTML.slice(0, 80)),
  });
});
</script>
"""


class Server:
    """The folder of the report over HTTP, and the paths that were asked for."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                asked.append(self.path)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nothing is written to the terminal."""

        handler = functools.partial(Handler, directory=str(folder))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(report: Path) -> Iterator[Server]:
    made = Server(report.parent)
    yield made
    made.close()


class Browser:
    """Chromium with a profile of its own; ``console`` is what pages have written to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.console: list[str] = []

    def run(self, address: str, *flags: str) -> str:
        profile = f"--user-data-dir={self._folder / 'profile'}"
        done = subprocess.run(
            ["chromium", *FLAGS, profile, *flags, address],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        self.console += [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
        return done.stdout

    def look(self, server: Server, report: Path, width: int, scheme: str) -> Any:
        """What a frame of this width finds in the report."""
        frame = FRAME.replace("WIDTH", str(width)).replace("STROKES", STROKES).replace("FILLS", FILLS)
        (report.parent / "frame.html").write_text(frame, encoding="utf-8")
        shown = self.run(f"{server.address}/frame.html", SCHEMES[scheme], "--dump-dom")
        return json.loads(html.unescape(shown.partition('<pre id="found">')[2].partition("</pre>")[0]))


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return Browser(tmp_path)


def channels(colour: str) -> list[float]:
    """Red, green, blue and, where there is one, alpha of a computed colour, each in [0, 1]."""
    numbers = [float(each) for each in re.findall(r"[\d.]+", colour)]
    # A mixed colour is told as color(srgb 0 0.39 0.64 / 0.54).
    if colour.startswith("color(srgb"):
        return numbers
    return [each / 255 for each in numbers[:3]] + numbers[3:]


def over(colour: str, paper: str) -> list[float]:
    """A translucent colour as it is seen on the paper."""
    *seen, alpha = channels(colour)
    return [alpha * top + (1 - alpha) * below for top, below in zip(seen, channels(paper), strict=True)]


def luminance(seen: list[float]) -> float:
    """The relative luminance of WCAG 2.2."""
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in seen)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: list[float], other: list[float]) -> float:
    lower, higher = sorted((luminance(one), luminance(other)))
    return (higher + 0.05) / (lower + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_runs_nothing_and_asks_for_nothing(
    browser: Browser, server: Server, report: Path, width: int, scheme: str
) -> None:
    found = browser.look(server, report, width, scheme)
    assert found["content"] == found["width"] <= width
    assert found["beyond"] == []
    # The words in the pictures: cut off by an edge, or one upon another.
    assert (found["cut"], found["met"]) == ([], [])
    assert (found["narrow"], found["torn"]) == ([], [])
    assert (found["fetched"], found["scripts"]) == ([], 0)
    assert server.asked == ["/frame.html", "/report.html"]
    assert browser.console == []
    assert found["title"].startswith("invari report: ")
    # Its style sheet is the one that its policy allows.
    assert found["rules"] > 50


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_and_lines_stand_out_in_both_schemes(
    browser: Browser, server: Server, report: Path, scheme: str
) -> None:
    found = browser.look(server, report, 390, scheme)
    paper = channels(found["paper"])
    assert (luminance(paper) < 0.1) == (scheme == "dark")
    assert len(found["text"]) >= 3
    for colour in found["text"]:
        assert contrast(channels(colour), paper) >= 4.5, colour
    assert len(found["shaded"]) == 1
    assert contrast(channels(found["shaded"][0]), over(found["shade"], found["paper"])) >= 4.5
    assert len(set(found["series"])) >= 4
    for colour in found["series"]:
        assert contrast(channels(colour), paper) >= 3, colour
    assert found["letters"] >= 9


def test_the_page_of_a_file_has_the_titles_as_text(browser: Browser, report: Path) -> None:
    shown = browser.run(report.as_uri(), "--dump-dom")
    assert browser.console == []
    assert "&lt;/script&gt;&lt;script&gt;document.title='broken'&lt;/script&gt;" in shown
    assert "<script" not in shown
    assert "<img" not in shown
    assert shown.count("<svg") == report.read_text(encoding="utf-8").count("<svg")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_can_be_seen(browser: Browser, report: Path, tmp_path: Path, scheme: str) -> None:
    picture = tmp_path / "page.png"
    browser.run(report.as_uri(), SCHEMES[scheme], f"--screenshot={picture}", "--window-size=390,2400")
    pixels = matplotlib.image.imread(picture)[..., :3]
    assert pixels.shape[:2] == (2400, 390)
    assert (pixels.mean() < 0.3) == (scheme == "dark")
    # There is something on it.
    assert pixels.std() > 0.05


def test_what_the_others_look_for_would_be_found(
    browser: Browser, server: Server, report: Path, tmp_path: Path
) -> None:
    """A page that does all that ours must not."""
    bad = (
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\"><p style='color: red'>a</p>"
        "<script>document.title = 'broken'</script><img src=x.png>"
    )
    (report.parent / "bad.html").write_text(bad, encoding="utf-8")
    browser.run(f"{server.address}/bad.html", "--dump-dom")
    assert len(browser.console) == 3
    loose = "<title>invari report: </title><style>p {width: 900px}</style><p>a</p><img src=x.png>"
    loose += "<svg viewBox='0 0 90 90'><text y=20>one</text><text y=22>two</text>"
    loose += "<text y=70 x=80>three</text></svg><table class=data style='width: 40px'>"
    loose += "<td>ab <br> c<td style='word-break: break-all'>long as it is</table>"
    page = tmp_path / "report.html"
    page.write_text(loose, encoding="utf-8")
    other = Server(tmp_path)
    found = browser.look(other, page, 390, "light")
    other.close()
    assert found["content"] > 900
    assert len(found["beyond"]) == 1
    assert (found["cut"], found["met"]) == (["three"], ["one and two"])
    assert (len(found["narrow"]), len(found["torn"])) == (1, 1)
    assert len(found["fetched"]) == 1
    assert other.asked == ["/frame.html", "/report.html", "/x.png"]
