"""Unusual and hostile requests: a clear error or a result, never an empty image."""

from __future__ import annotations

import json
import struct
import threading
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from PIL import Image
from polymux import errors
from polymux.engines.base import Cancelled
from polymux.engines.diffusion import folders
from polymux.engines.diffusion.prompts import MAX_CHUNKS, encoded, parsed
from support import diffusion, diffusion_models
from support.diffusion import HeardSink, picture, request, upload
from support.lazy_imports import safetensors, torch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polymux.engines.base import Output, Token
    from polymux.engines.diffusion.engine import DiffusionEngine

    Make = Callable[..., Output]
    Paint = Callable[..., numpy.ndarray[Any, Any]]

SMALL = {"width": 64, "height": 64, "num_inference_steps": 2, "seed": 1, "prompt": "a house"}
SOFT = Image.linear_gradient("L").convert("RGB").resize((256, 256))
BASE, EXPERT = "base_image_refiner", "expert_ensemble_refiner"


def made(engine: DiffusionEngine, sink: HeardSink, **given: Any) -> Output:
    return engine.run(request("generate_image", "B", **SMALL | given), sink, diffusion.token())


@pytest.fixture
def make(engine: DiffusionEngine, sink: HeardSink) -> Make:
    return lambda **given: made(engine, sink, **given)


@pytest.fixture
def paint(make: Make) -> Paint:
    """The samples of the result."""
    return lambda **given: pixels(make(**given))


def pixels(output: Output) -> numpy.ndarray[Any, Any]:
    return numpy.asarray(Image.open(output.value[0].path)).astype(int)


@pytest.mark.parametrize(
    ("how", "steps", "strength"),
    [(BASE, 1, None), (BASE, 2, 0.0), (BASE, 3, 1.0), (EXPERT, 1, None), (EXPERT, 1, 0.3),
     (EXPERT, 2, 0.0), (EXPERT, 2, 1.0)],
)  # fmt: skip
def test_a_refiner_of_few_steps_refines(
    make: Make, sink: HeardSink, tmp_path: Path, how: str, steps: int, strength: float | None
) -> None:
    given = {} if strength is None else picture("image", SOFT, tmp_path)
    given |= {"num_inference_steps": steps, "prompt_strength": strength or 0.0}
    found = make(**given, refine=how)
    assert pixels(found).std() > 1
    assert len(sink.progress) == found.metrics["steps"]
    if how == BASE:
        assert found.metrics["steps"] >= 1
    elif strength == 0.0:
        assert any("refiner" in line for line in sink.lines)


@pytest.mark.parametrize("wanted", [1, 4])
def test_a_refiner_does_the_steps_asked_for(make: Make, sink: HeardSink, wanted: int) -> None:
    found = make(refine=BASE, refine_steps=wanted)
    assert found.metrics["steps"] == len(sink.progress) == 2 + wanted


@pytest.mark.parametrize(
    "prompt", [" ", "\x00", "a \ud800 b", "<|endoftext|>", "😀" * 2000, "word " * 10_000],
    ids=["space", "nul", "half", "end", "faces", "long"],
)  # fmt: skip
def test_all_that_is_text_is_a_prompt(make: Make, prompt: str) -> None:
    found = make(prompt=prompt, negative_prompt=prompt)
    assert pixels(found).std() > 1
    assert "Seed: 1" in Image.open(found.value[0].path).text["parameters"]


@pytest.mark.parametrize("seed", [-1, -(1 << 63), (1 << 63) - 1])
def test_all_seeds_repeat(paint: Paint, seed: int) -> None:
    first = paint(seed=seed)
    assert (first == paint(seed=seed)).all()
    assert (first != paint()).any()


def test_a_prompt_is_read_so_far_and_no_further(engine: DiffusionEngine) -> None:
    parts = engine.manager.parts("picture:B")
    reads = [parts["tokenizer"], parts["text_encoder"], torch.device("cpu")]
    warnings: list[str] = []
    words = encoded([parsed("barn " * 10_000), parsed("a")], *reads, warnings.append)
    assert words.shape[:2] == (2, MAX_CHUNKS * 77)
    assert ["20 chunks of 75" in one for one in warnings] == [True]
    assert encoded([parsed("BREAK " * 30)], *reads).shape[1] == MAX_CHUNKS * 77
    assert torch.isfinite(encoded([parsed("(((a:99):99):99) [b:-99]")], *reads)).all()
    encoded([parsed("barn " * 100)], *reads, warnings.append)
    assert len(warnings) == 1


def header(plain: Any) -> bytes:
    data = plain if isinstance(plain, bytes) else json.dumps(plain).encode()
    return struct.pack("<Q", len(data)) + data


def lying(whole: bytes, **changes: Any) -> bytes:
    """Change the header of the first tensor."""
    (length,) = struct.unpack("<Q", whole[:8])
    tensors = json.loads(whole[8 : 8 + length])
    name = min(one for one in tensors if one != "__metadata__")
    tensors[name] |= changes
    return header(tensors) + whole[8 + length :]


