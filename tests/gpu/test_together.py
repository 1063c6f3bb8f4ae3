"""Runs that a real GPU trains together are the runs that it trains alone."""

import numpy as np
import pandas as pd
import pytest
import torch

from directrank.learners.neural.checkpoints import StoppedError
from directrank.learners.neural.stack import Stack
from directrank.study.run import execute_together
from directrank.system.errors import TrainingError
from stopped_runs import result, stopping_at
from together_runs import BROKEN, RUNS, assert_same, folders, trained_alone
from training_data import prepare

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("data") / "web30k_standin")


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    """The results of each run alone."""
    return trained_alone(data, tmp_path_factory.mktemp("alone"), device="cuda")


@pytest.fixture(scope="module")
def together(data, tmp_path_factory):
    """The results of the runs together, with one of which the loss is not finite."""
    folder = tmp_path_factory.mktemp("together")
    runs = folders(folder)
    made, plain = [], Stack.train

    def train(self, *arguments):
        made.append((len(self.results), self.captured is not None))
        return plain(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stack, "train", train)
        errors = execute_together([*runs, (BROKEN, folder / "broken")], data, device="cuda")
    assert made == [(15, True)]
    assert errors[:-1] == [None] * len(runs)
    assert isinstance(errors[-1], TrainingError)
    return [out for _, out in runs]


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_runs_trained_together_are_the_runs_trained_alone(number, alone, together):
    assert_same(together[number], alone[number])


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_candidates_are_chosen_by_the_metric_of_the_weights_that_are_kept(number, together):
    fits = pd.read_csv(together[number] / "fits.csv")
    values = pd.read_parquet(together[number] / "per_query.parquet")
    measured = values[values["split"] == "vali"].groupby("trial")["ndcg@5"].mean()
    chosen = fits[fits["selected"]].set_index("trial")["vali_metric"]
    assert np.allclose(measured, chosen, rtol=1e-6)


def test_runs_that_are_stopped_again_and_again_end_as_if_they_were_not(data, tmp_path):
    runs = folders(tmp_path / "whole")
    assert execute_together(runs, data, device="cuda") == [None] * len(runs)
    stops = 0
    for calls in (5, 3, 17, 10**9):
        stop = stopping_at(calls)
        try:
            execute_together(folders(tmp_path / "cut"), data, device="cuda", stop=stop)
        except StoppedError:
            stops += 1
    assert stops >= 2
    for (_, cut), (_, whole) in zip(folders(tmp_path / "cut"), runs, strict=True):
        assert result(cut) == result(whole)
