"""Does a reranker change its mind when the same candidates arrive in another order?

PYTEST_DONT_REWRITE: where the checkout is on sys.path, pytest would mark this package for the rewriting of
assertions and warn that it is imported already; no module here relies on rewritten assertions.
"""
