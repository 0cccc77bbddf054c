"""Redaction: what is taken for a secret, and what is not."""

from __future__ import annotations

import pytest

from pytest_invari.text import is_secret_name, without_secrets

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
        ("http+tei://me:p@w@host/x is away", "http+tei://(hidden)@host/x is away"),
        ("https://me:p/w@host", "https://(hidden)@host"),
        ("https://me:p?w@host", "https://(hidden)@host"),
        ("chat://host:8000?model=m@v1", "chat://host:8000?model=m@v1"),
        ("http://host:8000/@me/x, me@host", "http://host:8000/@me/x, me@host"),
        ("header Authorization: Bearer abcdefghijk", "header Authorization: (hidden)"),
        ("{'Authorization': 'Basic abc'}", "{'Authorization': '(hidden)'}"),
        ("Authorization: Bearer abcdefg", "Authorization: (hidden)"),
        ("Set-Cookie: session=abc; csrf=def; x=y, k=3", "Set-Cookie: (hidden), k=3"),
        ("401 for Basic YWxpY2U6cHc=", "401 for Basic (hidden)"),
        ("password: hunter2 was refused", "password: (hidden) was refused"),
        ("password: swordfish, user: bob", "password: (hidden), user: bob"),
        ("password: swordfish user: bob", "password: (hidden) user: bob"),
        ("password: swordfish\nuser bob", "password: (hidden)\nuser bob"),
        ("password = sword fish", "password = (hidden) fish"),
        ("'secret': 'sword fish'", "'secret': '(hidden) fish'"),
        ("secret: aBcDeFgH was refused", "secret: (hidden) was refused"),
        ("token: abcdefghijklmnop was refused", "token: (hidden) was refused"),
        ("passwd:abc def", "passwd:(hidden) def"),
        ("401 for bearer abcdefghijk", "401 for bearer (hidden)"),
        ("KeyError: 'title'; pad_token=7, max_tokens=64", "KeyError: 'title'; pad_token=7, max_tokens=64"),
        ("sgs:select=2,base=zero_shot", "sgs:select=2,base=zero_shot"),
    ],
)
def test_texts_lose_their_secrets_and_nothing_else(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "/etc/passwd: No such file or directory",
        "passwd: permission denied",
        "passwd: Authentication token manipulation error",
        "The Secret: Dare to Dream",
        "Basic Instinct (1992)",
        "password: must be set",
        "unexpected token: a comma was expected",
        "the token is missing, the password too",
    ],
)
def test_prose_is_left_alone(text: str) -> None:
    assert without_secrets(text) == text


def test_values_of_secret_environment_variables_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERE_KEY", "co-12345678")
    monkeypatch.setenv("SHORT_TOKEN", "abc")
    monkeypatch.setenv("FAVOURITE_FILM", "The Apartment")
    text = "co-12345678 abc The Apartment"
    assert without_secrets(text) == "(hidden) abc The Apartment"


def test_a_secret_that_begins_with_another_is_hidden_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERE_KEY", "co-12345678")
    monkeypatch.setenv("JINA_KEY", "co-12345678-and-more\n")
    assert without_secrets("co-12345678-and-more co-12345678") == "(hidden) (hidden)"
