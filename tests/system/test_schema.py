"""Reading configuration and checking it."""

import json

import pytest
import yaml

from directrank.system.errors import ConfigError
from directrank.system.schema import check, complete, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-07", 1e-7), ("-2E+4", -2e4), ("1.5e3", 1500.0), ("12", 12), ("0.5", 0.5), ("e5", "e5")],
)
def test_numbers_are_read_as_every_other_language_writes_them(tmp_path, text, value):
    file = tmp_path / "file.yaml"
    file.write_text(f"key: {text}")
    found = read_yaml(file)["key"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("word", ["1e5abc", "2026-e1", "1e", "run-1e-5"])
def test_words_that_begin_like_a_number_stay_words(tmp_path, word):
    file = tmp_path / "file.yaml"
    file.write_text(f"key: {word}")
    assert read_yaml(file) == {"key": word}


def test_json_is_read_with_its_numbers(tmp_path):
    content = {"rates": [1e-07, 3e-06, 0.01], "count": 3}
    file = tmp_path / "file.json"
    file.write_text(json.dumps(content))
    assert read_yaml(file) == content


def test_other_readers_of_yaml_are_not_changed():
    assert yaml.safe_load("1e-07") == "1e-07"


def test_invalid_yaml_is_an_error_with_its_line(tmp_path):
    file = tmp_path / "file.yaml"
    file.write_text("a: 1\nb: [")
    with pytest.raises(ConfigError, match=r"file\.yaml:2"):
        read_yaml(file)


SCHEMA = {
    "additionalProperties": False,
    "x-renamed": {"lr": "rate"},
    "properties": {
        "rate": {"type": "number", "default": 0.1},
        "steps": {"type": "integer"},
        "inner": {
            "additionalProperties": False,
            "x-renamed": {"old": "new"},
            "properties": {"new": {}},
        },
    },
}


def test_a_key_that_is_there_twice_is_an_error_with_its_line(tmp_path):
    file = tmp_path / "file.yaml"
    file.write_text("trials: 3\ntraining: {stack: 1,\n  stack: 2}\n")
    with pytest.raises(ConfigError, match=r"file.yaml:3: not valid YAML: the key 'stack' is there"):
        read_yaml(file)


def test_a_merged_key_may_be_there_again_and_is_overridden(tmp_path):
    file = tmp_path / "file.yaml"
    text = "a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: *b, y: 4}\nd: {<<: *b}\n"
    file.write_text(text)
    found = read_yaml(file)
    assert found["b"] == found["d"] == {"x": 3, "y": 2}
    assert found["c"] == {"x": 3, "y": 4}


def test_a_renamed_key_is_refused_with_its_new_name():
    with pytest.raises(ConfigError, match=r"edition: unknown key 'lr' at the top level") as error:
        check({"lr": 1}, SCHEMA, "edition")
    assert error.value.remedy == "use its new name, 'rate'"
    with pytest.raises(ConfigError, match=r"unknown key 'old' at inner[\s\S]*its new name, 'new'"):
        check({"inner": {"old": 1}}, SCHEMA, "edition")
    with pytest.raises(ConfigError, match="did you mean 'steps'"):
        check({"stepz": 1}, SCHEMA, "edition")


def test_defaults_are_filled_in_where_nothing_is_said():
    assert complete({"steps": 3}, SCHEMA, "settings") == {"rate": 0.1, "steps": 3}
    assert complete({"rate": 0.5}, SCHEMA, "settings") == {"rate": 0.5}
    with pytest.raises(ConfigError, match="settings: "):
        complete({"rate": "fast"}, SCHEMA, "settings")
