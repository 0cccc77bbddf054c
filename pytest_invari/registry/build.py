"""What a reranker's factory may use to build it, and how methods build the reranker that they wrap."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from pytest_invari.errors import InvariError
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.settings import ModelSettings

if TYPE_CHECKING:
    from pytest_invari.protocol import LabelBinding, Reranker
    from pytest_invari.tasks.task import TaskSet


# A base that names the reranker it belongs to would nest for ever; no sensible method goes this deep.
DEEPEST_NESTING = 8


class Builder(Protocol):
    """What builds a reranker by its name: the registry."""

    def build(self, spec: str | RerankerSpec, build: Build) -> Reranker:
        """Make the reranker that *spec* names; no model is loaded."""
        ...


@dataclass(frozen=True)
class Build:
    """What a reranker's factory may use.

    ``shared`` is one per session: a loaded model is kept there. ``labels`` is how a reranker that shows
    labels binds them unless its own options say otherwise.
    """

    settings: ModelSettings
    tasks: TaskSet
    k: int
    registry: Builder
    shared: dict[object, object] = field(default_factory=dict)
    nesting: tuple[str, ...] = ()
    labels: LabelBinding = "item"

    def within(self, spec: RerankerSpec) -> Build:
        """The same for building *spec*, which no reranker that is being built may have for its base.

        Raises:
            InvariError: bases nest without an end.
        """
        nesting = (*self.nesting, spec.label)
        if spec.label in self.nesting or len(nesting) > DEEPEST_NESTING:
            raise InvariError(f"bases nest without an end ({' > '.join(nesting)}); one of them names itself")
        return replace(self, nesting=nesting)

    def reranker(self, spec: str | RerankerSpec) -> Reranker:
        """Build the base of a method. Identical requests to it are computed once.

        Raises:
            InvariError: as :meth:`Registry.build`.
        """
        from pytest_invari.registry.memo import Memo

        spec = RerankerSpec.parse(spec) if isinstance(spec, str) else spec
        return Memo(self.registry.build(spec, self), spec)
