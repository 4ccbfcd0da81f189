"""Music: the way between two descriptions, seeds, seed images, progress, cancelling, refusals."""

from __future__ import annotations

import wave
from array import array
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from PIL import Image
from polymux import errors
from polymux._native import _media
from polymux.engines.base import Cancelled
from polymux.engines.diffusion import seed_spectrograms
from polymux.engines.diffusion.music import spherical
from support import diffusing, diffusion_models
from support.diffusing import HeardSink, request

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.base import Output
    from polymux.engines.diffusion.engine import DiffusionEngine

QUICK = {"num_inference_steps": 4, "seed": 1, "prompt_a": "jazz", "prompt_b": "rain on a roof"}
NARROW = 64
NAMES = (
    "agile", "marim", "mask_beat_lines_80", "mask_gradient_dark", "mask_gradient_top_70",
    "mask_gradient_top_fifth_75", "mask_top_third_75", "mask_top_third_95", "motorway", "og_beat",
    "vibes",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with one seed image of its own, a narrow one, which is quick."""
    made = diffusion_models.stable_diffusion(tmp_path_factory.mktemp("riffusion"))
    (made / seed_spectrograms.FOLDER).mkdir()
    drawn, _ = seed_spectrograms.seed_image("marim", made)
    drawn.crop((0, 0, NARROW, 512)).save(made / seed_spectrograms.FOLDER / "vibes.png")
    return made


@pytest.fixture(scope="module")
def engine(folder: Path) -> DiffusionEngine:
    return diffusing.engine({"music": folder})


def made(engine: DiffusionEngine, sink: HeardSink, **given: Any) -> Output:
    return engine.run(request("generate_music", "", **QUICK | given), sink, diffusing.token())


def audio(output: Output) -> bytes:
    data: bytes = output.value["audio"].path.read_bytes()
    return data


def samples(output: Output) -> array[int]:
    with wave.open(str(output.value["audio"].path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 44_100)
        return array("h", file.readframes(file.getnframes()))


def test_sound_and_picture(engine: DiffusionEngine, sink: HeardSink) -> None:
    output = made(engine, sink)
    sound, picture = output.value["audio"], output.value["spectrogram"]
    assert (sound.content_type, sound.file_name) == ("audio/wav", "music.wav")
    assert (picture.content_type, picture.file_name) == ("image/jpeg", "spectrogram.jpg")
    assert len(samples(output)) == NARROW * 441
    assert max(map(abs, samples(output))) == 32_392  # -0.1 dBFS
    with Image.open(picture.path) as opened:
        assert (opened.format, opened.size) == ("JPEG", (NARROW, 512))
    assert output.version == "f" * 64


def test_alpha_leads_from_one_description_to_the_other(
    engine: DiffusionEngine, sink: HeardSink
) -> None:
    start, middle, end = (audio(made(engine, sink, alpha=one)) for one in (0.0, 0.5, 1.0))
    assert len({start, middle, end}) == 3
    alone = audio(made(engine, sink, alpha=0.7, prompt_b="  "))
    assert alone == start
    # At its end the second description counts alone: the first one may be any.
    assert audio(made(engine, sink, alpha=1.0, prompt_a="drums")) == end


def test_seeds_repeat_bit_for_bit(engine: DiffusionEngine, sink: HeardSink) -> None:
    first = made(engine, sink)
    again = made(engine, sink)
    for name in ("audio", "spectrogram"):
        assert first.value[name].path.read_bytes() == again.value[name].path.read_bytes()
    assert audio(made(engine, sink, seed=2)) != audio(first)
    assert "seed: 1" in sink.lines


def test_long_descriptions_are_cut_and_that_is_told(
    engine: DiffusionEngine, sink: HeardSink
) -> None:
    made(engine, sink, prompt_a="x" * 100, prompt_b="y" * 200)
    for name, count in (("prompt_a", 100), ("prompt_b", 200)):
        assert f"{name}: of its {count} tokens the model reads the first 75" in sink.lines


def test_without_a_seed_it_is_told(engine: DiffusionEngine, sink: HeardSink) -> None:
    first = audio(made(engine, sink, seed=None))
    told = next(line for line in sink.lines if line.startswith("seed: "))
    assert audio(made(engine, sink, seed=int(told.removeprefix("seed: ")))) == first


def test_without_denoising_the_seed_image_is_heard(
    engine: DiffusionEngine, sink: HeardSink, folder: Path
) -> None:
    output = made(engine, sink, denoising=0.0)
    seed_image, _ = seed_spectrograms.seed_image("vibes", folder)
    grey = seed_image.convert("L").tobytes()
    played = _media.play_picture(grey, NARROW, 512, 1, 1, None, None)
    assert samples(output).tobytes() == _media.finish_sound(played["samples"])
    assert output.metrics["steps"] == 0
    assert any("as it is" in line for line in sink.lines)


@pytest.mark.parametrize(
    ("steps", "denoising", "done"), [(4, 0.75, 4), (8, 0.5, 5), (4, 1.0, 4), (1, 0.1, 1)]
)
def test_effective_steps(
    engine: DiffusionEngine, sink: HeardSink, steps: int, denoising: float, done: int
) -> None:
    """The integer part, and the scheduler's offset of 1, at most those asked for."""
    output = made(engine, sink, num_inference_steps=steps, denoising=denoising)
    assert output.metrics["steps"] == done


def test_progress_grows(engine: DiffusionEngine, sink: HeardSink) -> None:
    made(engine, sink)
    assert sink.progress == sorted(sink.progress)
    assert 0 < sink.progress[0] < 0.5
    assert sink.progress[-1] == 1.0


@pytest.mark.parametrize("reports", [1, 3])
def test_cancelling_ends_within_a_step(
    engine: DiffusionEngine, tmp_path: Path, reports: int
) -> None:
    token = diffusing.token()

    def cancel(_: float) -> None:
        if len(sink.progress) == reports:
            token.cancel()

    sink = HeardSink(tmp_path, cancel)
    asked = request("generate_music", "", **QUICK | {"num_inference_steps": 30})
    with pytest.raises(Cancelled):
        engine.run(asked, sink, token)
    assert len(sink.progress) == reports
    assert audio(made(engine, sink)) == audio(made(engine, sink))


def test_cancelling_while_it_is_played(engine: DiffusionEngine, tmp_path: Path) -> None:
    token = diffusing.token()
    sink = HeardSink(tmp_path, lambda done: token.cancel() if done >= 0.95 else None)
    asked = request("generate_music", "", **QUICK)
    with pytest.raises(Cancelled):
        engine.run(asked, sink, token)


def test_a_stand_in_is_told_and_as_long_as_it_is_wide(
    engine: DiffusionEngine, sink: HeardSink
) -> None:
    output = made(engine, sink, seed_image_id="og_beat", num_inference_steps=1, denoising=1.0)
    assert len(samples(output)) == 512 * 441
    assert any("og_beat: a stand-in" in line for line in sink.lines)
    made(engine, sink, seed_image_id="vibes")
    assert sum("stand-in" in line for line in sink.lines) == 1


def test_stand_ins_are_all_there_and_differ(tmp_path: Path) -> None:
    pictures = {name: seed_spectrograms.seed_image(name, tmp_path) for name in NAMES}
    assert all(is_stand_in for _, is_stand_in in pictures.values())
    assert {picture.size for picture, _ in pictures.values()} == {(512, 512)}
    drawn = {name: numpy.asarray(picture.convert("L")) for name, (picture, _) in pictures.items()}
    for name, one in drawn.items():
        assert (
            one == numpy.asarray(seed_spectrograms.seed_image(name, tmp_path)[0].convert("L"))
        ).all()
        others = [other for key, other in drawn.items() if key != name]
        assert min(abs(one.astype(int) - other).mean() for other in others) > 4
        assert one.min() < 200
        assert one.max() > 120


def test_beats_of_80_a_minute(tmp_path: Path) -> None:
    picture, _ = seed_spectrograms.seed_image("mask_beat_lines_80", tmp_path)
    row = numpy.asarray(picture.convert("L"))[100].astype(int)
    beats = [at for at in range(1, 512) if row[at] < row[at - 1] - 50]
    assert beats == [75, 150, 225, 300, 375, 450]


def test_noises_stay_as_strong_between_two_seeds() -> None:
    import torch

    one, other = torch.randn(2, 4, 32, 32, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(spherical(one, other, 0.0), one, atol=1e-5)
    assert torch.allclose(spherical(one, other, 1.0), other, atol=1e-5)
    assert abs(float(spherical(one, other, 0.5).std()) - 1) < 0.03
    assert torch.allclose(spherical(one, one, 0.5), one)


def test_refusals(engine: DiffusionEngine, sink: HeardSink, tmp_path: Path) -> None:
    with pytest.raises(errors.BadRequestError, match="seed_image_id") as refused:
        made(engine, sink, seed_image_id="../vibes")
    assert refused.value.param == "seed_image_id"
    (tmp_path / seed_spectrograms.FOLDER).mkdir()
    file = tmp_path / seed_spectrograms.FOLDER / "agile.png"
    for content in (b"", b"\x89PNG\r\n\x1a\n broken"):
        file.write_bytes(content)
        with pytest.raises(errors.NoBackendError, match="no picture"):
            seed_spectrograms.seed_image("agile", tmp_path)
    Image.new("RGB", (512, 256)).save(file)
    with pytest.raises(errors.NoBackendError, match="512 x 256"):
        seed_spectrograms.seed_image("agile", tmp_path)


def test_a_model_of_another_shape(models: dict[str, Path], sink: HeardSink) -> None:
    other = diffusing.engine({"music": models["picture:B"]})
    with pytest.raises(errors.NoBackendError, match="makes no music"):
        made(other, sink)
    with pytest.raises(errors.NoBackendError, match="role music"):
        made(diffusing.engine({}), sink)
