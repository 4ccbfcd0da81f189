"""How long and how large work will be thought."""

from __future__ import annotations

from typing import Any

import pytest
from polymux.engines import estimates
from polymux.service.model import Caller, OperationRequest

SIZE = {"width": 2400, "height": 2400, "pages": 1}
#: What a network that enlarges by four makes of it: floats of three colours.
MADE_BYTES = 2400 * 2400 * 16 * 3 * 4


def enlarging(**values: Any) -> OperationRequest:
    caller = Caller("k", "k")
    return OperationRequest(
        "upscale_image", "B", "nightmareai/real-esrgan", values, frozenset(values), caller
    )


@pytest.mark.parametrize("scale", [0.5, 1, 4, 10])
def test_a_network_enlarges_by_its_own_factor(scale: float) -> None:
    """Whatever was asked for: what it makes is resized afterwards."""
    measure = estimates.enlarged(3.0, 4)
    facts = {**SIZE, "channels": 3}
    work = enlarging(scale=scale)
    assert measure.units(work, facts) == pytest.approx(92.16)
    assert measure.memory_bytes is not None
    resized = 2400 * 2400 * scale**2 * 3 * 4
    assert measure.memory_bytes(work, facts) == MADE_BYTES + 3 * resized


@pytest.mark.parametrize("channels", [2, 4])
def test_transparency_goes_through_it_as_well(channels: int) -> None:
    measure = estimates.enlarged(3.0, 2)
    opaque, clear = ({**SIZE, "channels": one} for one in (3, channels))
    assert measure.units(enlarging(), clear) == 2 * measure.units(enlarging(), opaque)
    assert measure.memory_bytes is not None
    made = 2400 * 2400 * 4 * (3 + 3 + 4) * 4
    assert measure.memory_bytes(enlarging(scale=0.0001), clear) == pytest.approx(made, rel=1e-6)
