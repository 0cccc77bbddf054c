"""Tests whether a reranker changes its mind when the same candidates arrive in another order."""
