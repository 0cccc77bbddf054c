"""Rerank endpoints: the shapes of Cohere, Jina, Voyage, vLLM and Text Embeddings Inference (TEI).

Every one is asked for all candidates, and its results are joined by index, never by text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Cost, Ranking, RankingError, Request
from pytest_invari.rerankers.served.address import Address, ApiKey
from pytest_invari.rerankers.served.client import Client
from pytest_invari.rerankers.served.host import Limits
from pytest_invari.rerankers.served.service import Served, described, part, scores_by_index, unusable, whole

if TYPE_CHECKING:
    from pytest_invari.registry.build import Build


ShapeName = Literal["cohere", "jina", "voyage", "vllm", "tei"]


@dataclass(frozen=True, slots=True)
class Shape:
    """How one service is asked and answers.

    ``query`` and ``documents`` name the fields that hold them; ``top``, where there is one, the field of the
    number of results; ``fixed`` what is sent besides. ``truncate`` is the field that says whether long texts
    are cut, where the service has one. ``key`` is the service's own address and the environment variable that
    usually holds its key, which is sent nowhere else unasked. ``results``, ``score`` and ``tokens`` say where
    the answer holds them.
    """

    path: str
    score: str
    results: Callable[[Any], Any]
    tokens: Callable[[Any, Mapping[str, str]], Any]
    documents: str = "documents"
    top: str = ""
    truncate: str = ""
    needs_model: bool = True
    key: tuple[str, str] = ("", "")
    fixed: tuple[tuple[str, Any], ...] = ()

    def body(self, query: str, texts: Sequence[str], model: str, truncate: bool | None) -> dict[str, Any]:
        """What is sent for one list."""
        return {
            "query": query,
            self.documents: list(texts),
            **({"model": model} if model else {}),
            **({self.top: len(texts)} if self.top else {}),
            **({} if truncate is None else {self.truncate: truncate}),
            **dict(self.fixed),
        }


def _usage(content: Any, headers: Mapping[str, str]) -> Any:
    return part(content, "usage", "total_tokens")


_SHAPES: Mapping[ShapeName, Shape] = {
    "cohere": Shape(
        "/v2/rerank",
        "relevance_score",
        lambda content: part(content, "results"),
        lambda content, headers: part(content, "meta", "tokens", "input_tokens"),
        top="top_n",
        key=("https://api.cohere.com", "COHERE_API_KEY"),
    ),
    "jina": Shape(
        "/v1/rerank",
        "relevance_score",
        lambda content: part(content, "results"),
        _usage,
        top="top_n",
        truncate="truncation",
        key=("https://api.jina.ai", "JINA_API_KEY"),
        fixed=(("return_documents", False),),
    ),
    "voyage": Shape(
        "/v1/rerank",
        "relevance_score",
        lambda content: part(content, "data"),
        _usage,
        top="top_k",
        truncate="truncation",
        key=("https://api.voyageai.com", "VOYAGE_API_KEY"),
        fixed=(("return_documents", False),),
    ),
    # Without the activation that maps scores to (0, 1), where distant ones become equal.
    "vllm": Shape(
        "/v1/rerank",
        "relevance_score",
        lambda content: part(content, "results"),
        _usage,
        top="top_n",
        fixed=(("use_activation", False),),
    ),
    "tei": Shape(
        "/rerank",
        "score",
        lambda content: content,
        lambda content, headers: headers.get("x-compute-tokens"),
        documents="texts",
        truncate="truncate",
        needs_model=False,
        fixed=(("raw_scores", True), ("return_text", False)),
    ),
}


class RerankEndpoint(Served):
    """One call of a rerank endpoint ranks one list."""

    early_fingerprint = True

    def __init__(self, client: Client, name: ShapeName, model: str, truncate: bool | None) -> None:
        super().__init__(client)
        self.name, self.model, self.truncate = name, model, truncate
        self.shape = _SHAPES[name]

    def ask(self, request: Request) -> Ranking:
        """See :class:`Served`."""
        texts = [candidate.text for candidate in request.candidates]
        reply = self.client.post(
            self.shape.path, self.shape.body(str(request.context), texts, self.model, self.truncate)
        )
        content = reply.content
        cost = Cost(calls=1, depth=1, tokens_in=whole(self.shape.tokens(content, reply.headers)))
        told = described(reply, part(content, "model"))
        try:
            scores = scores_by_index(self.shape.results(content), self.shape.score, len(texts))
            return Ranking.from_index_scores(request, scores, cost=cost, diagnostics=told)
        except RankingError as error:
            return unusable(str(error), cost, told)

    def fingerprint(self) -> Mapping[str, object]:
        """Address, shape, model, and whether long texts are cut."""
        truncate = "service's default" if self.truncate is None else self.truncate
        return {
            "reranker": "http",
            "url": str(self.client.address),
            "shape": self.name,
            "model": self.model,
            "truncate": truncate,
        }


def make(
    build: Build,
    url: str,
    shape: ShapeName,
    model: str = "",
    truncate: bool | None = None,
    key_env: str = "",
    key_file: str = "",
    plain_http_key: bool = False,
    concurrency: int = 8,
    timeout: float = 60.0,
    attempts: int = 5,
) -> RerankEndpoint:
    """Ask a rerank endpoint, as in http+tei://localhost:8080; 1 call.

    Args:
        build: what the session offers.
        url: the service's address; its own path is put behind it.
        shape: which protocol it speaks: ``cohere``, ``jina``, ``voyage``, ``vllm`` or ``tei``.
        model: which of its models; TEI serves one only.
        truncate: whether texts that are too long are cut; by default what the service does.
        key_env: the environment variable that holds the key; by default, at the service's own address, its
            usual one: ``COHERE_API_KEY``, ``JINA_API_KEY`` or ``VOYAGE_API_KEY``.
        key_file: a file that holds the key.
        plain_http_key: let a key go to another machine by plain HTTP.
        concurrency: the most requests in flight to one host.
        timeout: the most seconds of one attempt.
        attempts: how often one request is tried.
    """
    chosen = _SHAPES[shape]
    if chosen.needs_model and not model:
        raise InvariError(f"shape {shape!r} needs option 'model', as in ?model=NAME")
    if not chosen.needs_model and model:
        raise InvariError(f"shape {shape!r} serves one model only and takes no option 'model'")
    if truncate is not None and not chosen.truncate:
        raise InvariError(f"shape {shape!r} cannot be told whether to truncate")
    address = Address.parse(url)
    own, usual = chosen.key
    client = Client(
        address,
        ApiKey.of(key_env, key_file, usual if address.origin == own else ""),
        Limits(concurrency, timeout, attempts),
        build.shared,
        plain_http_key=plain_http_key,
    )
    return RerankEndpoint(client, shape, model, truncate)
