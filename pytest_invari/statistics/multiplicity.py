"""Many claims at once: p-values that bound the probability of any false claim among them."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float], *, of: int | None = None) -> list[float]:
    """Adjust p-values so that claiming those of α or less errs at all with probability α at most.

    Holm 1979 (Scandinavian Journal of Statistics 6): the i-th smallest of G is multiplied by G − i + 1, none
    comes out below a smaller one, and 1 is the most. P2 adjusts its eight tests so.

    Tests that cannot be judged together are split into families, each with the part of α that its size has in
    all tests. A family is then adjusted by itself, and the whole still errs with probability α at most.

    Args:
        p_values: of one family, in any order.
        of: the number of tests in all families; by default there is only this one.

    Returns:
        The adjusted p-values, in the order given.

    Raises:
        ValueError: a p-value is not between 0 and 1 (NaN is no claim: leave it out), or *of* is too small.
    """
    family = len(p_values)
    total = family if of is None else of
    if total < family:
        raise ValueError(f"a family of {family} tests cannot be part of {total}")
    for p_value in p_values:
        if not 0 <= p_value <= 1:
            raise ValueError(f"a p-value must be between 0 and 1, not {p_value}")
    adjusted = [1.0] * family
    largest = 0.0
    for place, index in enumerate(sorted(range(family), key=p_values.__getitem__)):
        largest = max(largest, (family - place) * total / family * p_values[index])
        adjusted[index] = min(1.0, largest)
    return adjusted
