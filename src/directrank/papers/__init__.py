"""From result files to the papers' figures, tables and claims; one module per paper.

A paper is found by its name: ``directrank.papers.<paper>`` with a dictionary ``PRODUCTS`` and,
where its claims are evaluated, a dictionary ``CLAIMS``. A new paper is a new module.
"""
