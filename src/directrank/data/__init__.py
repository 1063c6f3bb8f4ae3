"""Data sets: from an archive as published, or a generator, to memory-mapped ranked lists.

``svmlight`` reads text, ``archives`` opens what holds it, ``catalog`` knows what each data set must
be, ``prepare`` puts the three together, ``prepared`` is the stored form; ``normalised`` stores what
``filters`` and ``normalise`` make of it for runs.
"""
