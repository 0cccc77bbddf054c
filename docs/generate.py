"""Writes the pages of docs/reference that follow from declarations: ``python docs/generate.py``.

Options, keys of suites, metrics and hooks are declared once, in the code that reads them. These pages are
made of the same declarations, and a test compares.
"""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from pytest_invari import hookspecs
from pytest_invari.metrics import Metric, built_in_metrics
from pytest_invari.metrics.metric import FindingMetric
from pytest_invari.session.options import ALIAS
from pytest_invari.settings import Option, options
from pytest_invari.suitefile import keys as suite_keys
from pytest_invari.suitefile.values import REQUIRED, Several, SuiteKey

__all__ = ["COMMAND", "pages", "renew"]

FOLDER = Path(__file__).parent / "reference"
COMMAND = "python docs/generate.py"
NOTICE = f"<!-- Made by `{COMMAND}` of what the code declares. -->"
NOTHING = "–"

EXITS: Mapping[pytest.ExitCode, str] = {
    pytest.ExitCode.OK: "every item passed, or was undecided without `--invari-strict`",
    pytest.ExitCode.TESTS_FAILED: "a criterion, a comparison with a baseline, or an ordinary test failed; or "
    "[something was not judged](../ci.md#a-gate-that-cannot-be-missed) with `--invari-strict`",
    pytest.ExitCode.INTERRUPTED: "the run was interrupted, as by Ctrl-C, or by SIGTERM where a suite runs",
    pytest.ExitCode.INTERNAL_ERROR: "an error in pytest or in a plugin; please report it",
    pytest.ExitCode.USAGE_ERROR: (
        "something asked for cannot be done: one line says what, before anything is ranked; or a report or "
        "baseline could not be written at the end of a run that passed"
    ),
    pytest.ExitCode.NO_TESTS_COLLECTED: "nothing was selected, as with `-k` and a word that no item has, "
    "without `--invari-strict`",
}
"""What each exit status of a run means, as pytest numbers them."""


def pages() -> dict[str, str]:
    """The text of each page by its file's name."""
    made = {"command-line.md": command_line(), "suite.md": suite(), "hooks.md": hooks()}
    return {name: f"{NOTICE}\n\n{text}" for name, text in made.items()}


def renew() -> None:
    """Write all pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [f"| {' | '.join(map(_cell, line))} |\n" for line in (head, *rows)]
    return "".join([lines[0], "|" + "---|" * len(head) + "\n", *lines[1:]])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(value: object) -> str:
    """A value as code."""
    return f"`{value}`"


# Options


def command_line() -> str:
    """The page of the options and of the exit statuses."""
    rows = [
        [code(each.switch), _value(each), _ini(each), _default(each), _sentence(each.help)]
        for each in options()
    ]
    exits = [[str(int(status)), meaning] for status, meaning in EXITS.items()]
    return f"""# Command line

Every option of `pytest` that this plugin adds, in the order of `pytest --help`. The command line comes
before the ini key, which is written in `pyproject.toml` under `[tool.pytest.ini_options]` or in `pytest.ini`,
and the ini key before what the suite says. A default of {NOTHING} leaves the choice to the suite, or the
option off. An option that may be repeated is a list in the ini file. `{ALIAS}` is short for
`--invari-reranker`, unless another plugin has an option of that name.

{table(["option", "value", "ini key", "default", "meaning"], rows)}
On the command line of a run without a suite, options that only suites heed are refused, since they would be
ignored; ini keys and `addopts` are not. What the fixture `invari` heeds is taken: the options of the language
model, `--invari-strict`, `--invari-records`, `--invari-replay` and `--invari-retry-failed`.
`pytest --invari-list` has the names of suites, rerankers, data sets, metrics and kinds of criteria.

## Exit statuses

{table(["status", "meaning"], exits)}
## Environment variables

{table(["variable", "meaning"], VARIABLES)}
## Other commands

