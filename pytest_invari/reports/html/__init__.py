"""The page of ``--invari-html``: one file with every verdict, and pictures that show what is behind it.

What a picture needs beyond a subject's figures is reduced to plain values where the subject was measured
(:mod:`~pytest_invari.reports.html.data`); the rest is drawn where the file is written.
"""
