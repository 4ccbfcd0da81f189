"""Music: interpolation between two prompts, seeds, seed images, progress, cancellation, errors."""

from __future__ import annotations

import itertools
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
from polymux.engines.diffusion.windows import mean_of_windows, window_starts
from support import diffusion, diffusion_models, programs
from support.diffusion import HeardSink, request
from support.lazy_imports import torch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polymux.engines.base import Output
    from polymux.engines.diffusion.engine import DiffusionEngine

    Make = Callable[..., Output]

QUICK = {"num_inference_steps": 4, "seed": 1, "prompt_a": "jazz", "prompt_b": "rain on a roof"}
NARROW = 64
NAMES = (
    "agile", "marim", "mask_beat_lines_80", "mask_gradient_dark", "mask_gradient_top_70",
    "mask_gradient_top_fifth_75", "mask_top_third_75", "mask_top_third_95", "motorway", "og_beat",
    "vibes",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with its own seed image, which is narrow and therefore fast."""
    made = diffusion_models.stable_diffusion(tmp_path_factory.mktemp("riffusion"))
    (made / seed_spectrograms.FOLDER).mkdir()
    drawn, _ = seed_spectrograms.seed_image("marim", made)
    drawn.crop((0, 0, NARROW, 512)).save(made / seed_spectrograms.FOLDER / "vibes.png")
    return made


@pytest.fixture(scope="module")
def engine(folder: Path) -> DiffusionEngine:
    return diffusion.engine({"music": folder})


@pytest.fixture
def make(engine: DiffusionEngine, sink: HeardSink) -> Make:
    return lambda **given: engine.run(
        request("generate_music", "", **QUICK | given), sink, diffusion.token()
    )


def audio(output: Output) -> bytes:
    data: bytes = output.value["audio"].path.read_bytes()
    return data


def samples(output: Output) -> array[int]:
    with wave.open(str(output.value["audio"].path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 44_100)
        return array("h", file.readframes(file.getnframes()))


def test_sound_and_picture(make: Make, sink: HeardSink) -> None:
    output = make()
    sound, picture = output.value["audio"], output.value["spectrogram"]
    assert (sound.content_type, sound.file_name) == ("audio/wav", "music.wav")
    assert (picture.content_type, picture.file_name) == ("image/jpeg", "spectrogram.jpg")
    assert len(samples(output)) == NARROW * 441
    assert max(map(abs, samples(output))) > 8_000
    with Image.open(picture.path) as opened:
        assert (opened.format, opened.size) == ("JPEG", (NARROW, 512))
    assert output.version == "f" * 64
    assert sink.progress == sorted(sink.progress)
    assert 0 < sink.progress[0] < 0.5
    assert sink.progress[-1] == 1.0


def test_longer_music(make: Make, folder: Path, sink: HeardSink) -> None:
    """It is not its beginning again. It repeats for a seed, also where images are tiled."""
    long = {"duration_s": 5.125, "num_inference_steps": 2}
    output = make(**long)
    found = samples(output)
    assert len(found) == round(5.125 * 100) * 441
    with Image.open(output.value["spectrogram"].path) as opened:
        assert opened.size == (512, 512)
    repeat = NARROW * 441
    assert found[repeat : 2 * repeat] != found[:repeat]
    tiling = diffusion.engine({"music": folder}, untiled_pixels=NARROW * 512)
    again = tiling.run(request("generate_music", "", **QUICK | long), sink, diffusion.token())
    assert samples(again) == found


def test_length_of_mp3_files(make: Make) -> None:
    """The encoder's delay is not played, or if a player ignores LAME's tag, for an instant."""
    path = make(duration_s=5.13, denoising=0.0, output_format="mp3").value["audio"].path
    decoded = programs.ffmpeg("-i", path, "-f", "s16le", "-").stdout
    assert len(decoded) == 2 * 513 * 441
    words = ("-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0")
    shown_s = float(programs.run("ffprobe", *words, path).stdout)
    assert 5.13 <= shown_s < 5.2


@pytest.mark.parametrize("factor", [1, 8])
def test_windows_join_gradually(factor: int) -> None:
    """Each window is louder than the one before it."""
    levels = itertools.count()

    def compute(part: Any) -> Any:
        return torch.full((1, 3, 2, part.shape[-1] * factor), float(next(levels)))

    starts = window_starts(100, 32)
    made = mean_of_windows(torch.zeros(1, 4, 2, 100), 32, starts, compute, factor)
    assert made.shape == (1, 3, 2, 100 * factor)
    assert made[..., 0].max() == 0
    assert made[..., -1].min() > len(starts) - 2
    changes = made.diff(dim=-1)
    assert changes.min() >= -1e-5
    assert changes.max() < 0.3 / factor


@pytest.mark.parametrize(
    ("output_format", "content_type", "codec"),
    [("mp3", "audio/mpeg", "mp3"), ("flac", "audio/flac", "flac")],
)
def test_output_formats(make: Make, output_format: str, content_type: str, codec: str) -> None:
    sound = make(output_format=output_format).value["audio"]
    assert (sound.content_type, sound.file_name) == (content_type, f"music.{output_format}")
    words = ("-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0")
    assert programs.run("ffprobe", *words, sound.path).stdout.decode().strip() == codec
    wanted = samples(make())
    decoded = array("h", programs.ffmpeg("-i", sound.path, "-f", "s16le", "-").stdout)
    assert len(decoded) == len(wanted)
    if codec == "flac":
        assert decoded == wanted
    else:
        assert numpy.corrcoef(decoded, wanted)[0, 1] > 0.9


def test_guidance_of_the_model(make: Make) -> None:
    """A model's manifest can have another guidance than 7."""
    assert audio(make(guidance_scale=7.0)) == audio(make())
    assert audio(make(guidance_scale=2.0)) != audio(make())


def test_alpha_leads_from_one_description_to_the_other(make: Make) -> None:
    start, middle, end = (audio(make(alpha=one)) for one in (0.0, 0.5, 1.0))
    assert len({start, middle, end}) == 3
    alone = audio(make(alpha=0.7, prompt_b="  "))
    assert alone == start
    # At alpha 1 only the second prompt counts.
    assert audio(make(alpha=1.0, prompt_a="drums")) == end


def test_seeds_repeat_bit_for_bit(make: Make, sink: HeardSink) -> None:
    """The seed is reported even if none was given."""
    first, again = make(), make()
    for name in ("audio", "spectrogram"):
        assert first.value[name].path.read_bytes() == again.value[name].path.read_bytes()
    assert audio(make(seed=2)) != audio(first)
    assert sink.seed == 1
    sink.lines.clear()
    by_chance = audio(make(seed=None))
    assert audio(make(seed=sink.seed)) == by_chance


def test_long_descriptions_are_cut_with_a_warning(make: Make, sink: HeardSink) -> None:
    make(prompt_a="x" * 100, prompt_b="y" * 200)
    for name, count in (("prompt_a", 100), ("prompt_b", 200)):
        assert any(all(word in one for word in (name, f"{count}", "75")) for one in sink.lines)


def test_without_denoising_the_seed_is_heard(make: Make, sink: HeardSink, folder: Path) -> None:
    output = make(denoising=0.0)
    seed_image, _ = seed_spectrograms.seed_image("vibes", folder)
    grey = seed_image.convert("L").tobytes()
    played = _media.play_picture(grey, NARROW, 512, 1, 1, None, None)
    assert samples(output).tobytes() == _media.finish_sound(played["samples"], 1, 44_100)
    assert output.metrics["steps"] == 0
    assert any("denoising" in line for line in sink.lines)


@pytest.mark.parametrize(("steps", "denoising", "done"), [(8, 0.5, 5), (4, 1.0, 4), (1, 0.1, 1)])
def test_effective_steps(make: Make, steps: int, denoising: float, done: int) -> None:
    """The integer part plus the scheduler's offset of 1, at most the requested steps."""
    output = make(num_inference_steps=steps, denoising=denoising)
    assert output.metrics["steps"] == done


@pytest.mark.parametrize(
    ("steps", "at", "output_format"), [(30, 0.0, "wav"), (4, 0.95, "wav"), (4, 1.0, "mp3")]
)
def test_cancelling_ends_within_a_step(
    engine: DiffusionEngine, make: Make, tmp_path: Path, steps: int, at: float, output_format: str
) -> None:
    """Also during the conversion to audio, and while it is encoded."""
    token = diffusion.token()
    sink = HeardSink(tmp_path, lambda done: token.cancel() if done >= at else None)
    given = QUICK | {"num_inference_steps": steps, "output_format": output_format}
    asked = request("generate_music", "", **given)
    before = audio(make())
    with pytest.raises(Cancelled):
        engine.run(asked, sink, token)
    assert sink.progress == sorted(sink.progress)
    assert len(sink.progress) == 1 or at > 0
    assert audio(make()) == before


def test_a_stand_in_is_logged_and_as_long_as_it_is_wide(make: Make, sink: HeardSink) -> None:
    output = make(seed_image_id="og_beat", num_inference_steps=1, denoising=1.0)
    assert len(samples(output)) == 512 * 441
    assert any("og_beat.png" in line for line in sink.lines)
    make(seed_image_id="vibes")
    assert not any("vibes" in line for line in sink.lines)


def test_stand_ins_are_all_there_and_differ(tmp_path: Path) -> None:
    found = {name: seed_spectrograms.seed_image(name, tmp_path) for name in NAMES}
    assert all(is_stand_in for _, is_stand_in in found.values())
    assert {picture.size for picture, _ in found.values()} == {(512, 512)}
    samples_of = [numpy.asarray(one.convert("L")).astype(int) for one, _ in found.values()]
    for one, other in itertools.combinations(samples_of, 2):
        assert abs(one - other).mean() > 4


def test_refusals(make: Make, tmp_path: Path) -> None:
    with pytest.raises(errors.BadRequestError, match="seed_image_id") as refused:
        make(seed_image_id="../vibes")
    assert refused.value.param == "seed_image_id"
    (tmp_path / seed_spectrograms.FOLDER).mkdir()
    file = tmp_path / seed_spectrograms.FOLDER / "agile.png"
    for content in (b"", b"\x89PNG\r\n\x1a\n broken"):
        file.write_bytes(content)
        with pytest.raises(errors.NoBackendError, match=r"agile\.png"):
            seed_spectrograms.seed_image("agile", tmp_path)
    Image.new("RGB", (512, 256)).save(file)
    with pytest.raises(errors.NoBackendError, match="512 x 256"):
        seed_spectrograms.seed_image("agile", tmp_path)


def test_a_model_of_another_shape(models: dict[str, Path], sink: HeardSink) -> None:
    def run(engine: DiffusionEngine) -> None:
        engine.run(request("generate_music", "", **QUICK), sink, diffusion.token())

    other = diffusion.engine({"music": models["picture:B"]})
    with pytest.raises(errors.NoBackendError, match="StableDiffusionXLPipeline"):
        run(other)
    with pytest.raises(errors.NoBackendError, match="music"):
        run(diffusion.engine({}))
