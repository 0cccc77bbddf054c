"""The first stage against its formula written out with dense matrices."""

import numpy as np
import numpy.typing as npt
import pytest

from pytest_invari.datasets.first_stage import ItemCosine
from pytest_invari.datasets.split import Ratings, Split, split_by_time


def random_split(seed: int, users: int = 12, items: int = 25) -> Split:
    generator = np.random.default_rng(seed)
    rows = [
        (user, item, generator.choice([2.0, 3.5, 4.0, 5.0]), moment)
        for user in range(users)
        for moment, item in enumerate(generator.permutation(items)[: generator.integers(10, items - 5)])
    ]
    user, item, rating, timestamp = map(np.array, zip(*rows, strict=True))
    return split_by_time(Ratings(user, item, rating.astype(np.float32), timestamp))


def dense_scores(cut: Split) -> npt.NDArray[np.float64]:
    shape = (len(cut.users), len(cut.items))
    positives, liked = np.zeros(shape), np.zeros(shape)
    for user in range(shape[0]):
        for index in range(cut.first[user], cut.training_end[user]):
            positives[user, cut.item[index]] = cut.rating[index] >= 4
        liked[user, cut.liked(user)] = 1
    with np.errstate(invalid="ignore"):
        rows = np.nan_to_num(positives / np.linalg.norm(positives, axis=1, keepdims=True))
        columns = np.nan_to_num(rows / np.linalg.norm(rows, axis=0, keepdims=True))
    return np.array(liked @ columns.T @ columns)


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_the_sum_of_cosines_to_the_liked_items(seed: int) -> None:
    cut = random_split(seed)
    users = np.arange(len(cut.users))[::2]
    expected = dense_scores(cut)[users]
    for row, user in enumerate(users):
        expected[row, cut.seen(int(user))] = -np.inf
    np.testing.assert_allclose(ItemCosine(cut).scores(users), expected, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_unseen_items_are_ranked_by_score_then_popularity_then_id(seed: int) -> None:
    cut = random_split(seed)
    stage = ItemCosine(cut)
    users = np.arange(len(cut.users))
    scores = stage.scores(users)
    for user, found in enumerate(stage.ranked(users)):
        rest = [item for item in range(len(cut.items)) if item not in cut.seen(user)]
        rest.sort(key=lambda item: (-scores[user, item], -stage.popularity[item], item))
        assert found.tolist() == rest


def test_list_is_short_where_fewer_items_are_unseen() -> None:
    cut = random_split(0)
    (found,) = ItemCosine(cut).ranked(np.array([3]))
    assert len(found) == len(cut.items) - len(set(cut.seen(3).tolist()))


def test_user_without_liked_items_gets_the_popular_ones() -> None:
    rows = [(1, item, 2.0, item) for item in range(10)]
    rows += [(user, item, 5.0, item) for user in (2, 3) for item in range(10 * (user - 1), 10 * user)]
    rows += [(4, item, 5.0, item) for item in range(20, 30)]
    user, item, rating, timestamp = map(np.array, zip(*rows, strict=True))
    cut = split_by_time(Ratings(user, item, rating.astype(np.float32), timestamp))
    (found,) = ItemCosine(cut).ranked(np.array([0]))
    assert cut.items[found][:9].tolist() == [20, 21, 22, 23, 24, 25, 26, 10, 11]


def test_head_is_the_fewest_popular_items_with_half_of_the_training_positives() -> None:
    cut = random_split(2)
    stage = ItemCosine(cut)
    head = stage.head()
    counts = stage.popularity
    total = counts.sum()
    assert 0 < head.sum() < len(head)
    assert counts[head].min() >= counts[~head].max()
    assert counts[head].sum() * 2 >= total
    assert (counts[head].sum() - counts[head].min()) * 2 < total
