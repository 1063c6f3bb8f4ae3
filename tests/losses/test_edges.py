"""What losses do with values that no ranking has: each is right, or one error with its remedy."""

from __future__ import annotations

import inspect
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from directrank import losses, metrics, relaxations
from directrank.lists.calls import ranking_loss
from directrank.lists.inputs import NOTHING, checked, examine, examined_before
from directrank.lists.parameters import OPTIONAL, RANGES
from directrank.system.errors import ArgumentError, ConfigError, DirectrankError
from losses_cases import LOSSES, WEIGHTED
from workflow_runs import ROOT

NAN, INF = float("nan"), float("inf")

SCORES = torch.tensor([[0.3, -0.2, 1.0, 0.5], [0.9, 0.1, 0.4, 0.0], [2.0, 1.0, 0.0, 0.0]])
LABELS = torch.tensor([[2.0, 0.0, 1.0, 1.0], [0.0, 2.0, 1.0, 0.0], [1.0, 2.0, 0.0, 0.0]])
MASK = torch.tensor([[True] * 4, [True] * 4, [True, True, True, False]])
LENGTHS = [4, 4, 3]

COMPOSITIONS = {
    f"{metric} under {relaxation}": {
        "metric": {"name": metric, "k": 3},
        "relaxation": relaxation,
        "samples": samples,
    }
    for metric, relaxation, samples in (
        ("err", "neural_sort", 0),
        ("reciprocal_rank", "twin", 0),
        ("average_precision", "blackbox", 0),
        ("ndcg", "sigmoid", 2),
    )
}
#: Losses that are not functions of powers of the labels, or only of their ratios.
WITHOUT_POWERS = {
    "rmse", "ranknet", "listnet", "listmle", "softmax_cross_entropy", "poly1", "pairwise_hinge",
    "sigmoid_cross_entropy", "ordinal", "adr_mse", "approx_ap", "approx_precision",
    "twin_precision", "twin_ap", "twin_nerr", "err under neural_sort", "reciprocal_rank under twin",
    "average_precision under blackbox",
}  # fmt: skip
CASES = [*LOSSES, *COMPOSITIONS]


def loss_of(case: str):
    """The loss, in a form that takes further options only if it has a name."""
    if case in COMPOSITIONS:
        return losses.compose(**COMPOSITIONS[case])
    return lambda *arguments, **options: losses.get(case)(*arguments, **LOSSES[case] | options)


def value_and_gradient(case: str, scores: torch.Tensor, labels=LABELS, mask=MASK, **options):
    torch.manual_seed(0)
    leaf = scores.clone().requires_grad_()
    value = loss_of(case)(leaf, labels, mask, **options)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), gradient


def test_the_cases_hold_every_loss():
    assert {*LOSSES, "composed"} == set(losses.REGISTRY)


@pytest.mark.parametrize("content", [NAN, INF, -INF])
@pytest.mark.parametrize("case", CASES)
def test_a_list_with_an_unknown_score_is_nan_and_the_others_stay_the_same(case, content):
    value, gradient = value_and_gradient(case, SCORES)
    spoiled = SCORES.clone()
    spoiled[1, 2] = content
    spoiled_value, spoiled_gradient = value_and_gradient(case, spoiled)
    assert spoiled_value.isnan().tolist() == [False, True, False]
    assert spoiled_gradient[1, 2].isnan()
    others = torch.tensor([0, 2])
    assert torch.equal(spoiled_value[others], value[others])
    assert torch.equal(spoiled_gradient[others], gradient[others])
    flat, flat_gradient = value_and_gradient(
        case, spoiled[MASK], LABELS[MASK], None, lengths=LENGTHS
    )
    assert flat.isnan().tolist() == [False, True, False]
    assert flat_gradient.isnan().nonzero().min() >= 4
    assert flat_gradient.isnan().nonzero().max() < 8


