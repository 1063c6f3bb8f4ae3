"""The kernels for a GPU compile to machine code that keeps its variables in registers."""

import re
import subprocess
from pathlib import Path

import pytest
import torch
import triton
from triton.backends import nvidia
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import KernelInterface, mangle_type

from directrank.kernels import dispatch
from directrank.kernels.gpu import draws, norms, optimisers
from directrank.kernels.gpu.lists import EXACT
from directrank.lists.draws import Counters
from directrank.lists.flat import DeviceFlat
from gpu_cases import CASES, given, loss_of, shown

#: Compute capabilities: of an A100, and of an H100 or H200.
ARCHITECTURES = (80, 90)

#: A thread's registers at most; beyond, variables are spilled to memory.
REGISTERS = 255

#: Bytes of the stack that are no spill: the assembler of Triton 3.7, which comes with PyTorch 2.13,
#: keeps one value there in kernels that use as few as 48 registers; that of Triton 3.9 does not.
FRAME = 8 if triton.__version__.startswith("3.7.") else 0

LENGTH = 240


@pytest.fixture
def runs(monkeypatch):
    """The kernels that are run, with their arguments; none of them really is."""
    runs = []

    def launcher(kernel, grid):
        return lambda *arguments, **constants: runs.append((kernel, arguments, constants))

    monkeypatch.setattr(KernelInterface, "__getitem__", launcher)
    monkeypatch.setattr(dispatch, "device_of", lambda values: "cuda")
    return runs


def machine_code(kernel, arguments, constants, architecture):
    """The machine code of a kernel for these arguments."""
    named = dict(zip([parameter.name for parameter in kernel.params], arguments, strict=False))
    named |= constants
    signature, constant = {}, {}
    for parameter in kernel.params:
        value = named[parameter.name]
        # Triton 3.6 cannot pass None for a parameter whose type is declared.
        assert value is not None or not parameter.annotation_type, parameter.name
        if parameter.is_constexpr or value is None:
            signature[parameter.name], constant[(parameter.num,)] = "constexpr", value
        else:
            signature[parameter.name] = parameter.annotation_type or mangle_type(value)
    options = {name: value for name, value in constants.items() if name == "num_warps"}
    source = ASTSource(kernel, signature, constant)
    target = GPUTarget("cuda", architecture, 32)
    return triton.compile(source, target=target, options=EXACT | options).asm["cubin"]


def usage(code, folder):
    """Registers of a thread, and bytes of its stack and of its local memory."""
    file = folder / "kernel.cubin"
    file.write_bytes(code)
    tool = Path(nvidia.__file__).parent / "bin" / "cuobjdump"
    shown = subprocess.run([tool, "-res-usage", file], capture_output=True, text=True, check=True)
    found = re.search(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", shown.stdout)
    return tuple(map(int, found.groups()))


@pytest.mark.parametrize(
    ("flat", "architecture"),
    [*zip((False, True), ARCHITECTURES, strict=True)],
    ids=["padded", "flat"],
)
@pytest.mark.parametrize(("name", "options"), CASES, ids=shown)
def test_a_kernel_compiles_and_spills_nothing(name, options, flat, architecture, runs, tmp_path):
    loss = loss_of(name)
    scores = torch.zeros(2, LENGTH, requires_grad=True)
    options = given(options, 2, scores.detach().flatten() if flat else scores.detach())
    if flat:
        call = scores.flatten(), torch.ones(2 * LENGTH)
        value = loss(*call, lengths=[LENGTH] * 2, **options)
    else:
        value = loss(scores, torch.ones(2, LENGTH), scores > -1, **options)
    value.sum().backward()
    assert_nothing_spilled(runs, architecture, tmp_path)


@pytest.mark.parametrize("length", [60, 120, 400, 1000])
def test_neural_sort_spills_nothing_whatever_the_length(length, runs, tmp_path):
    scores = torch.zeros(2 * length, requires_grad=True)
    loss_of("neural_ndcg")(scores, torch.ones(2 * length), lengths=[length] * 2).sum().backward()
    assert_nothing_spilled(runs, 90, tmp_path)


def assert_nothing_spilled(runs, architecture, folder):
    assert runs, "no kernel was run"
    for kernel, arguments, constants in runs:
        code = machine_code(kernel, arguments, constants, architecture)
        registers, stack, local = usage(code, folder)
        assert registers <= REGISTERS, kernel.fn.__name__
        assert stack + local <= FRAME, f"{kernel.fn.__name__} spills {stack + local} bytes"


def normalise():
    x = torch.zeros(2, 300, 70, requires_grad=True)
    weight = torch.ones(2, 1, 70, requires_grad=True)
    lists = DeviceFlat(torch.tensor([[0, 100], [300, 500]]), 256, 600)
    norms.batch_norm(x, weight, weight, torch.tensor([300, 200]), 1e-5)[0].sum().backward()
    norms.query_norm(x, weight, weight, lists, 1e-5).sum().backward()


def update():
    vectors = [torch.zeros(100) for _ in range(4)]
    models, of_models = torch.zeros(100, dtype=torch.int32), torch.zeros(2)
    optimisers.adagrad(*vectors[:3], models, of_models, 1e-10)
    optimisers.adam(*vectors, models, of_models, of_models, (0.9, 0.999), 1e-8)


def draw():
    counters = Counters.of_models(torch.tensor([1, 2]), torch.tensor([3]), 1)
    lists = DeviceFlat(torch.tensor([[0, 100], [300, 500]]), 256, 600)
    for dtype in (torch.float32, torch.float64):
        draws.factors_of_rows(torch.zeros(2, 300, 70, dtype=dtype), lists, counters, 6554)
        draws.factors_of_pairs(torch.zeros(2, 2, 256, 256, dtype=dtype), counters, 6554)
    draws.uniform_by_document(torch.zeros(600), lists, counters, 2)
    draws.uniform_by_document(torch.zeros(2, 300), torch.ones(2, 300) > 0, counters, 2)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("part", [normalise, update, draw])
def test_the_kernels_of_a_step_compile_and_spill_nothing(part, architecture, runs, tmp_path):
    part()
    assert_nothing_spilled(runs, architecture, tmp_path)
