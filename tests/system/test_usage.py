import math

import pytest

from directrank.system.usage import own_usage, read_usage, write_usage


def test_what_a_process_used_is_read_as_it_was_written(tmp_path):
    write_usage(tmp_path / "usage.tsv", 2.5, *own_usage())
    used = read_usage(tmp_path / "usage.tsv")
    assert used["s"] == 2.5
    assert used["max_rss"] > 10
    assert used["cpu_time"] > 0


def test_the_processor_time_of_processes_is_added_and_the_largest_memory_counts(tmp_path):
    (usage, _) = own_usage()
    for number in (1, 2):
        write_usage(tmp_path / f"{number}.tsv", 1, *[usage] * number)
    one, two = (read_usage(tmp_path / f"{number}.tsv") for number in (1, 2))
    assert two["cpu_time"] == pytest.approx(2 * one["cpu_time"], abs=0.02)
    assert two["max_rss"] == one["max_rss"]


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
