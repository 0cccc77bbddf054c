"""The ranking protocol: what a reranker is given, what it must give back, and how it is asked."""

from pytest_invari.protocol.ranking import Cost, Ranking, RankingError, Status
from pytest_invari.protocol.request import (
    Candidate,
    Context,
    HistoryEntry,
    LabelBinding,
    Request,
    label_order,
)
from pytest_invari.protocol.reranker import Reranker, label_binding_of, rank_all
from pytest_invari.protocol.seeding import seeded_hash, seeded_hashes

__all__ = [
    "Candidate",
    "Context",
    "Cost",
    "HistoryEntry",
    "LabelBinding",
    "Ranking",
    "RankingError",
    "Request",
    "Reranker",
    "Status",
    "label_binding_of",
    "label_order",
    "rank_all",
    "seeded_hash",
    "seeded_hashes",
]
