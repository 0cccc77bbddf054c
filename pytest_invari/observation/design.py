"""Which views are the probe and which the target, settled before anything is ranked (P2 section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_invari.errors import InvariError, counted, unknown_name

SINGLE_VIEW_PROBE = "single_view_probe"

Measure = Literal["exposure", "ranking"]
"""How far two rankings are apart: by the exposure of their items, or by Kendall's tau."""
MEASURES: tuple[Measure, ...] = ("exposure", "ranking")

# A target of two views reused twice would be the probe itself.
_LEAST_TARGET = 3


@dataclass(frozen=True, slots=True)
class Design:
    """An ordered bank of named views, some of which are the probe and some others the target.

    P2 has the bank canonical, 13, 17, 19, 23, 29, 31, 41, the probe canonical, 13 and the target 23, 29, 31,
    41. ``probe_sizes`` are the probes that are compared with the declared one: a smaller one is its
    beginning, a larger one goes on with views of the bank, in its order, that are not in the target.

    Raises:
        InvariError: a name is unknown or given twice; probe and target share a view; the target has fewer
            than three views; the bank cannot fill a probe size.
    """

    bank: tuple[str, ...]
    probe: tuple[str, ...]
    target: tuple[str, ...]
    probe_sizes: tuple[int, ...] = (2, 3, 4)

    def __post_init__(self) -> None:
        for kind, names in (("bank", self.bank), ("probe", self.probe), ("target", self.target)):
            _require_distinct(kind, names)
            for name in names:
                if name not in self.bank:
                    raise unknown_name("view", name, self.bank, where=kind)
        if shared := [name for name in self.probe if name in self.target]:
            raise InvariError(
                f"probe and target share {', '.join(map(repr, shared))}; a target of fresh views holds no "
                "view of the probe"
            )
        if not self.probe or len(self.target) < _LEAST_TARGET:
            raise InvariError(
                f"{counted(len(self.probe), 'view')} in the probe and {len(self.target)} in the target; "
                f"give at least 1 and {_LEAST_TARGET}"
            )
        most = len(self.bank) - len(self.target)
        for size in self.probe_sizes:
            if not 1 <= size <= most:
                raise InvariError(
                    f"probe size {size}: {counted(len(self.bank), 'view')} in the bank, less the "
                    f"{len(self.target)} of the target, can fill probes of 1 to {most}"
                )

    @property
    def probe_views(self) -> tuple[int, ...]:
        """The places in the bank of the declared probe."""
        return self.probe_of(len(self.probe))

    @property
    def target_views(self) -> tuple[int, ...]:
        """The places in the bank of the target."""
        return tuple(self.bank.index(name) for name in self.target)

    @property
    def other_sizes(self) -> tuple[int, ...]:
        """The probe sizes that are not the declared probe's, ascending."""
        return tuple(sorted(set(self.probe_sizes) - {len(self.probe)}))

    @property
    def largest_size(self) -> int:
        """The number of views of the largest probe."""
        return max((len(self.probe), *self.probe_sizes))

    @property
    def family(self) -> tuple[str, ...]:
        """The two contrasts that P2 tests in each block; one where no probe is larger than the declared."""
        names = ["rho_2_minus_0"]
        if self.largest_size > len(self.probe):
            names.append(_gain_name(self.largest_size, len(self.probe)))
        return tuple(names)

    def probe_of(self, size: int) -> tuple[int, ...]:
        """The places in the bank of the probe of *size* views."""
        spare = [name for name in self.bank if name not in self.probe and name not in self.target]
        return tuple(self.bank.index(name) for name in (*self.probe, *spare)[:size])


def statistic_names(design: Design) -> tuple[str, ...]:
    """What :func:`~pytest_invari.independent_views.validity.validate` finds, by name.

    ``rho_0``, ``rho_1`` and ``rho_2`` are P2's, of the probe with a target that reuses none, one or two of
    its views; ``rho_2_removed`` is rho_2 without the distances within the probe; ``rho_2_minus_0`` is Δ2−0.
    ``rho_0_probe_4`` is rho_0 of a probe of 4 views, ``rho_0_probe_4_minus_2`` that less rho_0.
    ``r2_probe_2`` is the held-out R² of the probe, ``r2_probe_2_and_4`` that of the probe and the largest one
    together, ``r2_gain`` the difference. ``jaccard_probe_2_and_4`` is of the quarters of the queries that
    these two call the least stable. Each is there for exposure and, with ``ranking_`` in front, for Kendall's
    tau. What needs a probe larger than the declared one is missing where there is none.
    """
    base, largest = len(design.probe), design.largest_size
    names = ["rho_0", "rho_1", "rho_2", "rho_2_removed", "rho_2_minus_0"]
    for size in design.other_sizes:
        names += [f"rho_0_probe_{size}", _gain_name(size, base)]
    names.append(f"r2_probe_{base}")
    if largest > base:
        names += [f"r2_probe_{base}_and_{largest}", "r2_gain", f"jaccard_probe_{base}_and_{largest}"]
    return tuple(prefixed(measure, name) for measure in MEASURES for name in names)


def prefixed(measure: Measure, name: str) -> str:
    """The name of a statistic under one of the measures."""
    return name if measure == "exposure" else f"{measure}_{name}"


def _gain_name(size: int, base: int) -> str:
    return f"rho_0_probe_{size}_minus_{base}"


def _require_distinct(kind: str, names: Sequence[str]) -> None:
    if repeated := sorted({name for name in names if list(names).count(name) > 1}):
        raise InvariError(f"{kind}: {', '.join(map(repr, repeated))} given twice; name each view once")
