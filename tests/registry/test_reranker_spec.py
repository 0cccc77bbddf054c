"""How the text that names a reranker is read."""

from __future__ import annotations

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.registry.spec import RerankerSpec


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("sgs", "sgs", {}),
        ("  sgs ", "sgs", {}),
        ("sgs:select=2", "sgs", {"select": "2"}),
        ("sgs:select=2,base=zero_shot", "sgs", {"select": "2", "base": "zero_shot"}),
        ("my-own.sgs:a=", "my-own.sgs", {"a": ""}),
        ("pkg.mod:make", "pkg.mod:make", {}),
        ("pkg.mod:Class.make", "pkg.mod:Class.make", {}),
        ("pkg.mod:make:a=1,b=x", "pkg.mod:make", {"a": "1", "b": "x"}),
        ("sgs:base=zero_shot:scorer=x", "sgs", {"base": "zero_shot:scorer=x"}),
        ("sgs:base=pkg.mod:make:a=1", "sgs", {"base": "pkg.mod:make:a=1"}),
        (
            "sgs:base=(biased:beta=1,noise=2),select=3",
            "sgs",
            {"base": "biased:beta=1,noise=2", "select": "3"},
        ),
        (
            "sgs:base=(sgs:base=(biased:beta=1,noise=2),select=2)",
            "sgs",
            {"base": "sgs:base=(biased:beta=1,noise=2),select=2"},
        ),
        ("x:expression=a=b", "x", {"expression": "a=b"}),
    ],
)
def test_text_is_read_into_name_and_options(text: str, name: str, options: dict[str, str]) -> None:
    spec = RerankerSpec.parse(text)
    assert (spec.name, spec.options, spec.label) == (name, options, text.strip())
    assert hash(spec) == hash(RerankerSpec.parse(text))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "reranker '' is not of the form"),
        (":", "reranker ':' is not of the form"),
        ("sgs:", "reranker 'sgs:' is not of the form"),
        ("sgs::select=1", "reranker 'sgs::select=1' is not of the form"),
        ("s gs", "reranker 's gs' is not of the form"),
        ("2nd", "reranker '2nd' is not of the form"),
        ("pkg.mod:make:", "reranker 'pkg.mod:make:' is not of the form"),
        ("sgs:select=1,", "reranker 'sgs:select=1,': '' is not of the form OPTION=VALUE"),
        ("sgs:select=1,base", "reranker 'sgs:select=1,base': 'base' is not of the form OPTION=VALUE"),
        ("sgs:a-b=1", "reranker 'sgs:a-b=1': 'a-b=1' is not of the form OPTION=VALUE"),
        ("sgs:a=1,a=2", "reranker 'sgs:a=1,a=2' gives option 'a' twice"),
    ],
)
def test_other_text_is_refused(text: str, fault: str) -> None:
    with pytest.raises(InvariError) as error:
        RerankerSpec.parse(text)
    assert str(error.value).startswith(fault)


def test_a_label_is_made_where_nobody_wrote_one() -> None:
    assert RerankerSpec("sgs").label == "sgs"
    spec = RerankerSpec("sgs", {"select": 2, "base": "biased:beta=1,noise=2", "on": True})
    assert spec.label == "sgs:select=2,base=(biased:beta=1,noise=2),on=true"
    assert RerankerSpec.parse(spec.label).options["base"] == "biased:beta=1,noise=2"
