"""Rerankers of other libraries behind the ranking protocol."""
