"""Listwise reranking by a causal language model, on the CPU or on CUDA."""
