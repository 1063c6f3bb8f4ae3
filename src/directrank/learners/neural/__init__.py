"""Neural learners, which train many models of one shape together."""

from collections.abc import Mapping
from typing import Any

#: Monitored quantities of several columns: name → module:function, which takes scores, lists and
#: the losses' settings as :func:`directrank.learners.neural.monitors.monitor` does.
QUANTITIES: dict[str, str] = {
    "pair_gradients": "directrank.learners.neural.monitor_pairs:pair_gradients",
    "tied_pairs": "directrank.learners.neural.monitor_pairs:tied_pairs",
}


def modules_of(monitor: Mapping[str, Any] | None) -> set[str]:
    """The modules of the quantities that a run's ``monitor`` names."""
    names = [quantity["quantity"] for quantity in (monitor or {}).get("quantities", [])]
    return {QUANTITIES[name].split(":")[0] for name in names if name in QUANTITIES}