{table(["command", "meaning"], COMMANDS)}"""


VARIABLES = (
    ("`INVARI_CACHE`", "the folder of converted models and data sets (default: `~/.cache/pytest-invari`)"),
    ("`INVARI_DATA`", "the MovieLens folder or zip of the data sets called `movielens`"),
    ("`HF_HUB_OFFLINE`", "1: a model id is looked for in the local cache alone"),
    (
        "`GITHUB_ACTIONS`, `GITHUB_STEP_SUMMARY`",
        "set by GitHub: the report stands in the job's summary, and failed criteria are annotated",
    ),
)
COMMANDS = (
    (
        "`python -m pytest_invari.records export DIR FILE`",
        "write the rankings of one record as [JSON Lines](files.md#rankings-to-exchange)",
    ),
    (
        "`python -m pytest_invari.records import FILE DIR`",
        "keep rankings that were made elsewhere; `--reranker=NAME`, `--tasks=FILE` and `--dataset=NAME` say "
        "of what; exit status 2 where the file has a mistake",
    ),
    ("`python -m pytest_invari.schema`", "print the JSON Schema of [suites](suite.md)"),
    (
        "`python -m pytest_invari.reports.schema`",
        "print the JSON Schema of [reports](files.md#json-report); with `selfcheck`, of the self-check's",
    ),
)


def _value(option: Option) -> str:
    if option.is_flag:
        return NOTHING
    return code(option.metavar) + (", may be repeated" if option.is_repeatable else "")


def _ini(option: Option) -> str:
    if not option.has_ini:
        return NOTHING
    return code(option.key) + (
        ", true or false" if option.is_flag else ", a list" if option.is_repeatable else ""
    )


def _default(option: Option) -> str:
    return code(option.default) if option.default else NOTHING


def _sentence(text: str) -> str:
    """A help text as a sentence of a page; options are code."""
    return re.sub(r"--[a-z][a-z-]+", lambda found: code(found[0]), text[0].upper() + text[1:])


# Suites


def suite() -> str:
    """The page of a suite's keys, and of the metrics that they may name."""
    return f"""# Suite files

A suite is a TOML file whose name ends in `.invari.toml`. [suites.md](../suites.md) explains with examples,
and `python -m pytest_invari.schema` prints the same as JSON Schema. An unknown key, a value of another kind,
or one that cannot be, stops the run with the file and the line (exit status 4). A key that takes several
values takes a single one without brackets too.

{"".join(_sections())}## Metrics

The words for `metric` and `report`. Where there is an *@k*, write the length of the top: `ndcg@5`. Most have
a value for each query; some only one for *all*, and some are findings of an analysis.
[metrics.md](../metrics.md) says what each of them sees.

{table(["metric", "better", "range", "of", "meaning"], map(_metric, built_in_metrics().values()))}"""


def _sections() -> Iterator[str]:
    tables = {"suite": suite_keys.SUITE, "profile": suite_keys.PROFILE, "criterion": suite_keys.CRITERION}
    for name, (form, meaning) in suite_keys.SECTIONS.items():
        yield f"## `{form}`\n\n{meaning[0].upper() + meaning[1:]}.\n\n"
        head = ["key", "value", "default", "meaning"]
        rows = [[code(key.name), _kind(key), _key_default(key), key.description] for key in tables[name]]
        if name == "criterion":
            head.insert(1, "of kind")
            rows = [[row[0], _kinds(key), *row[1:]] for key, row in zip(tables[name], rows, strict=True)]
        yield table(head, rows) + "\n"
        rules = [f"- {rule}\n" for rule in _rules(name)]
        yield "".join([*rules, "\n"] if rules else [])


def _kinds(key: SuiteKey) -> str:
    """The kinds of criteria that have a key."""
    kinds = {code(kind): keys for kind, keys in suite_keys.CRITERION_KINDS.items()}
    kinds |= {"[a hook's](hooks.md)": suite_keys.OWN_KIND}
    having = [kind for kind, keys in kinds.items() if key in keys]
    return "every" if len(having) == len(kinds) else ", ".join(having)


def _rules(section: str) -> Iterator[str]:
    """Which keys go together."""
    if section == "profile":
        yield "Exactly one of `views` and `bank`."
        for key, others in suite_keys.PROFILE_NEEDS.items():
            yield f"{code(key)} needs {' and '.join(map(code, others))}."
        for key, other in suite_keys.PROFILE_EXCLUDES.items():
            yield f"{code(key)} does not go with {code(other)}."
    if section == "criterion":
        yield f"Of kind `metric`, exactly one of {', '.join(map(code, suite_keys.COMPARISONS))}."
        for key, other in (suite_keys.GOES_WITH | suite_keys.NEEDS).items():
            yield f"{code(key)} needs {code(other)}."
        for key, other in suite_keys.EXCLUDES.items():
            yield f"{code(key)} does not go with {code(other)}."


