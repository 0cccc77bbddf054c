"""Criteria: a kind of criterion judges the evidence of one subject."""
