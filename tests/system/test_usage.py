import math
import time

import pytest

from directrank.system.usage import read_usage, write_usage


def test_what_a_process_used_is_read_as_it_was_written(tmp_path):
    write_usage(tmp_path / "usage.tsv", time.perf_counter() - 2.5)
    used = read_usage(tmp_path / "usage.tsv")
    assert used["s"] == pytest.approx(2.5, abs=0.5)
    assert used["max_rss"] > 10
    assert used["cpu_time"] > 0


def test_a_process_that_has_not_ended_has_used_nothing_yet(tmp_path):
    assert read_usage(tmp_path / "absent.tsv") is None
    (tmp_path / "empty.tsv").write_text("", encoding="utf-8")
    assert read_usage(tmp_path / "empty.tsv") is None


def test_a_table_of_snakemake_has_further_columns_and_may_lack_one(tmp_path):
    path = tmp_path / "usage.tsv"
    path.write_text("s\th:m:s\tmax_rss\n12.3\t0:00:12\t456.7\n", encoding="utf-8")
    used = read_usage(path)
    assert (used["s"], used["max_rss"]) == (12.3, 456.7)
    assert math.isnan(used["cpu_time"])
