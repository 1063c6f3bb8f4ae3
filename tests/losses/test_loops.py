"""What compiled loops must not do, so that the same data always give the same bytes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from directrank import kernels
from directrank.kernels.compiling import OPTIONS, inlined

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


@pytest.mark.parametrize("module", [path.stem for path in MODULES if path.stem != "__init__"])
def test_compiled_functions_call_only_parts_that_are_inlined(module):
    # A process may call another copy of a part that is not: see kernels/compiling.py.
    names = vars(import_module(f"{kernels.__name__}.{module}"))
    compiled = {name: value for name, value in names.items() if isinstance(value, Dispatcher)}
    called = {
        name
        for function in compiled.values()
        for name in function.py_func.__code__.co_names
        if name in compiled
    }
    assert [name for name in called if not compiled[name].targetoptions.get("forceinline")] == []


def long_part(x, y):
    """Long enough that the compiler would not inline it of its own accord."""
    total = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            total += np.exp(x[i] - y[j]) * np.log(1 + x[i])
    for i in range(1, len(x)):
        if x[i] > x[i - 1]:
            x[i] = np.sqrt(x[i - 1]) - total
    return total


def names_in_machine_code(mark):
    """The functions in the machine code of a function that calls :func:`long_part` twice."""
    part = mark(long_part)

    def kernel(x, y):
        return part(x, y) + part(y, x)

    kernel = numba.njit(**OPTIONS)(kernel)
    kernel(np.ones(3), np.ones(4))
    (code,) = kernel.inspect_asm().values()
    return re.findall(r"^(\w*long_part\w*):", code, re.MULTILINE)


def test_an_inlined_part_is_no_function_in_the_machine_code():
    assert names_in_machine_code(inlined) == []
    assert len(names_in_machine_code(numba.njit(**OPTIONS))) > 0
