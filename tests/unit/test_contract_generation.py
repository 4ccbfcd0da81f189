"""Videos and music that nobody can make: refused by their numbers, before anything is begun."""

from __future__ import annotations

import json
from typing import Any

import polymux
import pytest
from polymux import contract


def refused(operation: str, first: str, field: str, value: Any) -> None:
    """By a form, as interfaces say; where JSON is taken too, by that as well."""
    with pytest.raises(polymux.InvalidRequestError, match=field) as caught:
        contract.read_form(operation, [(first, "waves"), (field, str(value))])
    assert len(str(caught.value)) < 500
    if "json" in contract.operation(operation).variants[0].accepts:
        with pytest.raises(polymux.InvalidRequestError, match=field):
            contract.read_json(operation, json.dumps({first: "waves", field: value}).encode())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_frames", 0), ("num_frames", 10**9), ("num_frames", "24.5"), ("fps", 61),
        ("batch_size", 0), ("width", 1025), ("height", 2056), ("num_inferences_steps", 10**6),
        ("guidance_scale", "inf"), ("init_weight", "NaN"), ("seed", 2**63),
        ("video_model", "../xl"), ("remove_watermark", "perhaps"),
    ],
)  # fmt: skip
def test_videos(field: str, value: Any) -> None:
    """O04."""
    refused("generate_video", "prompt", field, value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", 2), ("alpha", "NaN"), ("denoising", -1), ("denoising", "inf"),
        ("seed_image_id", "../x"), ("seed", "../x"), ("num_inference_steps", 10**6),
        ("num_inference_steps", "1e3"),
    ],
)  # fmt: skip
def test_music(field: str, value: Any) -> None:
    """O05."""
    refused("generate_music", "prompt_a", field, value)


@pytest.mark.parametrize(
    ("operation", "field"), [("generate_video", "prompt"), ("generate_music", "prompt_a")]
)
def test_nothing_to_make(operation: str, field: str) -> None:
    for fields in ([], [(field, "")]):
        with pytest.raises(polymux.InvalidRequestError, match=field):
            contract.read_form(operation, fields)
