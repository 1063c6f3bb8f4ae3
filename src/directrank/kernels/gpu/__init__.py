"""The same numbers on a GPU: kernels in Triton, which comes with PyTorch's CUDA builds.

They follow the rules of the CPU's: lists that are padded or flat, the arguments of the formula, and
``NotImplemented`` for options that they do not support. They add numbers up in an order that
depends on nothing but the lists: no atomic additions, and tiles of a fixed size instead of the
fastest ones of the moment, so that a kernel gives the same bytes each time. They never wait for the
GPU, so that they can be captured in a graph.
"""
