"""How well probes predict the target on queries that a regression has not seen (P2 section 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from pytest_invari.independent_views.replicated import Replicated
from pytest_invari.metrics.arrays import Bools, Floats, Integers
from pytest_invari.statistics.correlation import CONSTANT_VALUES
from pytest_invari.statistics.resampling import Resamples

FOLDS = 5
FEWER_THAN_5_QUERIES = "fewer_than_5_queries"
EMPTY_FOLD = "empty_fold"
COLLINEAR_PROBES = "collinear_probes"

# A variance this small beside its second moment, or a determinant beside its product, is rounding.
_ROUNDING = 1e-12


def query_folds(query_ids: Sequence[str]) -> Integers:
    """The fold of each query, int64 (N,): its id's SHA-256 modulo 5, the same on every machine."""
    digests = [hashlib.sha256(query_id.encode()).hexdigest() for query_id in query_ids]
    return np.array([int(digest, 16) % FOLDS for digest in digests], np.int64)


def held_out_r2(
    predictors: Sequence[Floats], outcome: Floats, folds: Integers, resamples: Resamples
) -> Replicated:
    """R² = 1 − ΣSSE / ΣSST over five folds, each predicted by least squares from the other four.

    There is an intercept; SST is about the mean of the fold's training queries. A resample keeps each query's
    fold and fits anew. All of it comes from sums of products over the queries of a fold.

    Args:
        predictors: one or more of (N,).
        outcome: (N,).
        folds: (N,), 0 … 4.
        resamples: of the N queries.

    Returns:
        Undefined for fewer than five queries or an empty fold, where the outcome is the same for all queries
        or a predictor for all that train a fit, or where one predictor follows from the others.
    """
    count = len(outcome)
    if count < FOLDS:
        return Replicated.undefined(resamples.replicates, count, FEWER_THAN_5_QUERIES)
    columns = np.column_stack([np.ones(count), *map(_scaled, (*predictors, outcome))])
    products = (columns[:, :, None] * columns[:, None, :]).reshape(count, -1)
    members = [np.flatnonzero(folds == fold) for fold in range(FOLDS)]

    def moments(weights: Floats) -> Floats:
        """Sums of products (b, 5, q, q) of the columns (1, predictors, outcome) within each fold."""
        sums = [weights[:, chosen] @ products[chosen] for chosen in members]
        width = columns.shape[1]
        return np.stack(sums, axis=1).reshape(len(weights), FOLDS, width, width)

    (value,), (reason,) = _r2(moments(np.ones((1, count))))
    if reason:
        return Replicated.undefined(resamples.replicates, count, reason)
    replicates = np.concatenate([_r2(moments(block))[0] for block in resamples.blocks()])
    return Replicated(float(value), replicates, count)


def _r2(tests: Floats) -> tuple[Floats, list[str]]:
    """R² (b,) from the moments (b, 5, q, q) of the folds, with a reason where it is NaN and "" elsewhere."""
    training = tests.sum(axis=1, keepdims=True) - tests
    slopes, means, is_constant, is_collinear = _fits(training)
    intercepts = means[..., -1:] - (slopes * means[..., :-1]).sum(axis=-1, keepdims=True)
    # The columns times these are the residuals, and the deviations from the training mean.
    minus_one = np.full_like(intercepts, -1.0)
    residual = np.concatenate([intercepts, slopes, minus_one], axis=-1)
    deviation = np.concatenate([means[..., -1:], np.zeros_like(slopes), minus_one], axis=-1)
    unexplained, total = (
        np.einsum("bfi,bfij,bfj->b", vector, tests, vector) for vector in (residual, deviation)
    )
    is_flat = total <= _ROUNDING * tests[..., -1, -1].sum(axis=1)
    is_empty: Bools = tests[:, :, 0, 0].min(axis=1) == 0
    faults = {
        EMPTY_FOLD: is_empty,
        CONSTANT_VALUES: is_flat | is_constant.any(axis=1),
        COLLINEAR_PROBES: is_collinear.any(axis=1),
    }
    return _where_sound(1 - unexplained / np.where(is_flat, 1.0, total), faults)


def _fits(training: Floats) -> tuple[Floats, Floats, Bools, Bools]:
    """Least squares from the moments (b, 5, q, q) of the training queries.

    Returns the slopes (b, 5, q − 2), the means of predictors and outcome (b, 5, q − 1), and where (b, 5)
    there are no slopes, because a predictor is constant or because predictors are collinear.
    """
    # No training queries at all means an empty fold; any number does for it.
    size = np.maximum(training[..., :1, 0], 1)
    means = training[..., 0, 1:] / size
    spread = training[..., 1:, 1:] - size[..., None] * means[..., :, None] * means[..., None, :]
    between, with_outcome = spread[..., :-1, :-1], spread[..., :-1, -1:]
    variances = np.diagonal(between, axis1=-2, axis2=-1)
    seconds = np.diagonal(training, axis1=-2, axis2=-1)[..., 1:-1]
    determinants: Floats = np.linalg.det(between)
    is_constant: Bools = np.any(variances <= _ROUNDING * seconds, axis=-1)
    is_collinear: Bools = determinants <= _ROUNDING * variances.prod(axis=-1)
    has_no_slopes = (is_constant | is_collinear)[..., None, None]
    solvable = np.where(has_no_slopes, np.eye(between.shape[-1]), between)
    slopes = np.asarray(np.linalg.solve(solvable, with_outcome), np.float64)
    return slopes[..., 0], means, is_constant, is_collinear


def _where_sound(values: Floats, faults: dict[str, Bools]) -> tuple[Floats, list[str]]:
    """The values (b,), NaN under any of the faults (b,), and the first fault of each."""
    reasons = [""] * len(values)
    for reason, is_faulty in faults.items():
        for index in np.flatnonzero(is_faulty):
            reasons[index] = reasons[index] or reason
    return np.where(np.logical_or.reduce(list(faults.values())), np.nan, values), reasons


def _scaled(values: Floats) -> Floats:
    """The values about their mean and within ±1, which changes no R² and keeps the moments' digits."""
    centred = values - values.mean()
    scale = np.abs(centred).max()
    if not scale > _ROUNDING * np.abs(values).max():
        return np.zeros_like(values)
    scaled: Floats = centred / scale
    return scaled
