"""The fixture ``invari``: it builds studies, and puts what they found on the reports of the tests."""

from __future__ import annotations

import json
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.criteria.outcomes import CriterionNotMetError, InvariUnusedWarning, WithoutInternals
from pytest_invari.criteria.study import Rules, Study
from pytest_invari.errors import InvariError
from pytest_invari.measure.runner import Runner
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan
from pytest_invari.observation.view_settings import settings_of
from pytest_invari.protocol import LabelBinding
from pytest_invari.protocol.usercode import shortened
from pytest_invari.session.hooks import named_rerankers, use_own_metrics
from pytest_invari.session.options import read_settings
from pytest_invari.session.unused_options import STUDIES_ARE_USED
from pytest_invari.settings import OnFailure, Settings, Ties
from pytest_invari.testing.inputs import ObjectRegistry, Tasks, find_tasks, require_whole
from pytest_invari.testing.invariance import VIEWS, Surroundings, assert_invariant
from pytest_invari.text import harmless


class Studies:
    """Builds studies. What they measure is kept for the session: the same arguments are measured once."""

    def __init__(self, registry: ObjectRegistry, settings: Settings, notes: StudyNotes) -> None:
        self._registry, self._settings, self._notes = registry, settings, notes
        self._model = settings.model_settings
        self._shared: dict[object, object] = {}
        self._runners: dict[Path | None, Runner] = {}
        self._start = Path.cwd()

    def study(
        self,
        reranker: object,
        tasks: Tasks,
        views: int,
        k: int | None = None,
        queries: int | None = None,
        seed: int = 0,
        *,
        include_canonical: bool = False,
        on_failure: OnFailure = "strict",
        ties: Ties = "broken",
        labels: LabelBinding = "item",
        blind_ids: bool = False,
        min_queries: int | None = None,
        max_undefined: float | None = None,
        strict: bool | None = None,
        records: str | Path | None = None,
    ) -> Study:
        """A study of *reranker* on *tasks*, each list shown in *views* orders.

        Args:
            reranker: a name as on the command line, a function ``(context, texts)``, an object with
                ``rank(request)``, or a class or factory that makes one.
            tasks: a task file's path, a data set's name, a :class:`TaskSet`, or a list of :class:`Task`.
            views: the number of orders, 2 at least.
            k: the length of the lists; that of the tasks' own where they tell it.
            queries: the first this many; all of them without it.
            seed: another seed draws other orders.
            include_canonical: this and the next ones mean what a suite's keys of these names mean.
            on_failure: see there.
            ties: see there.
            labels: see there.
            blind_ids: see there.
            min_queries: see there.
            max_undefined: see there.
            strict: whether an undecided assertion fails; that of the run (``--invari-strict``) without it.
            records: the folder in which rankings are kept and looked for; that of the run
                (``--invari-records``) without it. Under ``--invari-replay`` all come from there.

        Raises:
            InvariError: reranker or tasks are unknown or cannot be read, the lists have too few orders, or
                records would mistake the reranker for another, are damaged or lack what is replayed.
        """
        __tracebackhide__ = True
        with WithoutInternals():
            require_whole("k", k, 1)
            require_whole("queries", queries, 1)
            chosen: dict[str, Any] = {
                "views": views,
                "view_seed": seed,
                "include_canonical": include_canonical,
                "on_failure": on_failure,
                "ties": ties,
                "labels": labels,
                "blind_ids": blind_ids,
            }
            named = {"min_queries": min_queries, "max_undefined": max_undefined}
            decided: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
            _require_possible(chosen, Plan)
            _require_possible(decided, Rules)
            spec = self._registry.spec(reranker)
            dataset, length = self._registry.dataset(tasks, k)
            plan = Plan(dataset, length, queries, **chosen)
            folder = self._folder(records)
            runner = self._runner(folder)
            subject = Subject(spec, plan)
            if folder is not None:
                self._registry.require_lasting(reranker)
            runner.check(subject)
            if folder is not None and self._settings.replay:
                self._registry.require_same(reranker, runner.fingerprint(subject), folder)
        rules = Rules(**decided, strict=self._settings.strict if strict is None else strict)
        measure = partial(runner.measure, subject)
        made = Study(measure, subject.shown_reranker, plan, rules, self._notes.add)
        self._notes.add_study(made)
        return made

    def assert_permutation_invariant(
        self,
        reranker: object,
        tasks: Tasks,
        *,
        k: int | None = None,
        queries: int | None = None,
        views: int = VIEWS,
        orders: Iterable[Sequence[str]] = (),
        max_calls: int = 1000,
    ) -> None:
        """As :func:`pytest_invari.assert_permutation_invariant`, in this run.

        A name may be one that a conftest's hook or pyproject.toml gives, and the language model is the run's.
        It always ranks anew.

        Raises:
            InvariError: also under ``--invari-replay``, which runs no reranker.
        """
        __tracebackhide__ = True
        with WithoutInternals():
            if self._settings.replay:
                raise InvariError(
                    "assert_permutation_invariant ranks anew, and --invari-replay runs no reranker; "
                    "deselect it"
                )
            lists = find_tasks(self._registry, tasks, k, queries)
        call = "invari.assert_permutation_invariant"
        surroundings = Surroundings(self._registry, self._model, self._shared, call)
        assert_invariant(reranker, lists, views, orders, max_calls, surroundings)

    def _folder(self, records: str | Path | None) -> Path | None:
        """The folder of the records, wherever a test may go later."""
        chosen = self._settings.records if records is None else Path(records).expanduser()
        return None if chosen is None else self._start / chosen

    def _runner(self, folder: Path | None) -> Runner:
        """The one for these records. All share what is loaded."""
        if self._settings.replay and folder is None:
            raise InvariError(
                "--invari-replay needs the folder that holds the rankings: --invari-records=DIR, or the "
                "study's records"
            )
        if folder not in self._runners:
            self._runners[folder] = Runner(
                self._registry,
                self._model,
                folder,
                self._settings.replay,
                retry_failed=self._settings.retry_failed,
                show_progress=False,
                shared=self._shared,
            )
        return self._runners[folder]