@pytest.mark.parametrize("case", CASES)
def test_a_query_of_weight_0_is_left_out_whatever_its_scores_are(case):
    spoiled = SCORES.clone()
    spoiled[1] = torch.tensor([NAN, INF, 0.0, -INF])
    expected, slope = value_and_gradient(case, SCORES, weights=[1.0, 0.0, 2.0])
    value, gradient = value_and_gradient(case, spoiled, weights=[1.0, 0.0, 2.0])
    assert torch.equal(value, expected)
    assert value[1] == 0
    assert torch.equal(gradient, slope)
    assert (gradient[1] == 0).all()
    flat, flat_gradient = value_and_gradient(
        case, spoiled[MASK], LABELS[MASK], None, lengths=LENGTHS, weights=[1.0, 0.0, 2.0]
    )
    assert flat[1] == 0
    assert flat_gradient.isfinite().all()


@pytest.mark.parametrize("weight", [-1.0, NAN, INF])
def test_a_weight_that_is_no_factor_is_an_error(weight):
    with pytest.raises(DirectrankError, match="use 0 to leave a query out"):
        losses.ranknet(SCORES, LABELS, MASK, weights=[1.0, weight, 1.0])


@pytest.mark.parametrize("case", CASES)
def test_labels_below_0_are_an_error_that_names_the_mask(case):
    padded = LABELS.masked_fill(~MASK, -1.0)
    with pytest.raises(DirectrankError, match="give mask=labels >= 0"):
        loss_of(case)(SCORES, padded)
    with pytest.raises(DirectrankError, match="give mask=labels >= 0"):
        loss_of(case)(SCORES, padded, torch.ones_like(MASK))
    with pytest.raises(DirectrankError, match="give mask=labels >= 0"):
        loss_of(case)(SCORES.flatten(), padded.flatten().long(), lengths=[4, 4, 4])
    torch.manual_seed(0)
    value = loss_of(case)(SCORES, padded, padded >= 0)
    torch.manual_seed(0)
    assert torch.equal(value, loss_of(case)(SCORES, LABELS, MASK))


@pytest.mark.parametrize("label", [NAN, INF])
@pytest.mark.parametrize("case", CASES)
def test_a_label_that_is_not_finite_is_an_error(case, label):
    spoiled = LABELS.clone()
    spoiled[0, 1] = label
    with pytest.raises(DirectrankError, match="a label is NaN or infinite"):
        loss_of(case)(SCORES, spoiled, MASK)
    with pytest.raises(DirectrankError, match="a label is NaN or infinite"):
        loss_of(case)(SCORES[MASK], spoiled[MASK], lengths=LENGTHS)


@pytest.mark.parametrize("label", [60.0, 126.0, 128.0, 200.0, 1330.0])
@pytest.mark.parametrize("case", CASES)
def test_large_labels_are_right_or_one_error(case, label):
    labels = LABELS.clone()
    labels[0, 0] = label
    options = {"levels": 1024} if case == "ordinal" else {}
    loss = partial(loss_of(case), SCORES, labels, MASK, **options)
    if case == "ordinal" and label > 1023:
        with pytest.raises(ArgumentError, match="a label is 1330, above levels - 1 = 1023"):
            loss()
        return
    if label < (64 if case == "wassrank" else 128) or case in WITHOUT_POWERS:
        assert loss().isfinite().all()
        return
    with pytest.raises(DirectrankError, match="are too large") as caught:
        loss()
    remedy = "smaller base" if case == "wassrank" else 'gain="linear"'
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("case", [case for case in LOSSES if "gain" in inspect.signature(
    losses.get(case)).parameters])  # fmt: skip
def test_the_linear_gain_has_room_for_large_labels(case):
    labels = LABELS.clone()
    labels[0, 0] = 1330.0
    with pytest.raises(DirectrankError, match='choose gain="linear"'):
        loss_of(case)(SCORES, labels, MASK)
    assert loss_of(case)(SCORES, labels, MASK, gain="linear").isfinite().all()


@pytest.mark.parametrize("case", [case for case in LOSSES if "gain" in inspect.signature(
    losses.get(case)).parameters])  # fmt: skip
def test_the_gains_of_burges2006_overflow_one_label_earlier(case):
    """They are 2^(y+1) - 1, and those of exp2 2^y - 1."""
    labels = LABELS.clone()
    labels[0, 0] = 126.0
    assert loss_of(case)(SCORES, labels, MASK, gain="burges2006").isfinite().all()
    labels[0, 0] = 127.0
    assert loss_of(case)(SCORES, labels, MASK).isfinite().all()
    with pytest.raises(ArgumentError, match="are too large"):
        loss_of(case)(SCORES, labels, MASK, gain="burges2006")


