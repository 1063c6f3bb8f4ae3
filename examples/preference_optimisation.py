"""Preference optimisation with any ranking loss: ``python examples/preference_optimisation.py``.

DPO (Rafailov et al., 2023) trains a language model on pairs of responses by the logistic loss of
the difference of their implicit rewards ``β (log π(response) - log π_ref(response))``. That is
RankNet on lists of two, with these rewards as scores. With more responses to a prompt, and grades,
any loss of this library takes its place.

The model is tiny and random, and its language has forty words, so that nothing is downloaded. With
``AutoModelForCausalLM.from_pretrained("…")`` and your own responses, the rest stays the same.
"""

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel, set_seed

from directrank import losses, metrics

WORDS, BETA = 40, 0.1


@dataclass
class Responses:
    """Some prompts, each with several graded responses.

    Attributes:
        tokens: int64 ``[N, T]``, prompt and response, padded at the end.
        chosen: bool ``[N, T]``, the tokens of the response.
        labels: ``[N]``, their grades.
        lengths: responses per prompt.
    """

    tokens: Tensor
    chosen: Tensor
    labels: Tensor
    lengths: list[int]


def log_probabilities(model: PreTrainedModel, responses: Responses) -> Tensor:
    """The log-probability of each response, given its prompt, ``[N]``."""
    tokens, chosen = responses.tokens, responses.chosen[:, 1:]
    logits = model(tokens).logits[:, :-1].log_softmax(-1)
    of_tokens = logits.gather(2, tokens[:, 1:, None]).squeeze(2)
    return (of_tokens * chosen).sum(1)


def rewards(model: PreTrainedModel, reference: PreTrainedModel, responses: Responses) -> Tensor:
    """The implicit rewards of responses, ``[N]``."""
    with torch.no_grad():
        before = log_probabilities(reference, responses)
    return BETA * (log_probabilities(model, responses) - before)


def judged(n_prompts: int, generator: random.Random) -> Responses:
    """A response's grade is the number of its words that come from the first half of the words."""
    tokens, chosen, labels, lengths = [], [], [], []
    for _ in range(n_prompts):
        prompt = [generator.randrange(WORDS) for _ in range(3)]
        lengths.append(generator.randint(3, 6))
        for _ in range(lengths[-1]):
            response = [generator.randrange(WORDS) for _ in range(4)]
            tokens.append(prompt + response)
            chosen.append([False] * 3 + [True] * 4)
            labels.append(float(sum(word < WORDS // 2 for word in response)))
    return Responses(torch.tensor(tokens), torch.tensor(chosen), torch.tensor(labels), lengths)


def ndcg(model: PreTrainedModel, reference: PreTrainedModel, responses: Responses) -> float:
    """The mean NDCG of responses by their implicit rewards."""
    with torch.no_grad():
        scores = rewards(model, reference, responses)
    # At first all rewards are 0, and the order of ties must not count.
    values = metrics.ndcg(scores, responses.labels, lengths=responses.lengths, ties="expected")
    return values.nanmean().item()


def main(
    loss: Callable[..., Tensor] = losses.lambdarank, steps: int = 60, n_prompts: int = 32
) -> tuple[float, float]:
    """Train, and return the NDCG of the responses to other prompts before and after."""
    set_seed(0)
    generator = random.Random(0)
    config = GPT2Config(
        vocab_size=WORDS, n_positions=8, n_embd=32, n_layer=1, n_head=2,
        bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    reference = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    test = judged(100, generator)
    before = ndcg(model, reference, test)
    for _ in range(steps):
        batch = judged(n_prompts, generator)
        scores = rewards(model, reference, batch)
        optimizer.zero_grad()
        loss(scores, batch.labels, lengths=batch.lengths).mean().backward()
        optimizer.step()
    return before, ndcg(model, reference, test)


if __name__ == "__main__":
    for name in ("ranknet", "lambdarank", "listnet"):
        before, after = main(losses.get(name))
        print(f"{name}: NDCG before and after: {before:.3f} {after:.3f}")
