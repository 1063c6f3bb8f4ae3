import math

from directrank.system import compiling


def test_loops_compile_where_no_cache_can_be_written(monkeypatch):
    def no_cache(**options):
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(compiling, "njit", no_cache)
    assert compiling.compiled(math.sqrt)(4.0) == 2.0
