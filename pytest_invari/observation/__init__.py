"""Observation: the views of each query, and the rankings that come back."""
