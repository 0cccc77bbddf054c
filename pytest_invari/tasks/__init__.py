"""Tasks, and the files that users keep them in."""