def test_gains_whose_sum_overflows_are_an_error_before_one_of_them_does():
    """Their ideal DCG would be infinite, and the loss 0."""
    labels = torch.full((1, 4), 127.0)
    with pytest.raises(DirectrankError, match="are too large"):
        losses.approx_ndcg(SCORES[:1], labels)
    assert losses.approx_ndcg(SCORES[:1].double(), labels).item() < -0.9


@pytest.mark.parametrize("content", [3.0, 200.0, 1e6, -1.0, NAN, INF])
@pytest.mark.parametrize("case", CASES)
def test_masked_labels_may_be_anything(case, content):
    labels = LABELS.masked_fill(~MASK, content)
    options = {"max_label": 2} if case == "twin_nerr" else {}
    value, gradient = value_and_gradient(case, SCORES, **options)
    spoiled_value, spoiled_gradient = value_and_gradient(case, SCORES, labels, **options)
    assert torch.equal(spoiled_value, value)
    assert torch.equal(spoiled_gradient, gradient)


def numbers_of(function) -> list[str]:
    """The options of a function that are numbers or may be None, by their annotation."""
    parameters = inspect.signature(function).parameters.values()
    return [
        p.name
        for p in parameters
        if any(word in str(p.annotation) for word in ("float", "int"))
        and "Sequence" not in str(p.annotation)  # a list of gains, which is examined as a whole
    ]


