"""Rerankers that a service answers for: rerank endpoints and chat endpoints, over HTTP."""
