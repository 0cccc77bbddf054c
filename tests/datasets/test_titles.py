"""Titles read as people write them."""

import pytest

from pytest_invari.datasets.titles import readable_title


@pytest.mark.parametrize(
    ("stored", "readable"),
    [
        ("Matrix, The (1999)", "The Matrix (1999)"),
        ("Toy Story (1995)", "Toy Story (1995)"),
        ("Fish Called Wanda, A (1988)", "A Fish Called Wanda (1988)"),
        ("American Tail, An (1986)", "An American Tail (1986)"),
        ("Misérables, Les (1995)", "Les Misérables (1995)"),
        ("Lover, The (Amant, L') (1992)", "The Lover (L'Amant) (1992)"),
        ("Boot, Das (Boat, The) (1981)", "Das Boot (The Boat) (1981)"),
        (
            "Good, the Bad and the Ugly, The (Buono, il brutto, il cattivo, Il) (1966)",
            "The Good, the Bad and the Ugly (Il Buono, il brutto, il cattivo) (1966)",
        ),
        (
            "Vitelloni, I (a.k.a. Young and the Passionate, The) (1953)",
            "I Vitelloni (a.k.a. The Young and the Passionate) (1953)",
        ),
        ("Cry, the Beloved Country (1995)", "Cry, the Beloved Country (1995)"),
        ("Monsters, Inc. (2001)", "Monsters, Inc. (2001)"),
        ("I Love You, Man (2009)", "I Love You, Man (2009)"),
        ("Tinker, Tailor, Soldier, Spy (1979)", "Tinker, Tailor, Soldier, Spy (1979)"),
        ("Seven (a.k.a. Se7en) (1995)", "Seven (a.k.a. Se7en) (1995)"),
        ("Babylon 5", "Babylon 5"),
        ("  Angst  (1983) ", "Angst (1983)"),
    ],
)
def test_articles_stand_in_front(stored: str, readable: str) -> None:
    assert readable_title(stored) == readable


def test_year_is_added_where_it_is_kept_apart() -> None:
    assert readable_title("Deer Hunter, The ", 1978) == "The Deer Hunter (1978)"
