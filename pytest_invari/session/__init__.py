"""A pytest run with suites: collection, items, and what they share."""
