"""music-mini plays what prompts say. A classifier hears it that learned from composed music."""

from __future__ import annotations

import random
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from support import diffusion, music_mini
from support.music_judge import PROMPTS, RATE_HZ, Judge, levels, read, rhythm
from support.music_mini import MUSIC, generated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine
    from polymux.models.folder import ModelsFolder

    Generate = Callable[..., Any]

#: Samples of a part of longer music, and between the beginnings of parts.
PART, HOP = 512 * 441, 256 * 441


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge()


@pytest.fixture(scope="module")
def small() -> DiffusionEngine:
    return diffusion.engine({"music": MUSIC})


@pytest.fixture(scope="module")
def generate(small: DiffusionEngine, tmp_path_factory: pytest.TempPathFactory) -> Generate:
    return partial(generated, small, tmp_path_factory.mktemp("music"))


@pytest.fixture(scope="module")
def between(generate: Generate) -> list[Any]:
    """Music at both ends from drums to a music box."""
    given = {"prompt_b": "music box", "seed": 1}
    return [generate("drum loop", alpha=alpha, **given) for alpha in (0.0, 1.0)]


def test_prompts_are_heard(between: list[Any], generate: Generate, judge: Judge) -> None:
    sounds = [*between, generate("fast techno", seed=2)]
    assert [judge(sound) for sound in sounds] == ["drums", "musicbox", "techno"]


def test_alpha_leads_from_one_prompt_to_the_other(between: list[Any], judge: Judge) -> None:
    start, end = (judge.probabilities(sound) for sound in between)
    assert start["drums"] > 0.5 > end["drums"]
    assert start["musicbox"] < 0.5 < end["musicbox"]


def test_an_untrained_model_is_not_understood(tmp_path: Path, judge: Judge) -> None:
    from diffusers import UNet2DConditionModel

    copy = tmp_path / "untrained"
    shutil.copytree(MUSIC, copy, ignore=shutil.ignore_patterns("training"))
    config = UNet2DConditionModel.load_config(copy / "unet")
    UNet2DConditionModel.from_config(config).half().save_pretrained(copy / "unet")
    engine = diffusion.engine({"music": copy})
    wanted = {"drums": "drum loop", "musicbox": "music box"}
    found = [
        judge(generated(engine, tmp_path, prompt, num_inference_steps=2, seed=1))
        for prompt in wanted.values()
    ]
    assert found != list(wanted)


@pytest.mark.long
def test_most_prompts_are_heard(
    folder: ModelsFolder, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that gives only a prompt and a seed gets music of the right class."""
    music_mini.install(folder)
    monkeypatch.setenv("POLYMUX_MODELS", str(folder.path))
    right, wrong = 0, []
    with polymux.Local() as local:
        for name, prompts in PROMPTS.items():
            for prompt in prompts:
                seed = random.randrange(1 << 31)
                made = local.generate_music(prompt, seed=seed)
                assert made.engine_model == music_mini.NAME
                path = tmp_path / f"{name}-{seed}.wav"
                made.audio.save(path)
                found = judge(read(path))
                right += found == name
                if found != name:
                    wrong.append((prompt, seed, found))
    print(f"{right} of {right + len(wrong)} are right. Not right: {wrong}")
    # Music for "ambient" mostly sounds like a choir. By chance, one in twelve would be right.
    assert right / (right + len(wrong)) >= 0.75


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "second"), [("drums", "musicbox"), ("techno", "piano"), ("choir", "metal")]
)
def test_alpha_moves(first: str, second: str, generate: Generate, judge: Judge) -> None:
    given = {"prompt_b": PROMPTS[second][0], "seed": 3}
    found = [
        judge.probabilities(generate(PROMPTS[first][0], alpha=alpha, **given))
        for alpha in (0.0, 0.3, 0.7, 1.0)
    ]
    moved = [numpy.log(one[second] / one[first]) for one in found]
    print(moved)
    assert max(found[0], key=lambda name: found[0][name]) == first
    assert max(found[-1], key=lambda name: found[-1][name]) == second
    assert max(moved[:2]) < min(moved[2:])


def clicks(sound: Any, every: int) -> bool:
    """Whether a sample stands out from its neighbors most at a multiple of `every` samples."""
    change = numpy.pad(abs(numpy.diff(sound, 2)), 1).reshape(-1, 441).max(1)
    later = numpy.arange(every, len(sound), every) // 441
    near = numpy.concatenate([later - 1, later])
    return bool(change[near].max() > numpy.delete(change, near).max())


def period_s(sound: Any) -> float:
    """Return the period of the beat, from 0.3 to 0.6 s, in steps of 0.023 s."""
    fine = levels(sound)
    onsets = numpy.maximum(0, numpy.diff(fine, axis=0)).sum(1)
    column_s = 1024 / RATE_HZ
    shortest = round(0.3 / column_s)
    found = rhythm(onsets)[shortest : 2 * shortest]
    return (shortest + int(found.argmax())) * column_s


@pytest.mark.long
def test_longer_music_has_no_clicks(generate: Generate) -> None:
    """Held chords have no attacks that a click could hide in."""
    sound = generate("slow choir chords", duration_s=12.8, seed=4)
    assert len(sound) == 1280 * 441
    assert not clicks(sound, HOP)
    # Two pieces that are cut and joined do click.
    one, other = sound[:PART], sound[-PART:]
    piece = 32 * 441
    turns = numpy.arange(PART) // piece % 2 == 0
    assert clicks(numpy.where(turns, one, other), piece)


@pytest.mark.long
def test_longer_music_stays_in_tempo(generate: Generate) -> None:
    sound = generate("techno", duration_s=15.36, seed=7)
    first, last = period_s(sound[:PART]), period_s(sound[-PART:])
    assert first == pytest.approx(last, rel=0.07)
    slower = numpy.interp(numpy.arange(PART) / 1.15, numpy.arange(PART), sound[-PART:])
    assert first != pytest.approx(period_s(slower), rel=0.07)
