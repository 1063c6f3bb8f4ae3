"""The examples in the docstrings of losses and metrics run, and every one has an example."""

from __future__ import annotations

import doctest

import pytest
import torch

from directrank import losses, metrics

FUNCTIONS = [losses.compose, *map(losses.get, losses.REGISTRY), *map(metrics.get, metrics.REGISTRY)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_example_prints_what_it_says(function):
    (example,) = doctest.DocTestFinder(recurse=False).find(function, function.__name__, globs={})
    assert example.examples, "an example"
    torch.manual_seed(0)
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