def _kind(key: SuiteKey) -> str:
    several = isinstance(key.kind, Several)
    one = key.kind.kind if isinstance(key.kind, Several) else key.kind
    said = next((words for of, words in WORDS.items() if isinstance(one, of)), "")
    if one == suite_keys.NAME:
        said = "name"
    return (said or words_of(one.schema())) + (", or several" if several else "")


WORDS: Mapping[type, str] = {
    suite_keys.MetricWord: "[metric](#metrics)",
    suite_keys.RerankerWord: "reranker, as on the command line",
}
"""Kinds of values whose JSON Schema is no help to people."""


def words_of(schema: Mapping[str, Any]) -> str:
    """What a JSON Schema accepts, in words."""
    if "anyOf" in schema:
        return " or ".join(map(words_of, schema["anyOf"]))
    if "const" in schema:
        return code(_toml(schema["const"]))
    if "enum" in schema:
        return ", ".join(code(_toml(each)) for each in schema["enum"])
    match schema.get("type"):
        case "array":
            return f"list of {words_of(schema['items'])}"
        case "integer":
            return f"whole number{_limits(schema)}"
        case "number":
            return f"number{_limits(schema)}"
        case "boolean":
            return "`true` or `false`"
        case "object":
            return "table"
        case "string":
            return "text"
    raise ValueError(f"no words for {schema}")


def _limits(schema: Mapping[str, Any]) -> str:
    low = f" from {schema['minimum']:g}" if "minimum" in schema else ""
    return low + (f" to below {schema['exclusiveMaximum']:g}" if "exclusiveMaximum" in schema else "")


def _key_default(key: SuiteKey) -> str:
    if key.default is REQUIRED:
        return "**needed**"
    return NOTHING if key.default in (None, "", (), {}) else code(_toml(key.default))


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:g}" if isinstance(value, float) else str(value)


def _metric(metric: Metric) -> list[str]:
    name = f"{metric.family}@k" if metric.has_cutoff else metric.family
    ends = [f"from {metric.low:g}"] if math.isfinite(metric.low) else []
    ends += [f"to {metric.high:g}"] if math.isfinite(metric.high) else []
    of = {"per_query": "each query", "pooled": "all", "analysis": "all"}[metric.kind]
    if isinstance(metric, FindingMetric):
        of = f"all ({code(metric.analysis)})"
    return [code(name), metric.direction, " ".join(ends), of, metric.description]


# Hooks

HOOKS = sorted(name for name in vars(hookspecs) if name.startswith("pytest_invari_"))


def hooks() -> str:
    """The page of the hooks, from their docstrings."""
    described = "\n".join(_hook(getattr(hookspecs, name)) for name in HOOKS)
    return f"""# Hooks

{_prose(inspect.getdoc(hookspecs) or "")}
{described}"""


def _hook(hook: FunctionType) -> str:
    text, _, rest = (inspect.getdoc(hook) or "").partition("Example::\n")
    example, last = _indented(rest)
    arguments = ", ".join(inspect.signature(hook).parameters)
    imports = "".join(f"import {name}\n" for name in ("os", "pytest") if re.search(rf"\b{name}\.", example))
    return f"""## `{hook.__name__}({arguments})`

{_prose(text)}
```python
# conftest.py
{imports}{_spaced(example)}
```
{_prose(last, before=chr(10))}"""


def _indented(text: str) -> tuple[str, str]:
    """The indented lines at the beginning, dedented, and what follows them."""
    lines = text.splitlines()
    end = next((at for at, line in enumerate(lines) if line[:1].strip()), len(lines))
    return textwrap.dedent("\n".join(lines[:end])).strip("\n"), "\n".join(lines[end:])


def _spaced(body: str) -> str:
    """The example under its imports, as a file has it."""
    return body if body.startswith(("from ", "import ")) else f"\n\n{body}"


def _prose(text: str, before: str = "") -> str:
    """A docstring as Markdown; nothing where there is none."""
    return f"{before}{text.replace('``', '`').strip()}\n" if text.strip() else ""


if __name__ == "__main__":
    renew()
