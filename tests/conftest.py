"""Property-based tests draw the same examples in every run."""

from importlib.util import find_spec

# A run of a suite in the checkout loads this file as well, and needs no hypothesis.
if find_spec("hypothesis") is not None:
    from hypothesis import settings

    # --hypothesis-profile=default draws others.
    settings.register_profile("repeatable", derandomize=True)
    settings.load_profile("repeatable")
