"""What compiled loops must not do, so that the same data always give the same bytes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from directrank import kernels

LOOPS = (ast.For, ast.While)

MODULES = sorted(Path(kernels.__file__).parent.glob("*.py"))


def innermost_loops(source: str) -> Iterator[ast.For]:
    """The loops of compiled functions that have no loop within."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        marks = {mark.id for mark in function.decorator_list if isinstance(mark, ast.Name)}
        if not marks & {"compiled", "inlined"}:
            continue
        for loop in ast.walk(function):
            inside = [node for node in ast.walk(loop) if node is not loop]
            if isinstance(loop, ast.For) and not any(isinstance(n, LOOPS) for n in inside):
                yield loop


def divisors(loop: ast.For) -> Iterator[ast.expr]:
    """What a loop divides by."""
    for node in ast.walk(loop):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield node.right
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            yield node.value


def constant_elements_as_divisors(source: str) -> list[str]:
    """The elements of arrays by which an innermost loop divides, the same ones in each turn."""
    found = []
    for loop in innermost_loops(source):
        names = [node for node in ast.walk(loop) if isinstance(node, ast.Name)]
        changing = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        for element in (part for divisor in divisors(loop) for part in ast.walk(divisor)):
            if isinstance(element, ast.Subscript):
                used = {n.id for n in ast.walk(element.slice) if isinstance(n, ast.Name)}
                if not used & changing:
                    found.append(ast.unparse(element))
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_loop_divides_by_a_constant_element(module):
    # Its result would depend on where the arrays lie in memory: see kernels/compiling.py.
    assert constant_elements_as_divisors(module.read_text()) == []


@pytest.mark.parametrize("line", ["x[i] /= tau[b]", "x[i] = y[i] / (2 * tau[b])"])
def test_a_constant_element_is_found(line):
    loop = f"""
@compiled
def kernel(B, n, x, y, tau):
    for b in range(B):
        for i in range(n):
            {line}
"""
    assert constant_elements_as_divisors(loop) == ["tau[b]"]
    assert constant_elements_as_divisors(loop.replace("tau[b]", "tau[i]")) == []
