"""The profiles for clusters and the container recipe, as far as they can be checked here."""

from __future__ import annotations

import dataclasses
import importlib
import re
import shlex

import pytest
import yaml
from snakemake.cli import get_argument_parser

from workflow_runs import ROOT

PLUGINS = {
    "kubernetes": ("snakemake_executor_plugin_kubernetes", "ExecutorSettings"),
    "slurm": ("snakemake_executor_plugin_slurm", "ExecutorSettings"),
    "storage-s3": ("snakemake_storage_plugin_s3", "StorageProviderSettings"),
}


def profile(name: str) -> dict:
    return yaml.safe_load((ROOT / f"workflow/profiles/{name}/config.yaml").read_text())


@pytest.mark.parametrize("name", ["default", "slurm", "kubernetes"])
def test_every_option_of_a_profile_is_one_that_snakemake_has(name):
    known = {
        option.removeprefix("--")
        for action in get_argument_parser()._actions
        for option in action.option_strings
    }
    for key in profile(name):
        if not key.startswith(tuple(f"{plugin}-" for plugin in PLUGINS)):
            assert key in known, key


@pytest.mark.parametrize("name", ["slurm", "kubernetes"])
def test_every_option_of_a_plugin_is_one_that_the_plugin_has(name):
    for plugin, (module, settings) in PLUGINS.items():
        keys = [key for key in profile(name) if key.startswith(f"{plugin}-")]
        if not keys:
            continue
        found = getattr(pytest.importorskip(module), settings)
        known = {field.name.replace("_", "-") for field in dataclasses.fields(found)}
        assert {key.removeprefix(f"{plugin}-") for key in keys} <= known


@pytest.mark.parametrize("rule", ["fit", "fit_long", "fit_gpu"])
def test_slurm_warns_fits_before_their_time_is_up(rule):
    extra = profile("slurm")["set-resources"][rule]["slurm_extra"]
    (option,) = shlex.split(extra)
    signal, seconds = re.fullmatch(r"--signal=([A-Z]+)@(\d+)", option).groups()
    # To the job's steps and not to its shell (B:), which would leave the fits alone.
    assert signal == "TERM"
    assert int(seconds) >= 60
    validation = importlib.import_module("snakemake_executor_plugin_slurm.validation")
    for pattern in validation.get_forbidden_slurm_options():
        assert not re.search(pattern, option)


def instructions() -> list[tuple[str, str]]:
    """The container recipe as (instruction, rest), continued lines joined, comments left out."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]


def test_the_container_takes_locked_packages_and_runs_as_nobody_special():
    recipe = instructions()
    assert {name for name, _ in recipe} <= {
        "FROM",
        "ARG",
        "RUN",
        "WORKDIR",
        "COPY",
        "ENV",
        "USER",
        "CMD",
    }
    assert len({rest.split()[0] for name, rest in recipe if name == "FROM"}) == 1
    (user,) = [rest for name, rest in recipe if name == "USER"]
    assert int(user) > 0
    assert [name for name, _ in recipe].index("USER") > len(recipe) - 4
    assert any("make setup" in rest for name, rest in recipe if name == "RUN")
    assert "--require-hashes -r requirements.lock" in (ROOT / "Makefile").read_text()
    ignored = (ROOT / ".containerignore").read_text().split()
    for name, rest in recipe:
        if name == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source not in ignored


def test_the_image_and_the_profile_are_of_the_packages_version():
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert profile("kubernetes")["container-image"].endswith(f":{version[1]}")
