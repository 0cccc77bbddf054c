"""Redaction: what is taken for a secret, and what is not."""

from __future__ import annotations

import pytest

from pytest_invari.redaction import is_secret_name, without_secrets

SECRET = (
    "token", "api_key", "apikey", "openai_api_key", "hf_token", "HF_TOKEN", "auth-token", "client_secret",
    "password", "db.password", "AWS_SECRET_ACCESS_KEY", "Authorization", "credentials",
)  # fmt: skip
PLAIN = (
    "key",
    "sort_key",
    "max_tokens",
    "batch_tokens",
    "pad_token",
    "tokenizer",
    "passes",
    "secretary",
    "base",
)


@pytest.mark.parametrize("name", SECRET)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", PLAIN)
def test_names_that_only_look_like_it_are_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http:api_key=abc,select=2", "http:api_key=(hidden),select=2"),
        ("{'api_key': 'abc', 'k': 3}", "{'api_key': '(hidden)', 'k': 3}"),
        ("https://me:pw@host/x?token=abc&k=3", "https://(hidden)@host/x?token=(hidden)&k=3"),
        ("header Authorization: Bearer abcdefghijk", "header Authorization: (hidden) (hidden)"),
        ("401 for bearer abcdefghijk", "401 for bearer (hidden)"),
        ("KeyError: 'title'; pad_token=7, max_tokens=64", "KeyError: 'title'; pad_token=7, max_tokens=64"),
        ("sgs:select=2,base=zero_shot", "sgs:select=2,base=zero_shot"),
    ],
)
def test_texts_lose_their_secrets_and_nothing_else(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


def test_values_of_secret_environment_variables_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERE_KEY", "co-12345678")
    monkeypatch.setenv("SHORT_TOKEN", "abc")
    monkeypatch.setenv("FAVOURITE_FILM", "The Apartment")
    text = "co-12345678 abc The Apartment"
    assert without_secrets(text) == "(hidden) abc The Apartment"
