"""--invari-html: one page that holds the verdicts, and pictures of what is behind them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

# pytester forgets what a run imported, and these may be loaded only once.
import jinja2
import matplotlib.backends.backend_svg
import matplotlib.figure
import pytest
import scipy.special

if TYPE_CHECKING:
    from tests.session.conftest import Project

LOADED = (jinja2, matplotlib.backends.backend_svg, matplotlib.figure, scipy.special)


def made(project: Project, *arguments: str, reranker: str = "biased:noise=0.5") -> str:
    result = project.run("--invari-html=report.html", *arguments, reranker=reranker)
    assert result.ret in (0, 1), result.stderr.str()
    return (project.path / "report.html").read_text(encoding="utf-8")


@pytest.mark.xdist
def test_the_page_is_the_same_with_workers(project: Project) -> None:
    pytest.importorskip("xdist")
    records = "--invari-records=records"
    made(project, records, "--reranker=first_stage")
    alone = made(project, records, "--invari-replay", "--reranker=first_stage")
    assert alone == made(project, records, "--invari-replay", "--reranker=first_stage", "-n1")


CARRIED = """
import json
import re

def pytest_runtest_logreport(report):
    if hasattr(report, "invari"):
        with open("carried.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps([bool(each["pictures"]) for each in report.invari["subjects"]]) + "\\n")
"""


def test_what_is_drawn_travels_only_when_a_page_is_asked_for(project: Project) -> None:
    project.write("conftest.py", CARRIED)
    project.run("-k", "gpi")
    made(project, "-k", "gpi", "--invari-json=report.json")
    lines = (project.path / "carried.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)[0] for line in lines] == [False, True]
    report = json.loads((project.path / "report.json").read_text(encoding="utf-8"))
    assert "pictures" not in report["subjects"][0]


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(project: Project) -> None:
    result = project.run("--invari-html=no/report.html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --invari-html=no/report.html: there is no folder no"])


def test_missing_packages_are_told_before_anything_runs(project: Project) -> None:
    project.write(
        "run.py",
        """\
        import importlib.machinery, sys

        class Hidden(importlib.machinery.PathFinder):
            @classmethod
            def find_spec(cls, name, path=None, target=None):
                return None if name in ("matplotlib", "jinja2") else super().find_spec(name, path, target)

        sys.meta_path = [Hidden if each is importlib.machinery.PathFinder else each for each in sys.meta_path]
        import pytest
        sys.exit(pytest.main(sys.argv[1:]))
        """,
    )
    done = subprocess.run(
        [
            sys.executable,
            "run.py",
            "--invari-suite=small.invari.toml",
            "--reranker=random",
            "--invari-html=a.html",
        ],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert done.stderr.strip() == (
        'ERROR: --invari-html needs matplotlib and jinja2: pip install "pytest-invari[report]"'
    )


def test_a_folder_that_is_gone_at_the_end_leaves_the_summary(project: Project) -> None:
    (project.path / "out").mkdir()
    project.write(
        "gone.py",
        """\
        import pathlib, shutil

        def rank(context, texts):
            if pathlib.Path("out").is_dir():
                shutil.rmtree("out")
                pathlib.Path("out").write_text("not a folder any more")
            return [float(text[-1]) for text in texts]
        """,
    )
    result = project.run("--invari-html=out/report.html", "-k", "gpi", reranker="gone:rank")
    result.stdout.fnmatch_lines(["*= invari =*", "PASS *gpi*"])
    assert "ERROR: out/report.html: cannot be written (File exists)" in result.errlines
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_comparisons_with_a_baseline_have_a_table_and_panels_of_their_own(project: Project) -> None:
    project.run("--invari-save=base.json", reranker="biased:noise=0.5")
    text = made(project, "--invari-compare=base.json", "--invari-margin=0.01", reranker="biased:noise=0.5")
    assert "baseline base.json: 4 same" in text
    assert text.count("up to 0.01 worse is no regression") == 4
    assert "no query&#39;s value has changed" in text
    assert "<strong>LOC minus the stored baseline&#39;s</strong>" in text


FLAKY = """
def rank(context, texts):
    if texts[0].endswith("0"):
        raise RuntimeError("busy")
    return [float(text.split()[-1]) for text in texts]
"""


def test_failed_views_are_told_wherever_a_figure_of_their_subject_is(project: Project) -> None:
    project.write("mine_flaky.py", FLAKY)
    wide = "--invari-profile=wide", "--invari-json=report.json", "--reranker=input_order"
    text = re.sub('<wbr>| class="long"', "", made(project, *wide, reranker="mine_flaky:rank"))
    report = json.loads((project.path / "report.json").read_text(encoding="utf-8"))
    flaky = [each for each in report["subjects"] if each["reranker"] == "mine_flaky:rank"]
    assert [each["k"] for each in flaky] == [4, 6]
    for each in flaky:
        assert 0 < each["failures"] < each["rankings"] == 160
        note = f"failed views: {each['failures']} of 160"
        rows = rf'<th scope="row">mine_flaky:rank, tasks, lists of {each["k"]}</th><td>([^<]*)</td>'
        found = re.findall(rows, text)
        assert len(found) == text.count(f">{note}</text>") > 10
        assert all(row.endswith(f"{note})") for row in found)
        name = rf"mine_flaky:rank \({note}\)"
        # The legends and tables of exposure and of the plane.
        assert len(re.findall(rf"(?:\d )?{name}</text>", text)) == 3
        assert len(re.findall(rf'<th scope="(?:row|col)">{name}</th>', text)) == 2
        curve = rf'<th scope="row">mine_flaky:rank</th><td>{each["k"]}</td><td>[^<]*\({note}\)</td>'
        assert len(re.findall(curve, text)) == 2
    assert "By the suite&#39;s on_failure" in text


def absent(text: str) -> dict[str, str]:
    """What the page says that it does not hold, and why."""
    items = re.findall("<li>([^<]*)</li>", text.partition('<section id="absent"')[2])
    return dict(item.rsplit(": ", 1) for item in items)


def test_one_stable_reranker_has_figures_and_the_page_says_why_it_has_no_more(project: Project) -> None:
    text = made(project, "-k", "gpi", reranker="first_stage")
    assert "failed views" not in text
    assert absent(text) == {
        "Across list lengths": "no data set has figures at several list lengths.",
        "Would fresh views agree?": "the analysis independent_views is asked for by no suite of the run.",
        "Cost and utility": "no two subjects on the same lists report their calls.",
        "The least stable queries": "no query with a figure was ranked in two ways.",
        "What each reranker is": "no reranker was asked any questions before it ranked.",
    }


BROKEN = """
def rank(context, texts):
    raise RuntimeError("no answer")
"""


def test_a_reranker_that_only_fails_is_named_where_it_has_no_line(project: Project) -> None:
    project.write("mine_broken.py", BROKEN)
    text = made(project, "-k", "gpi", "--reranker=first_stage", reranker="mine_broken:rank")
    assert "Not drawn, since none of its rankings counts: mine_broken:rank on tasks, K=6." in text
    assert ">failed_views</text>" in text
    alone = absent(made(project, "-k", "gpi", reranker="mine_broken:rank"))
    assert alone["Exposure by input position"] == "no subject has a valid ranking of a random order."


def test_one_query_has_figures_without_intervals(project: Project) -> None:
    text = made(project, "-k", "loc", "--invari-queries=1", "--reranker=input_order")
    assert re.search(r"<td>-?0\.\d{3} n=1</td>", text)
    assert "Exposure by input position" not in absent(text)


def test_nothing_measured_is_said(project: Project) -> None:
    project.write(
        "mine_unready.py",
        """
        class Unready:
            def prepare(self):
                raise RuntimeError("no model")

            def rank(self, request):
                raise AssertionError
        """,
    )
    text = made(project, "-k", "gpi", reranker="mine_unready:Unready")
    assert absent(text)["Every figure"] == "nothing was measured."
    assert "no model" in text