class StudyNotes:
    """What the studies of a test found, until its report is made: a section ``invari`` and user properties.

    It is a plugin of a run that uses the fixture. The line of a failed criterion is shown as it is, so that
    summaries and JUnit begin with the figure.
    """

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, Any]] = {}
        self._new: list[Study] = []
        self._made: list[tuple[Study, pytest.Item]] = []

    def add(self, line: str, values: dict[str, Any]) -> None:
        """Take note of a verdict; of the same one once."""
        self._lines[line] = values

    def add_study(self, study: Study) -> None:
        """Take note that a study was made; whether anything is asked of it, the end of the run tells."""
        self._new.append(study)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Warn of studies that nothing was asked of; let pytest-xdist's controller know of the fixture."""
        for study, item in self._made:
            if not study.is_measured:
                _warn_of_unused(study, item)
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[STUDIES_ARE_USED] = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put what was noted since the last report on this one."""
        if self._lines:
            item.add_report_section(call.when, "invari", "\n".join(self._lines) + "\n")
            texts = [json.dumps(values, allow_nan=False) for values in self._lines.values()]
            item.user_properties.extend(("invari", text) for text in texts)
            self._lines = {}
        report = yield
        if report.passed:
            # One that failed or was skipped may have ended before it came to ask.
            self._made += [(study, item) for study in self._new]
        self._new.clear()
        if call.excinfo is not None and isinstance(call.excinfo.value, CriterionNotMetError):
            _begin_with_the_figure(report.longrepr, call.excinfo.value)
        return report


def make_studies(config: pytest.Config) -> Studies:
    """What the fixture gives, with its plugin registered.

    Raises:
        InvariError: a conftest's hook, or an ini key that sets the language model, is wrong.
    """
    __tracebackhide__ = True
    with WithoutInternals():
        try:
            settings = read_settings(config)
            # Again, because conftests of folders below are loaded by now.
            use_own_metrics(config)
        except pytest.UsageError as error:
            raise InvariError(str(error)) from None
        registry = ObjectRegistry(config.rootpath, named_rerankers(config))
    notes = StudyNotes()
    config.pluginmanager.register(notes, STUDIES_ARE_USED)
    return Studies(registry, settings, notes)


def _require_possible(values: Mapping[str, Any], declared: type) -> None:
    """Refuse a value that its setting, as it is *declared*, does not take."""
    for name, value in values.items():
        setting = settings_of(declared)[name]
        shown = "seed" if name == "view_seed" else name
        if setting.choices and value not in setting.choices:
            raise InvariError(f"{shown} must be one of {', '.join(setting.choices)}, not {shortened(value)}")
        if setting.type is int:
            require_whole(shown, value, setting.least)
        if setting.type is float and not setting.least <= value < setting.below:
            limits = f"from {setting.least:g} to below {setting.below:g}"
            raise InvariError(f"{shown} must be {limits}, not {shortened(value)}")


def _warn_of_unused(study: Study, item: pytest.Item) -> None:
    file, line, _ = item.location
    message = f"the study of {harmless(study.name)} was made, and nothing was asserted of it or asked of it"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn_explicit(message, InvariUnusedWarning, file, (line or 0) + 1)
    # By this hook pytest-xdist hears of it too.
    item.ihook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": caught[0], "nodeid": item.nodeid, "when": "runtest", "location": None}
    )


def _begin_with_the_figure(shown: Any, error: CriterionNotMetError) -> None:
    crash = getattr(shown, "reprcrash", None)
    if crash is not None:
        crash.message = str(error)
    for entry in getattr(getattr(shown, "reprtraceback", None), "reprentries", ()):
        entry.lines[:] = [line.replace(f"{type(error).__name__}: ", "", 1) for line in entry.lines]
