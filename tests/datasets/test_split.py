"""The split by time against a plain reading of its rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.datasets.split import POSITIVE, Ratings, split_by_time
from pytest_invari.errors import InvariError

Row = tuple[int, int, float, int]


def ratings(rows: list[Row]) -> Ratings:
    user, item, rating, timestamp = zip(*rows, strict=True)
    return Ratings(
        np.array(user, np.int64),
        np.array(item, np.int64),
        np.array(rating, np.float32),
        np.array(timestamp, np.int64),
    )


rows_of_some_users = st.lists(
    st.tuples(
        st.sampled_from([7, 3, 900_000_000_000]),
        st.integers(1, 30),
        st.sampled_from([0.5, 3.5, 4.0, 5.0]),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=60,
)


@given(rows=rows_of_some_users)
@settings(deadline=None)
def test_split_agrees_with_sorting_each_user_by_time_then_item(rows: list[Row]) -> None:
    per_user = {user: [(t, i, r) for u, i, r, t in rows if u == user] for user, *_ in rows}
    for sequence in per_user.values():
        sequence.sort(key=lambda entry: entry[:2])
    per_user = {user: seq for user, seq in sorted(per_user.items()) if len(seq) >= 5}
    if not per_user:
        with pytest.raises(InvariError, match="no user has 5 ratings or more"):
            split_by_time(ratings(rows), minimum=5)
        return
    cut = split_by_time(ratings(rows), minimum=5)
    assert cut.users.tolist() == list(per_user)
    training: list[int] = []
    for index, sequence in enumerate(per_user.values()):
        held = len(sequence) * 8 // 10
        before, after = sequence[:held], sequence[held:]
        seen = [i for _, i, _ in before]
        assert cut.items[cut.seen(index)].tolist() == seen
        assert cut.items[cut.liked(index)].tolist() == [i for _, i, r in before if r >= POSITIVE]
        positives = sorted({i for _, i, r in after if r >= POSITIVE} - set(seen))
        assert cut.items[cut.held_out_positives(index)].tolist() == positives
        for liked_only in (False, True):
            newest = [(i, r) for _, i, r in reversed(before) if r >= POSITIVE or not liked_only]
            history = [(int(cut.items[i]), r) for i, r in cut.history(index, 3, liked_only)]
            assert history == newest[:3]
        training += [i for _, i, r in sequence[: len(sequence) * 7 // 10] if r >= POSITIVE]
    item, offsets = cut.training_positives()
    assert cut.items[item].tolist() == training
    assert offsets.tolist()[-1] == len(training)
    assert len(offsets) == len(per_user) + 1


def test_ninety_ratings_are_cut_after_63_and_72() -> None:
    """0.7 * 90 is 62.999… in floating point."""
    cut = split_by_time(ratings([(1, item, 4.0, item) for item in range(90)]))
    assert (cut.training_end[0], cut.held_out[0], cut.last[0]) == (63, 72, 90)


def test_item_rated_before_is_not_a_held_out_positive() -> None:
    rows = [(1, item, 5.0, item) for item in range(9)] + [(1, 0, 5.0, 100)]
    cut = split_by_time(ratings(rows))
    assert cut.held_out_positives(0).tolist() == [8]
