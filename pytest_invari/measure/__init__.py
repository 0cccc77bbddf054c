"""A subject is observed once, and measured from what was observed."""
