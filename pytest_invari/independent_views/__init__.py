"""Does the instability of a few views foretell that of fresh ones? (P2: independent-view validation)."""

from pytest_invari.independent_views.distances import ViewDistances, exposure_vectors, view_distances
from pytest_invari.independent_views.report import as_json, format_validity
from pytest_invari.independent_views.validity import Finding, Validity, adjust_family, validate
from pytest_invari.observation.design import Design, statistic_names

__all__ = [
    "Design",
    "Finding",
    "Validity",
    "ViewDistances",
    "adjust_family",
    "as_json",
    "exposure_vectors",
    "format_validity",
    "statistic_names",
    "validate",
    "view_distances",
]
