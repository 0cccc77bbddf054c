"""The project that a user might have."""

from tests.session.conftest import project

__all__ = ["project"]