FUNCTIONS = {
    **{name: losses.get(name) for name in losses.REGISTRY},
    **{name: metrics.get(name) for name in metrics.REGISTRY},
    **{name: relaxations.get(name) for name in relaxations.REGISTRY},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_number_that_a_loss_metric_or_relaxation_takes_has_a_range(name):
    for option in numbers_of(FUNCTIONS[name]):
        assert option in RANGES, f"{option} of {name} needs a range in directrank.lists.parameters"


@pytest.mark.parametrize("case", LOSSES)
def test_every_option_outside_of_its_range_is_an_error_that_names_both(case):
    for option in numbers_of(losses.get(case)):
        wrong = [True, "1", NAN, INF]
        wrong += {"min_label": [], "epsilon": [-1.5]}.get(option, [-1, -0.5])
        wrong += [2.5] if "whole" in RANGES[option][0] else []
        wrong += [0] if "1 or more" in RANGES[option][0] or "above 0" in RANGES[option][0] else []
        wrong += [] if option in OPTIONAL else [None]
        for value in wrong:
            with pytest.raises(ConfigError, match=f"{option} must be"):
                loss_of(case)(SCORES, LABELS, MASK, **{option: value})


@pytest.mark.parametrize("name", relaxations.REGISTRY)
def test_a_relaxation_that_is_called_checks_its_options(name):
    relaxation = relaxations.get(name)
    for option in numbers_of(relaxation):
        for value in [-1, NAN, *([0] if "above 0" in RANGES[option][0] else [])]:
            with pytest.raises(ArgumentError, match=f"{option} must be"):
                relaxation(SCORES, LABELS, MASK, **{option: value})


def test_a_composition_checks_the_options_of_its_parts():
    sigmoid = {"name": "sigmoid", "alpha": 1.0}
    with pytest.raises(ConfigError, match="k must be a whole number, 1 or more, or None, not 0"):
        losses.compose({"name": "ndcg", "k": 0}, sigmoid)
    with pytest.raises(ConfigError, match=r"tau must be a finite number above 0, not 0\.0"):
        losses.composed(SCORES, LABELS, metric="ndcg", relaxation={"name": "lapsum", "tau": 0.0})
    with pytest.raises(ConfigError, match="samples must be"):
        losses.compose("ndcg", sigmoid, samples=-1)
    with pytest.raises(ConfigError, match="noise must be"):
        losses.compose("ndcg", sigmoid, noise=NAN)
    with pytest.raises(DirectrankError, match="above max_label 1"):
        losses.compose({"name": "err", "max_label": 1}, sigmoid)(SCORES, LABELS)


def test_whole_numbers_of_numpy_and_tensors_are_allowed():
    expected = losses.approx_ndcg(SCORES, LABELS, MASK, k=2, alpha=5.0)
    for k, alpha in ((np.int64(2), np.float32(5)), (torch.tensor(2), torch.full((3, 1), 5.0))):
        assert torch.equal(losses.approx_ndcg(SCORES, LABELS, MASK, k=k, alpha=alpha), expected)
    with pytest.raises(ConfigError, match="alpha must be"):
        losses.approx_ndcg(SCORES, LABELS, MASK, alpha=torch.tensor([[5.0], [0.0], [5.0]]))


def numbers_per_query(name: str) -> list[str]:
    return list(losses.needs_of(name).per_list)


@pytest.mark.parametrize("case", LOSSES)
def test_a_tensor_is_a_number_or_one_for_each_query_or_an_error(case):
    """[B] would be one for each document where B is L."""
    square = SCORES[:, :3], LABELS[:, :3], MASK[:, :3]
    for option in numbers_of(losses.get(case)):
        for shape in ((3,), (1, 3), (3, 3), (3, 1, 1), (0,)):
            with pytest.raises(ArgumentError, match=f"{option} must be .* not a tensor") as caught:
                loss_of(case)(*square, **{option: torch.ones(shape)})
            assert ("[3, 1]" in caught.value.remedy) == (option in numbers_per_query(case))
        for queries in (2, 3):
            call = partial(loss_of(case), *square, **{option: torch.ones(queries, 1)})
            if queries == 3 and option in numbers_per_query(case):
                assert call().isfinite().all()
                continue
            with pytest.raises(ArgumentError, match=f"{option} must be .* not a tensor"):
                call()


@pytest.mark.parametrize("case", LOSSES)
def test_a_tensor_of_one_element_is_the_number_in_it(case):
    function = losses.get(case)
    for option in numbers_of(function):
        default = (LOSSES[case] | {"k": 2}).get(option)
        number = default or inspect.signature(function).parameters[option].default or 2
        for lists in ({"mask": MASK}, {"lengths": LENGTHS}):
            values = (SCORES, LABELS) if "mask" in lists else (SCORES[MASK], LABELS[MASK])
            torch.manual_seed(0)
            expected = loss_of(case)(*values, **lists, **{option: number})
            for shape in ((), (1,), (1, 1)):
                torch.manual_seed(0)
                given = torch.full(shape, number)
                found = loss_of(case)(*values, **lists, **{option: given})
                torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("case", LOSSES)
def test_an_array_in_place_of_a_name_is_an_error(case):
    parameters = inspect.signature(losses.get(case)).parameters.values()
    for option in [p.name for p in parameters if isinstance(p.default, str)]:
        for array in (np.array([["a"], ["b"]]), torch.ones(2, 2), pd.Series(["a", "b"])):
            with pytest.raises(ArgumentError):
                loss_of(case)(SCORES, LABELS, MASK, **{option: array})


def test_a_composition_takes_a_number_for_each_query_with_draws_as_well():
    alpha = torch.tensor([[1.0], [2.0], [4.0]])
    relaxation = {"name": "sigmoid", "alpha": alpha}
    expected = losses.approx_ndcg(SCORES, LABELS, MASK, alpha=alpha)
    found = losses.compose("ndcg", relaxation, samples=2, noise=0.0)(SCORES, LABELS, MASK)
    torch.testing.assert_close(found, expected)
    for shape in ((), (1,), (1, 1)):
        one = {"name": "sigmoid", "alpha": torch.full(shape, 4.0)}
        found = losses.compose("ndcg", one, samples=2, noise=0.0)(SCORES, LABELS, MASK)
        torch.testing.assert_close(found[2], expected[2])
    with pytest.raises(ArgumentError, match=r"alpha must be .* not a tensor \[3, 1\]"):
        losses.compose("ndcg", relaxation)(SCORES[:2], LABELS[:2])
    with pytest.raises(ArgumentError, match=r"beta must be .* not a tensor \[3, 1\]"):
        losses.compose("ndcg", {"name": "sigmoid", "beta": alpha})


@pytest.mark.parametrize("case", LOSSES)
@pytest.mark.parametrize("k", [None, 2])
def test_scores_of_one_list_without_its_axis_are_an_error(case, k):
    options = {"k": k} if k and "k" in inspect.signature(losses.get(case)).parameters else {}
    with pytest.raises(ArgumentError, match=r"must both be \[B, L\]"):
        loss_of(case)(SCORES[0], LABELS[0], **options)


@pytest.mark.parametrize("levels", [1, 0, 2.5, 1025, 1e6])
def test_the_number_of_levels_is_a_whole_number_with_a_threshold(levels):
    with pytest.raises(ArgumentError, match="levels must be"):
        losses.ordinal(SCORES, LABELS, MASK, levels=levels)


def test_a_label_beyond_the_levels_is_an_error_of_ordinal_regression():
    with pytest.raises(ArgumentError, match="a label is 2, above levels - 1 = 1"):
        losses.ordinal(SCORES, LABELS, MASK, levels=2)
    whole = losses.ordinal(SCORES, LABELS, MASK, levels=3)
    assert torch.equal(losses.ordinal(SCORES, LABELS, MASK, levels=3.0), whole)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64, np.longdouble])
