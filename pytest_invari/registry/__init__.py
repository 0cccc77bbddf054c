"""From what a user writes to a reranker, a data set or a suite, importing only what is chosen."""
