"""``python -m pytest_invari.records export DIR FILE`` and ``import FILE DIR``: rankings as JSON Lines."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_invari.errors import InvariError, counted
from pytest_invari.records.exchange import export_rankings, import_rankings
from pytest_invari.records.record import Record
from pytest_invari.text import harmless

PROGRAM = "python -m pytest_invari.records"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; a mistake is one line on standard error and exit status 2."""
    given = _parser().parse_args(arguments)
    try:
        if given.command == "export":
            record = export_rankings(given.folder, given.file)
            done = [f"exported {_described(record)} to {given.file}"]
        else:
            record = import_rankings(
                given.file,
                given.folder,
                reranker=given.reranker,
                tasks=given.tasks,
                dataset=given.dataset,
            )
            done = [
                f"imported {_described(record)} to {record.path}",
                f"judge them: {_replay(given, record)}",
            ]
    except InvariError as error:
        print(harmless(f"error: {error}"), file=sys.stderr)
        return 2
    print(*map(harmless, done), sep="\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(PROGRAM, description="Rankings as JSON Lines, one view a line.")
    commands = parser.add_subparsers(dest="command", required=True)
    out = commands.add_parser("export", help="write the rankings of one reranker on one data set to a file")
    out.add_argument("folder", type=Path, metavar="DIR", help="of --invari-records, or a folder in it")
    out.add_argument("file", type=Path, metavar="FILE")
    back = commands.add_parser("import", help="keep the rankings of a file, to be judged by --invari-replay")
    back.add_argument("file", type=Path, metavar="FILE")
    back.add_argument("folder", type=Path, metavar="DIR", help="of --invari-records")
    back.add_argument(
        "--reranker", default="", metavar="NAME", help="what made them (default: the file's name)"
    )
    back.add_argument(
        "--tasks",
        type=Path,
        metavar="FILE",
        help="the task file that was ranked: texts, relevance, groups (default: ids are all that is known)",
    )
    back.add_argument(
        "--dataset",
        default="",
        metavar="NAME",
        help="what was ranked (default: the name of the task file, without one of the file)",
    )
    return parser


def _described(record: Record) -> str:
    queries, rankings = len(record.tasks().tasks), len(record.read())
    return (
        f"{counted(rankings, 'ranking')} of {counted(queries, 'query')} by {record.subject.reranker} on "
        f"{record.subject.dataset}, K={record.subject.k},"
    )


def _replay(given: argparse.Namespace, record: Record) -> str:
    subject = record.subject
    dataset = given.tasks if given.tasks is not None and not given.dataset else subject.dataset
    options = {"suite": "SUITE", "reranker": subject.reranker, "dataset": dataset, "k": subject.k}
    asked = [f"--invari-{name}={value}" for name, value in options.items()]
    return shlex.join(["pytest", *asked, f"--invari-records={given.folder}", "--invari-replay"])


if __name__ == "__main__":
    sys.exit(main())
