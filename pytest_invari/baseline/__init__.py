"""A stored baseline: what was measured once, query by query, and what a change has made of it."""
