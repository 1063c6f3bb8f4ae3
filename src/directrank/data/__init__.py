"""Data sets, from a published archive or a generator to memory-mapped ranked lists.

``svmlight`` reads text, ``archives`` opens archives, ``catalog`` describes each data set,
``prepare`` combines the three, and ``prepared`` is the stored form; ``normalised`` stores the data
after ``filters`` and ``normalise`` for runs.
"""