BROKEN: dict[str, Callable[[bytes, dict[str, Any]], bytes]] = {
    "empty": lambda *_: b"",
    "pickle": lambda *_: b"PK\x03\x04" + b"x" * 100,
    "endless": lambda whole, _: struct.pack("<Q", 1 << 63) + whole[8:],
    "deep": lambda *_: header(b'{"a":' * 5000),
    "list": lambda *_: header([]),
    "nothing": lambda *_: header({}),
    "wide": lambda whole, _: lying(whole, shape=[1 << 40, 1 << 40]),
    "beyond": lambda whole, _: lying(whole, data_offsets=[0, 1 << 60]),
    "unknown": lambda whole, _: lying(whole, dtype="F999"),
    "cut": lambda whole, _: whole[:-5],
    "half": lambda _, state: safetensors.save(
        {n: one for n, one in state.items() if "lora_A" in n}
    ),
    "one half": lambda _, state: safetensors.save({n: state[n] for n in sorted(state)[1:]}),
    "whole numbers": lambda _, state: safetensors.save({n: one.int() for n, one in state.items()}),
    "too much": lambda _, state: safetensors.save({n: one * 1e30 for n, one in state.items()}),
    "flat": lambda _, state: safetensors.save({n: one.flatten() for n, one in state.items()}),
    "ranks": lambda _, state: safetensors.save(
        {n: torch.cat([one, one]) for n, one in state.items()}
    ),
    "no numbers": lambda _, state: safetensors.save(
        {n: one * torch.nan for n, one in state.items()}
    ),
    "names": lambda *_: safetensors.save(
        {"unet." + "a." * 5000 + "lora_A.weight": torch.zeros(2, 2)}
    ),
    "dots": lambda *_: safetensors.save({"....": torch.zeros(2, 2)}),
}


@pytest.fixture(scope="module")
def lora(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return diffusion_models.lora(tmp_path_factory.mktemp("lora"), models["picture:B"])


@pytest.mark.parametrize("kind", BROKEN)
def test_weights_that_lie_are_refused_and_leave_nothing(
    make: Make, engine: DiffusionEngine, lora: Path, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(BROKEN[kind](lora.read_bytes(), safetensors.load_file(lora)))
    with pytest.raises(errors.BadRequestError, match="replicate_weights") as caught:
        make(replicate_weights_file=upload(path), num_inference_steps=1)
    assert caught.value.param == "replicate_weights"
    unet = engine.manager.parts("picture:B")["unet"]
    assert not any("lora" in name for name, _ in unet.named_modules())
    if kind == "too much":
        assert "sdxl" in str(caught.value)
        assert make().value


@pytest.mark.parametrize(
    ("part", "kind"),
    [("unet", "endless"), ("text_encoder", "wide")],
)
def test_a_model_that_lies_is_refused(tmp_path: Path, part: str, kind: str) -> None:
    own = diffusion_models.stable_diffusion(tmp_path / "own")
    weights = next((own / part).glob("*.safetensors"))
    weights.write_bytes(BROKEN[kind](weights.read_bytes(), {}))
    with pytest.raises(errors.NoBackendError, match=r"\bown\b") as caught:
        folders.loaded(own, torch.float32)
    assert str(own) not in str(caught.value)


def test_who_waits_for_the_device_may_leave(engine: DiffusionEngine, tmp_path: Path) -> None:
    token, ended = diffusion.token(), threading.Event()

    def wait() -> None:
        try:
            asked = request("generate_image", "B", **SMALL)
            engine.run(asked, HeardSink(tmp_path), token)
        except Cancelled:
            ended.set()

    with engine.manager.lock:
        waiting = threading.Thread(target=wait)
        waiting.start()
        token.cancel()
        assert ended.wait(60)
    waiting.join()
    assert not engine.manager.lock.locked()


def at_loading(engine: DiffusionEngine, token: Token, patch: pytest.MonkeyPatch) -> None:
    plain = folders.loaded
    engine.manager._loaded.clear()
    patch.setattr(folders, "loaded", lambda *given: (plain(*given), token.cancel())[0])


def at_part(*names: str) -> Callable[..., None]:
    def at(engine: DiffusionEngine, token: Token, patch: pytest.MonkeyPatch) -> None:
        module = engine.manager.parts("picture:B")[names[0]].get_submodule(".".join(names[1:]))
        plain = module.forward
        patch.setattr(module, "forward", lambda *a, **k: (token.cancel(), plain(*a, **k))[1])

    return at


@pytest.fixture(scope="module")
def own(models: dict[str, Path]) -> DiffusionEngine:
    return diffusion.engine({"picture:B": models["picture:B"]}, previews=False)


@pytest.mark.parametrize(
    "stage",
    [at_loading, at_part("text_encoder"), at_part("unet"), at_part("vae", "decoder")],
    ids=["load", "words", "step", "decode"],
)  # fmt: skip
def test_cancelling_at_every_stage_ends_it_there(
    own: DiffusionEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: Any
) -> None:
    given = picture("image", SOFT, tmp_path) | {"prompt_strength": 1.0}
    asked = request("generate_image", "B", **SMALL | given)
    token = diffusion.token()
    with monkeypatch.context() as patch:
        stage(own, token, patch)
        with pytest.raises(Cancelled):
            own.run(asked, HeardSink(tmp_path), token)
    assert token.cancelled
    assert not list(tmp_path.rglob("draft-*"))
    assert len(own.run(asked, HeardSink(tmp_path), diffusion.token()).value) == 1
