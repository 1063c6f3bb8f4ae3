"""From result files to the papers' figures, tables and claims; one folder per paper.

A paper is found by its name: the package ``directrank.papers.<paper>`` has a dictionary
``PRODUCTS`` and, where its claims are evaluated, a file ``claims.yaml``. They name functions of the
paper's modules, which are imported when they are called. No paper imports another one; what they
share is in :mod:`directrank.papers.shared`.
"""
