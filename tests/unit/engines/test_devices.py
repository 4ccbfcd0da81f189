from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from polymux.engines.chat.engine import ChatEngine
from polymux.engines.speech.engine import SpeechEngine
from polymux.errors import NoBackendError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CPU, GPU, INTEGRATED = "cpu", "gpu", "igpu"


@pytest.fixture
def chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[Any, Any]]]:
    """A function that loads a chat engine while the library reports `devices`.

    It returns the facts of the engine and the parameters that the library received.
    """
    model = tmp_path / "small.gguf"
    model.write_bytes(b"GGUF")
    listening = ExitStack()

    def serve(made: list[Any], parameters: Any) -> None:
        made.append(parameters)
        door = listening.enter_context(socket.socket(socket.AF_UNIX))
        door.bind(parameters.hostnames[0])

    def load(*devices: str, **options: Any) -> tuple[Any, Any]:
        made: list[Any] = []
        library = ModuleType("xllamacpp")
        attributes = {
            "CommonParams": lambda: SimpleNamespace(
                model=SimpleNamespace(), mmproj=SimpleNamespace(),
                cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace(),
            ),
            "Server": partial(serve, made),
            "get_device_info": lambda: [{"name": one, "type": one} for one in devices],
            "ggml_backend_dev_type": SimpleNamespace(
                GGML_BACKEND_DEVICE_TYPE_CPU=CPU,
                GGML_BACKEND_DEVICE_TYPE_GPU=GPU,
                GGML_BACKEND_DEVICE_TYPE_IGPU=INTEGRATED,
            ),
        }  # fmt: skip
        for name, value in attributes.items():
            setattr(library, name, value)
        monkeypatch.setitem(sys.modules, "xllamacpp", library)
        facts = ChatEngine().load({"model": str(model), **options})
        (parameters,) = made
        return facts, parameters

    with listening:
        yield load


@pytest.mark.parametrize(
    ("devices", "options", "device"),
    [
        ((CPU, GPU), {}, "gpu"),
        ((GPU,), {"device": "auto"}, "gpu"),
        ((INTEGRATED, CPU), {"device": "gpu"}, "gpu"),
        # `gpu_layers` has no effect without a GPU.
        ((CPU,), {"gpu_layers": 20}, "cpu"),
        ((), {"device": "auto", "gpu_layers": 20}, "cpu"),
        ((CPU, GPU), {"device": "cpu", "gpu_layers": 20}, "cpu"),
    ],
)
def test_a_chat_takes_the_gpu_that_is_there_and_wanted(
    chat: Callable[..., tuple[Any, Any]],
    devices: tuple[str, ...],
    options: dict[str, Any],
    device: str,
) -> None:
    facts, parameters = chat(*devices, **options)
    assert facts["device"] == device
    assert parameters.n_gpu_layers == (-1 if device == "gpu" else 0)  # -1: all layers
    assert parameters.mmproj_use_gpu is (device == "gpu")
    assert parameters.n_batch == parameters.n_ubatch == (512 if device == "gpu" else 64)


def test_configured_layers_and_batches_are_kept(chat: Callable[..., tuple[Any, Any]]) -> None:
    _, parameters = chat(CPU, GPU, gpu_layers=12, batch=128)
    assert parameters.n_gpu_layers == 12
    assert parameters.n_batch == parameters.n_ubatch == 128
    with pytest.raises(NoBackendError, match=r"gpu.*xllamacpp"):
        chat(CPU, device="gpu")


@pytest.mark.parametrize("device", [None, "auto", "cpu", "cuda"])
def test_speech_leaves_the_choice_to_its_library_unless_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str | None
) -> None:
    """With `auto`, CTranslate2 uses a GPU if it finds one."""
    for name in ("config.json", "model.bin", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"{}")
    asked: dict[str, Any] = {}
    library: Any = ModuleType("faster_whisper")
    library.WhisperModel = lambda path, **more: asked.update(more, path=path)
    library.BatchedInferencePipeline = lambda model: model
    monkeypatch.setitem(sys.modules, "faster_whisper", library)
    SpeechEngine().load({"model": str(tmp_path)} | ({} if device is None else {"device": device}))
    assert asked["path"] == str(tmp_path)
    assert asked["local_files_only"] is True
    assert asked["device"] == (device or "auto")