def test_types_that_pytorch_hardly_has_are_read(dtype):
    expected = losses.lambdarank(SCORES, LABELS, MASK)
    labels = LABELS.numpy().astype(dtype)
    assert torch.equal(losses.lambdarank(SCORES, labels, MASK), expected)
    assert torch.equal(losses.lambdarank(SCORES, torch.as_tensor(LABELS.int().numpy().astype(
        np.uint16)), MASK), expected)  # fmt: skip
    wide = losses.lambdarank(SCORES.double(), LABELS, MASK)
    if dtype is np.longdouble:
        assert torch.equal(losses.lambdarank(SCORES.numpy().astype(dtype), LABELS, MASK), wide)


def test_complex_numbers_are_an_error():
    for made in (torch.Tensor.cfloat, lambda values: values.numpy().astype(complex)):
        with pytest.raises(ArgumentError, match=r"scores are .*, not numbers"):
            losses.ranknet(made(SCORES), LABELS, MASK)
        with pytest.raises(ArgumentError, match=r"labels are .*, not numbers"):
            losses.ranknet(SCORES, made(LABELS), MASK)
    with pytest.raises(ArgumentError, match="sigma must be"):
        losses.ranknet(SCORES, LABELS, MASK, sigma=torch.tensor(1j))


def test_an_array_that_masks_values_is_an_error_that_names_the_mask():
    for name in ("scores", "labels"):
        given = {"scores": SCORES.numpy(), "labels": LABELS.numpy()}
        given[name] = np.ma.masked_array(given[name], mask=~MASK.numpy())
        with pytest.raises(ArgumentError, match=f"{name} are an array that masks") as caught:
            losses.ranknet(**given)
        assert "mask=" in caught.value.remedy
        given[name] = np.ma.masked_array(given[name].data)
        assert torch.equal(losses.ranknet(**given), losses.ranknet(SCORES, LABELS))


def test_a_setting_that_is_learned_gets_its_gradient():
    alpha = torch.tensor(5.0, requires_grad=True)
    losses.approx_ndcg(SCORES, LABELS, MASK, alpha=alpha).sum().backward()
    assert alpha.grad.isfinite()
    assert alpha.grad != 0


def test_a_scale_below_a_label_is_an_error_in_twin_nerr():
    with pytest.raises(DirectrankError, match="a label is 2, above max_label 1"):
        losses.twin_nerr(SCORES, LABELS, MASK, max_label=1)
    assert losses.twin_nerr(SCORES, LABELS, MASK, max_label=2).isfinite().all()


@pytest.mark.parametrize("case", CASES)
def test_arrays_frames_and_lists_give_the_values_of_tensors(case):
    torch.manual_seed(0)
    expected = loss_of(case)(SCORES.double(), LABELS, MASK)
    for made in (np.asarray, pd.DataFrame, lambda t: t.tolist()):
        torch.manual_seed(0)
        scores, labels, mask = (made(t.numpy()) for t in (SCORES.double(), LABELS, MASK))
        assert torch.equal(loss_of(case)(scores, labels, mask), expected)


def test_a_model_learns_from_labels_in_an_array():
    leaf = SCORES.clone().requires_grad_()
    losses.lambdarank(
        leaf, LABELS.numpy(), MASK.numpy(), weights=pd.Series([1, 1, 2])
    ).sum().backward()
    assert (leaf.grad != 0).any()


