"""Videos and music that nobody can make: refused by their numbers, before anything is begun."""

from __future__ import annotations

import json
from typing import Any

import polymux
import pytest
from polymux import contract


def refused(operation: str, field: str, value: Any) -> polymux.InvalidRequestError:
    """By a form, as interfaces say; where JSON is taken too, by that as well."""
    first = {"generate_video": "prompt", "generate_music": "prompt_a"}[operation]
    with pytest.raises(polymux.InvalidRequestError) as caught:
        contract.read_form(operation, [(first, "waves"), (field, str(value))])
    assert field in str(caught.value)
    assert len(str(caught.value)) < 500
    if "json" in contract.operation(operation).variants[0].accepts:
        with pytest.raises(polymux.InvalidRequestError, match=field):
            contract.read_json(operation, json.dumps({first: "waves", field: value}).encode())
    return caught.value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_frames", 0), ("num_frames", 10**9), ("num_frames", -1), ("num_frames", "24.5"),
        ("fps", 0), ("fps", 61), ("fps", 10**9), ("batch_size", 0), ("batch_size", 10**6),
        ("width", 0), ("width", 1025), ("width", 10**9), ("height", 255), ("height", 2056),
        ("num_inferences_steps", 0), ("num_inferences_steps", 10**6), ("guidance_scale", "inf"),
        ("guidance_scale", 0), ("init_weight", "NaN"), ("init_weight", 2), ("seed", 2**63),
        ("video_model", "zeroscope"), ("video_model", "../xl"),
        ("remove_watermark", "perhaps"),
    ],
)  # fmt: skip
def test_videos(field: str, value: Any) -> None:
    """O04."""
    refused("generate_video", field, value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", 2), ("alpha", "NaN"), ("alpha", -0.1), ("denoising", -1), ("denoising", 1.5),
        ("denoising", "inf"), ("seed_image_id", "../x"), ("seed", "../x"),
        ("num_inference_steps", 10**6), ("num_inference_steps", 0),
        ("num_inference_steps", "1e3"),
    ],
)  # fmt: skip
def test_music(field: str, value: Any) -> None:
    """O05."""
    refused("generate_music", field, value)


@pytest.mark.parametrize(
    ("operation", "field"), [("generate_video", "prompt"), ("generate_music", "prompt_a")]
)
def test_nothing_to_make(operation: str, field: str) -> None:
    with pytest.raises(polymux.InvalidRequestError, match=field):
        contract.read_form(operation, [])
    with pytest.raises(polymux.InvalidRequestError, match=field):
        contract.read_form(operation, [(field, "")])
