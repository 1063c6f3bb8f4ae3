"""Scores of whole splits."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from directrank.learners.neural.batches import Feeder
from directrank.learners.neural.failures import naming_memory
from directrank.lists.packed import RankedLists, whole_queries

#: Documents scored at a time, times models, on a CPU and on a GPU; bounds the memory of a forward
#: pass.
SCORING_CHUNK, SCORING_CHUNK_ON_GPU = 1 << 16, 1 << 19


def score(model: nn.Module, lists: RankedLists, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Scores ``[M, N]`` of all documents of ``lists``, in evaluation mode, on the CPU."""
    model.eval()
    return score_parts(model, Feeder(lists, dtype, device)).cpu()


@torch.no_grad()
def score_parts(model: nn.Module, feeder: Feeder) -> Tensor:
    """Scores ``[M, N]`` of all documents that ``feeder`` holds, in the model's mode."""
    offsets = feeder.offsets - feeder.offsets[0]
    models = len(next(model.parameters()))
    chunk = SCORING_CHUNK if feeder.device.type == "cpu" else SCORING_CHUNK_ON_GPU
    with naming_memory("scoring", "lower training.stack, or use --device cpu"):
        # All scores have their memory before the first pass: if each pass kept its own, they would
        # lie between the blocks that it frees, and the next pass could not use these as a whole.
        scores = torch.empty(models, int(offsets[-1]), dtype=feeder.dtype, device=feeder.device)
        for first, last in whole_queries(offsets, chunk // models):
            span = slice(int(feeder.offsets[first]), int(feeder.offsets[last]))
            features = feeder.features[span].to(feeder.device, feeder.dtype)[None]
            lengths = feeder.lengths[None, first:last]
            scores[:, offsets[first] : offsets[last]] = model(features, None, lengths)
    return scores
