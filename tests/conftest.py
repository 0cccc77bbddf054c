"""Property-based tests draw the same examples in every run."""

from hypothesis import settings

# --hypothesis-profile=default draws others.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")
