from __future__ import annotations

import itertools

import pytest
from polymux import errors
from polymux.engines.diffusion.upscale import plan as upscale_plan
from polymux.engines.diffusion.upscale.plan import factors, planned, spans


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (0.3, [0.3]), (1, [1]), (1.5, [1.5]), (2, [2]), (3, [2, 1.5]), (4, [2, 2]),
        (4.7, [2, 2, 1.175]), (10, [2, 2, 2, 1.25]),
    ],
)  # fmt: skip
def test_no_pass_is_above_two(factor: float, expected: list[float]) -> None:
    assert factors(factor) == pytest.approx(expected)


@pytest.mark.parametrize("factor", [0.01, 1, 1.5, 4.7])
@pytest.mark.parametrize("size", [(1, 1), (3000, 1), (37, 53)])
def test_the_size_is_the_factor_rounded(factor: float, size: tuple[int, int]) -> None:
    plan = planned({"scale_factor": factor}, *size)
    assert plan.size == tuple(max(1, round(side * factor)) for side in size)
    for one in plan.passes:
        assert all(side % 64 == 0 for side in one.canvas)
        assert all(0 <= a - b < 64 for a, b in zip(one.canvas, one.size, strict=True))


@pytest.mark.parametrize(
    ("creativity", "steps", "done"),
    [(0, 18, 0), (0.01, 18, 1), (0.35, 18, 6), (1, 1, 1), (0.3, 10, 3)],
)
def test_the_last_steps_are_done(creativity: float, steps: int, done: int) -> None:
    values = {"creativity": creativity, "num_inference_steps": steps}
    assert planned(values, 10, 10).passes[0].steps == done


def test_downscaling_comes_first_and_never_enlarges() -> None:
    values = {"downscaling": True, "downscaling_resolution": 100, "scale_factor": 3}
    assert planned(values, 400, 200).start == (100, 50)
    assert planned(values, 400, 200).size == (300, 150)
    assert planned(values, 3000, 1).start == (100, 1)
    assert planned(values, 90, 20).start == (90, 20)


def test_too_many_pixels_are_refused_with_both_numbers() -> None:
    plan = planned({"scale_factor": 10}, 1000, 1000)
    words = r"10000 x 10000.*100\.0.*\b64\b"
    with pytest.raises(errors.RequestTooLargeError, match=words) as caught:
        upscale_plan.check(plan, "png")
    assert caught.value.status == 413
    assert caught.value.param == "scale_factor"
    upscale_plan.check(planned({"scale_factor": 2}, 4000, 4000), "png")


@pytest.mark.parametrize(("kind", "side"), [("webp", 16_384), ("jpg", 65_501)])
def test_sides_that_a_format_cannot_say_are_refused(kind: str, side: int) -> None:
    plan = planned({"scale_factor": 1}, side, 1)
    with pytest.raises(errors.RequestTooLargeError, match=f"{side} x 1 ") as caught:
        upscale_plan.check(plan, kind)
    assert caught.value.param == "output_format"
    upscale_plan.check(plan, "png")


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize(("tile", "overlap"), [(16, 4), (144, 18)])
@pytest.mark.parametrize("length", [1, 15, 16, 17, 145, 751])
def test_tiles_cover_an_axis(length: int, tile: int, overlap: int, *, around: bool) -> None:
    found = spans(length, tile, overlap, around=around)
    assert found[0].first == 0
    assert found[-1].end == length + (min(overlap, length) if around else 0)
    assert all(one.size <= tile for one in found)
    for one, other in itertools.pairwise(found):
        assert one.end - other.first == one.after == other.before >= overlap
    assert (found[0].before > 0) == (found[-1].after > 0) == around


def test_a_solver_that_nothing_does_is_refused_with_those_that_there_are() -> None:
    words = "'Restart'.*DPM\\+\\+ 2M, DPM\\+\\+ 2M Karras"
    with pytest.raises(errors.BadRequestError, match=words) as caught:
        planned({"scheduler": "Restart"}, 10, 10)
    assert (caught.value.status, caught.value.param) == (400, "scheduler")
