"""The BLAS libraries of a process."""

import scipy.linalg  # noqa: F401

from directrank.system import blas


def test_the_libraries_of_numpy_and_scipy_are_limited_together():
    libraries = blas.libraries()
    before = [library["num_threads"] for library in libraries.info()]
    assert len(before) >= 1
    with libraries.limit(limits=1):
        assert {library["num_threads"] for library in libraries.info()} == {1}
    assert [library["num_threads"] for library in libraries.info()] == before
