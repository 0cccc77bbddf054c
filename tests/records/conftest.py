"""Tasks and rerankers as what is measured has them."""

from tests.measure.conftest import by_id, in_batches, project, tasks

__all__ = ["by_id", "in_batches", "project", "tasks"]
