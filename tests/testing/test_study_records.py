"""Records and replays of studies, and the assertion of invariance with the names of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.testing.conftest import QUIET

if TYPE_CHECKING:
    from tests.testing.conftest import Own

COUNTED = """
    from pathlib import Path

    CALLS = Path("calls.txt").absolute()

    def counted(context, texts):
        with CALLS.open("a") as file:
            file.write("x")
        return longest(context, texts)

    def test_it(invari, monkeypatch, tmp_path):
        study = invari.study(counted, "tasks.jsonl", 5{records})
        # Wherever a test has gone by the time that something is measured.
        monkeypatch.chdir(tmp_path)
        study.assert_at_least("loc", 0.8)

    def test_other(invari):
        invari.study(front, "tasks.jsonl", 5{records}).assert_at_least("loc", 0.8)
"""


def calls(own: Own) -> int:
    path = own.path / "calls.txt"
    return len(path.read_text()) if path.exists() else 0


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
@pytest.mark.parametrize(
    ("records", "options"),
    [("", ("--invari-records=kept",)), ("", ("-o", "invari_records=kept")), (', records="kept"', ())],
    ids=["option", "ini", "argument"],
)
def test_what_is_kept_is_not_ranked_again_and_judged_alike_without_the_reranker(
    own: Own, records: str, options: tuple[str, ...], workers: tuple[str, ...]
) -> None:
    body = COUNTED.format(records=records)
    first = own.run(body, *options, *workers)
    first.assert_outcomes(passed=1, failed=1)
    assert calls(own) == 160
    assert sorted(path.name.partition("-")[0] for path in (own.path / "kept").iterdir()) == [
        "counted",
        "front",
    ]
    for again in ((), ("--invari-replay",)):
        result = own.run(body, *options, *workers, *again)
        result.assert_outcomes(passed=1, failed=1)
        failed = [line for line in first.outlines if line.startswith("FAILED")]
        assert [line for line in result.outlines if line.startswith("FAILED")] == failed
        assert calls(own) == 160


def test_records_of_a_study_serve_a_suite(own: Own) -> None:
    body = """
        def test_it(invari):
            invari.study("biased", "tasks.jsonl", 5).assert_at_most("loc", 0.999)
    """
    own.run(body, "--invari-records=kept").assert_outcomes(passed=1)
    (own.path / "small.invari.toml").write_text(
        '[suite]\nname = "small"\n[profile.quick]\ndatasets = ["tasks.jsonl"]\nk = 6\nviews = 5\n'
        '[[criterion]]\nname = "loc"\nmetric = "loc"\nat_most = 0.999\n'
    )
    replay = ("--invari-records=kept", "--invari-replay")
    suite = own.pytester.runpytest_inprocess(*QUIET, "small.invari.toml", "--reranker=biased", *replay)
    suite.assert_outcomes(passed=1)


def test_a_study_without_records_leaves_none(own: Own) -> None:
    own.run(COUNTED.format(records=""), "-p", "no:cacheprovider").assert_outcomes(passed=1, failed=1)
    assert not [path for path in own.path.iterdir() if path.is_dir() and path.name != "__pycache__"]


def test_what_a_replay_lacks_and_the_folder_that_is_missing_are_told_at_the_line(own: Own) -> None:
    body = """
        def test_no_folder(invari):
            invari.study(longest, "tasks.jsonl", 5)

        def test_no_records(invari):
            invari.study(longest, "tasks.jsonl", 5, records="kept")

        def test_ranks(invari):
            invari.assert_permutation_invariant(longest, [])
    """
    result = own.run(body, "--invari-replay")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "E * --invari-replay needs the folder that holds the rankings: --invari-records=DIR, or *",
            '>       invari.study(longest, "tasks.jsonl", 5, records="kept")',
            "E *kept: holds no records; run once *",
            "E *assert_permutation_invariant ranks anew, and --invari-replay runs no reranker; deselect it",
        ]
    )
    assert "pytest_invari/" not in result.stdout.str()


def test_rerankers_that_records_would_mistake_for_each_other_are_refused(own: Own) -> None:
    result = own.run(
        """
        def made(sign):
            def rank(context, texts):
                return [sign * float(len(text)) for text in texts]
            return rank

        class Scaled:
            def __init__(self, sign=1):
                self.sign = sign
            def rank(self, request):
                scores = {each.id: self.sign * len(each.text) for each in request.candidates}
                return Ranking.from_scores(request, scores)
            def score(self, context, texts):
                return longest(context, texts)

        class Plain(Scaled):
            pass

        class Told(Scaled):
            def fingerprint(self):
                return {"sign": self.sign}

        def random(context, texts):
            return longest(context, texts)

        ANEW = [made(1), lambda context, texts: texts, Scaled(), Scaled().score]

        @pytest.mark.parametrize("reranker", ANEW)
        def test_refused(invari, reranker):
            with pytest.raises(InvariError, match="would not tell '.*' from others like it; hand over a f"):
                invari.study(reranker, "tasks.jsonl", 5, records="kept")
            assert invari.study(reranker, "tasks.jsonl", 5).plan.views == 5

        @pytest.mark.parametrize("reranker", [longest, Plain, Told(-1), "constant"])
        def test_taken(invari, reranker):
            assert invari.study(reranker, "tasks.jsonl", 5, records="kept").interval("loc").estimate == 1

        @pytest.mark.parametrize("reranker", [random, Told(2)])
        def test_the_name_of_another(invari, reranker):
            with pytest.raises(InvariError, match="another one is called '(random|Told)' here"):
                invari.study(reranker, "tasks.jsonl", 5, records="kept")
        """
    )
    result.assert_outcomes(passed=10)


def test_a_replay_never_takes_a_namesakes_records(own: Own) -> None:
    body = """
        def test_it(invari):
            invari.study(longest, "tasks.jsonl", 5).assert_at_least("loc", 0.8)
    """
    own.run(body, "--invari-records=kept").assert_outcomes(passed=1)
    (own.path / "other.py").write_text("def longest(context, texts):\n    return [0.5 for _ in texts]\n")
    moved = own.run(f"        from other import longest\n{body}", "--invari-records=kept", "--invari-replay")
    moved.assert_outcomes(failed=1)
    moved.stdout.fnmatch_lines(
        ["E *kept: the records of 'longest' are those of test_mine.longest, not of other.longest; run once*"]
    )


def test_a_factory_is_replayed(own: Own) -> None:
    body = """
        class Ranker:
            def rank(self, request):
                return Ranking.from_order(request, sorted(request.ids))

        def make(build):
            return Ranker()

        def test_it(invari):
            invari.study(make, "tasks.jsonl", 5).assert_at_least("loc", 0.8)
    """
    for replay in ((), ("--invari-replay",)):
        own.run(body, "--invari-records=kept", *replay).assert_outcomes(passed=1)


def test_the_fixtures_assertion_knows_the_names_of_the_run_and_its_line_calls_it(own: Own) -> None:
    (own.path / "conftest.py").write_text(
        "def pytest_invari_rerankers(config):\n"
        "    first = lambda context, texts: [-1.5 * place for place, _ in enumerate(texts)]\n"
        "    return {'mine': lambda context, texts: [float(len(text)) for text in texts], 'first': first}\n"
    )
    (own.path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\n[tool.invari.rerankers.brief]\nreranker = "mine"\n'
    )
    result = own.run(
        """
        TASK = Task("q", Context(), tuple(Candidate(text, text) for text in ("a", "bb", "ccc")))

        @pytest.mark.parametrize("name", ["mine", "brief"])
        def test_invariant(invari, name, monkeypatch, tmp_path):
            monkeypatch.chdir(tmp_path)
            invari.assert_permutation_invariant(name, [TASK], views=4)

        def test_dependent(invari):
            with pytest.raises(OrderDependentError) as caught:
                invari.assert_permutation_invariant("first", [TASK])
            line = str(caught.value).partition("to see it again: ")[2]
            assert line.startswith("from pytest_invari import Candidate, Context, Task; invari.assert_perm")
            with pytest.raises(OrderDependentError):
                exec(line, {"invari": invari})

        def test_budget(invari):
            with pytest.raises(InvariError, match="max_calls = 2: the orders of 1 list"):
                invari.assert_permutation_invariant("first", [TASK], max_calls=2)

        def test_shown(invari):
            invari.assert_permutation_invariant("first", [TASK])
        """
    )
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.re_match_lines([r">       invari.assert_permutation_invariant\(\"first\", \[TASK\]\)"])
    assert "pytest_invari/" not in result.stdout.str()
