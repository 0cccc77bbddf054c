"""The self-check: do the verdicts keep their promise on simulated rerankers whose truth is known?"""