def test_values_on_a_gpu_are_not_read():
    """The program would wait for it; PyTorch refuses to read those of a meta tensor."""
    scores, labels, mask = (values.to("meta") for values in (SCORES, LABELS, MASK))
    assert examine(scores, labels, mask) is NOTHING


def test_training_with_examined_data_does_not_examine_it_again():
    with examined_before():
        assert losses.ranknet(SCORES, LABELS - 1, MASK, k=0).isfinite().all()
    with pytest.raises(DirectrankError):
        losses.ranknet(SCORES, LABELS - 1, MASK)


def test_a_compiled_training_step_examines_its_values():
    @torch.compile(backend="eager")
    def step(scores, labels):
        return losses.approx_ndcg(scores, labels).sum()

    with pytest.raises(DirectrankError, match="give mask=labels >= 0"):
        step(SCORES.clone().requires_grad_(), LABELS - 1)


@pytest.mark.parametrize("case", CASES)
def test_a_reduction_means_the_same_for_every_loss(case):
    def value(**options):
        torch.manual_seed(0)
        return loss_of(case)(SCORES, LABELS, MASK, **options)

    each, weights = value(), torch.tensor([1.0, 0.0, 2.0])
    assert torch.equal(value(reduction="none"), each)
    assert torch.equal(value(reduction="sum"), each.sum())
    assert torch.equal(value(reduction="mean"), each.mean())
    assert torch.equal(value(reduction="sum", weights=weights), (weights * each).sum())
    mean = value(reduction="mean", weights=weights.tolist())
    torch.testing.assert_close(mean, (weights * each).sum() / 3)
    assert value(reduction="mean", weights=torch.zeros(3)) == 0
    with pytest.raises(DirectrankError, match="unknown reduction 'average'"):
        value(reduction="average")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pl_rank", {"samples": 0}, "0 samples"),
        ("stochastic_rank", {"samples": 0}, "0 samples"),
        ("yeti_loss", {"samples": 0}, "0 samples"),
        ("wassrank", {"iterations": 0}, "0 iterations"),
        ("k_song", {"margin": 0}, "margin 0"),
        ("sl_at_k", {"k": None}, "k must be a whole number, 1 or more, not None"),
        ("approx_ndcg", {"gain": None}, "unknown gain None"),
        ("approx_ndcg", {"gain": [1, 2]}, "do not begin with 0"),
        ("approx_ndcg", {"gain": [0, 1]}, "there are gains for the labels 0 to 1"),
        ("lambdarank", {"gain": "exp3"}, "unknown gain 'exp3'"),
        ("softmax_cross_entropy", {"normalize": "x"}, "normalize must be True or False"),
        ("approx_ndcg", {"alpha": torch.tensor([[1.0], [-1.0], [1.0]])}, "alpha must be"),
    ],
)
def test_what_only_one_loss_refuses_is_a_value_error(name, options, message):
    with pytest.raises(ArgumentError, match=message):
        losses.get(name)(SCORES, LABELS, MASK, **options)


def test_a_compiled_metric_examines_its_values():
    precision, ndcg = (
        torch.compile(metric, backend="eager") for metric in (metrics.precision, metrics.ndcg)
    )
    assert torch.equal(ndcg(SCORES, LABELS, MASK, k=2), metrics.ndcg(SCORES, LABELS, MASK, k=2))
    with pytest.raises(ArgumentError, match="k must be"):
        precision(SCORES, LABELS, k=-1)
    with pytest.raises(ArgumentError, match="give mask=labels >= 0"):
        ndcg(SCORES, LABELS - 1)
    with pytest.raises(ArgumentError, match="a score is NaN"):
        ndcg(SCORES * NAN, LABELS)


def test_errors_of_arguments_are_value_errors():
    with pytest.raises(ValueError, match="give mask=labels >= 0"):
        losses.ranknet(SCORES, LABELS - 1)
    with pytest.raises(ValueError, match="k must be"):
        losses.ranknet(SCORES, LABELS, k=0)
    with pytest.raises(ValueError, match="k must be"):
        metrics.ndcg(SCORES, LABELS, k=0)


