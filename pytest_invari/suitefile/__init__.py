"""Suite files: read, checked, and crossed with rerankers to the checks of a run."""
