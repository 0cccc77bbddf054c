"""Suites and their criteria: read, checked, crossed with rerankers, and judged."""