@pytest.mark.parametrize("content", [-1.0, NAN, INF])
@pytest.mark.parametrize("name", WEIGHTED)
def test_a_weight_of_a_document_that_is_no_factor_is_an_error(name, content):
    weights = torch.ones_like(SCORES)
    weights[2, 3] = content  # masked
    value = losses.get(name)(SCORES, LABELS, MASK, document_weights=weights, **drawn(name))
    assert value.isfinite().all()
    weights[0, 1] = content
    with pytest.raises(DirectrankError, match="a weight of a document is"):
        losses.get(name)(SCORES, LABELS, MASK, document_weights=weights)
    with pytest.raises(DirectrankError, match="a weight of a document is"):
        losses.get(name)(
            SCORES[MASK], LABELS[MASK], lengths=LENGTHS, document_weights=weights[MASK].numpy()
        )
    with pytest.raises(DirectrankError, match=r"must have the shape of the scores, \(3, 4\)"):
        losses.get(name)(SCORES, LABELS, MASK, document_weights=weights[:, :2])


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("content", [-1.0, NAN, INF])
@pytest.mark.parametrize("with_kernel", [True, False])
def test_masked_weights_of_documents_may_be_anything(name, content, with_kernel, monkeypatch):
    if not with_kernel:
        monkeypatch.setattr("directrank.kernels.dispatch.KERNELS", {})
    weights = torch.rand(SCORES.shape, generator=torch.Generator().manual_seed(5))
    value, gradient = value_and_gradient(name, SCORES, document_weights=weights)
    spoiled = weights.masked_fill(~MASK, content)
    spoiled_value, spoiled_gradient = value_and_gradient(name, SCORES, document_weights=spoiled)
    assert torch.equal(spoiled_value, value)
    assert torch.equal(spoiled_gradient, gradient)


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_documents_may_be_an_array_or_a_list(name):
    scores, labels = torch.tensor([[0.5, 0.1, 0.2]]), torch.tensor([[2.0, 0.0, 1.0]])
    given = [[1.0, 0.5, 2.0]]
    values = [
        losses.get(name)(scores, labels, document_weights=weights, **drawn(name))
        for weights in (torch.tensor(given), np.array(given), given)
    ]
    assert torch.equal(values[0], values[1])
    assert torch.equal(values[0], values[2])


def drawn(name):
    """A generator of its own for each call of a loss that draws."""
    return {"generator": torch.Generator().manual_seed(1)} if name == "xe_ndcg" else {}


@pytest.mark.parametrize("case", WEIGHTED)
@pytest.mark.parametrize("weight", [torch.float16, torch.float64, torch.int64])
def test_a_loss_has_the_type_of_its_scores_whatever_that_of_weights(case, weight):
    weights = torch.ones(3, 4, dtype=weight)
    assert loss_of(case)(SCORES, LABELS, MASK, document_weights=weights).dtype == torch.float32
    wide = loss_of(case)(SCORES.double(), LABELS, MASK, document_weights=weights)
    assert wide.dtype == torch.float64


@pytest.mark.parametrize(
    ("wrong", "returned"),
    [
        (lambda values: values.mean(), r"a tensor \(\) for 2 lists"),
        (lambda values: values[:, None], r"a tensor \(2, 1\) for 2 lists"),
        (lambda values: None, "None for 2 lists"),
    ],
)
@pytest.mark.parametrize("flat", [False, True])
def test_a_loss_of_ones_own_that_returns_no_value_per_query_is_one_error(wrong, returned, flat):
    @ranking_loss
    def mine(scores, labels, mask=None):
        scores, labels, mask = checked(scores, labels, mask)
        return wrong(scores.sum(1))

    scores, lists = torch.rand(2, 3), {}
    if flat:
        scores, lists = scores.flatten(), {"lengths": [3, 3]}
    with pytest.raises(DirectrankError, match=f"mine returned {returned}") as caught:
        mine(scores, torch.zeros_like(scores), **lists)
    assert "return a tensor [B], here (2,)" in str(caught.value)


def test_the_losses_that_learn_from_queries_without_a_relevant_document_are_named():
    learning = set()
    for name in LOSSES:
        _, gradient = value_and_gradient(name, SCORES[:1], torch.zeros(1, 4), MASK[:1])
        if gradient.abs().max() > 1e-9:
            learning.add(name)
    page = (ROOT / "config/README.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith("| `training.reduction`"))
    named = row.partition("most losses are 0;")[2].partition("learn from such queries")[0]
    assert set(re.findall(r"`(\w+)`", named)) == learning
