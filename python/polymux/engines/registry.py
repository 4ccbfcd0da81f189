"""All engines: what each of them does, what it needs, its options, and the code behind it.

This table is the only list of engines. Settings, model selection, `polymux doctor`, the memory
budget and the processes are derived from it. Code is named as ``module:name`` and loaded when it is
needed: reading this table imports no engine.
"""

from __future__ import annotations

import shutil
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.settings import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from polymux.downloads.url_inputs import UrlFetcher
    from polymux.engines.base import Engine
    from polymux.fetch.fetcher import FetchPolicy
    from polymux.service.backend import Backend

#: What options accept.
TEXT, TEXTS = Rule("str"), Rule("tuple[str, ...]")
FLAG, TABLE = Rule("bool"), Rule("Mapping")
COUNT, WHOLE = Rule("int", min=1), Rule("int", min=-(1 << 31), must="an integer")

_NONE: Mapping[str, Any] = MappingProxyType({})


class EngineSpec(NamedTuple):
    """An engine.

    Attributes:
        engine: Its class, a `polymux.engines.base.Engine`, as ``module:name``.
        operations: What it can do.
        title: What it does, for people.
        module: The Python module that it needs; empty if none.
        extra: The extra of polymux that brings that module.
        program: The program that it needs; empty if none.
        install: The command that installs the program.
        options: Name of each option to what it accepts: what the engine's `load` reads.
        files: Those options that name files.
        model_form: What its model is on disk; empty if it needs none.
        model_layout: Function ``module:name`` from a path and the engine's name to a
            `polymux.models.families.Layout`, or None if the path is no such model.
        has_roles: Whether it needs several models, each in a role (`polymux.models.roles`).
        needed_bytes: Function ``module:name`` from options to the memory that it takes, about, or a
            number of bytes; None if nobody knows.
        backend: Function ``module:name`` from its bare backend and a `BackendContext` to the
            backend that the service gets. Default: the bare one.
        supervision: How its process is watched, where that differs from the defaults of
            `polymux.engines.process.supervisor.Supervision`.
    """

    engine: str
    operations: tuple[str, ...]
    title: str
    module: str = ""
    extra: str = ""
    program: str = ""
    install: str = ""
    options: Mapping[str, Rule] = _NONE
    files: tuple[str, ...] = ()
    model_form: str = ""
    model_layout: str = ""
    has_roles: bool = False
    needed_bytes: str | int | None = None
    backend: str = ""
    supervision: Mapping[str, float] = _NONE

    @property
    def remedy(self) -> str:
        return self.install or f"pip install 'polymux[{self.extra}]'"

    @property
    def is_installed(self) -> bool:
        if self.program:
            return shutil.which(self.program) is not None
        return find_spec(self.module) is not None


class BackendContext(NamedTuple):
    """What an engine's backend may use beside the engine.

    Attributes:
        name: The engine's, as settings call it.
        settings: Its options as settings have them.
        options: Its options with the chosen model.
        media: Opens untrusted files for the other engines.
        url_fetcher: Brings files from URLs.
        policy: What URLs may be fetched.
    """

    name: str
    settings: Mapping[str, Any]
    options: Mapping[str, Any]
    media: Backend
    url_fetcher: UrlFetcher
    policy: FetchPolicy


ENGINES = {
    "media": EngineSpec(
        engine="polymux.engines.media.engine:MediaEngine",
        operations=("convert_to_mp3",),
        title="conversions to MP3",
        module="polymux._native._media",
        options={"max_concurrency": COUNT, "limits": TABLE, "max_pixels": COUNT},
        # A decoder may be in a loop: how long it may report nothing and write nothing.
        supervision={"stalled_s": 120.0},
    ),
    "chat": EngineSpec(
        engine="polymux.engines.chat.engine:ChatEngine",
        operations=("chat", "free_chat"),
        title="chats",
        module="xllamacpp",
        extra="chat",
        options={
            "model": TEXT, "mmproj": TEXT, "aliases": TEXTS, "context": COUNT, "batch": COUNT,
            "max_concurrency": COUNT, "device": TEXT, "gpu_layers": WHOLE,
        },
        files=("model", "mmproj"),
        model_form="a GGUF file",
        model_layout="polymux.models.families:gguf_layout",
        needed_bytes="polymux.engines.memory:chat_bytes",
        backend="polymux.engines.chat.backend:chat_backend",
    ),
    "speech": EngineSpec(
        engine="polymux.engines.speech.engine:SpeechEngine",
        operations=("transcribe",),
        title="speech to text",
        module="faster_whisper",
        extra="speech",
        options={
            "model": TEXT, "device": TEXT, "compute": TEXT, "beam": COUNT, "batch": COUNT,
        },
        files=("model",),
        model_form="a folder in CTranslate2's form (config.json, model.bin, tokenizer.json)",
        model_layout="polymux.models.families:ctranslate2_layout",
        needed_bytes="polymux.engines.memory:speech_bytes",
        backend="polymux.engines.media.backend:speech_backend",
    ),
    "upscale": EngineSpec(
        engine="polymux.engines.upscale:UpscaleEngine",
        operations=("upscale_image",),
        title="larger pictures",
        module="ncnn",
        extra="upscale",
        options={
            "model": TEXT, "factor": COUNT, "input": TEXT, "output": TEXT, "tile": COUNT,
            "max_pixels": COUNT,
        },
        files=("model",),
        model_form="a .param file of ncnn with its .bin beside it",
        model_layout="polymux.models.families:ncnn_layout",
        needed_bytes="polymux.engines.memory:upscale_bytes",
        backend="polymux.engines.media.backend:upscale_backend",
    ),
    "diffusion": EngineSpec(
        engine="polymux.engines.diffusion.engine:DiffusionEngine",
        operations=("generate_image", "upscale_image", "generate_video", "generate_music"),
        title="pictures, video and music",
        module="diffusers",
        extra="diffusion",
        options={
            "models": TABLE, "loras": TABLE, "max_concurrency": COUNT, "device": TEXT,
            "dtype": TEXT, "offload": TEXT, "attention": TEXT, "max_pixels": COUNT,
            "untiled_pixels": COUNT, "non_commercial": FLAG, "tiny_vae": FLAG, "previews": FLAG,
            "upscaler": TEXT, "upscaler_factor": COUNT, "max_detail_pixels": COUNT,
        },
        model_form="a folder as diffusers' save_pretrained writes it, its weights in safetensors, "
        "or a LoRA in one .safetensors file",
        model_layout="polymux.models.families:diffusers_layout",
        has_roles=True,
        needed_bytes="polymux.engines.memory:diffusion_bytes",
        backend="polymux.engines.diffusion.backend:diffusion_backend",
        # Models take long to load again: how long canceled work may take to stop.
        supervision={"cancel_timeout_s": 10.0},
    ),
    "rapidocr": EngineSpec(
        engine="polymux.engines.ocr.rapidocr:RapidOcrEngine",
        operations=("read_text",),
        title="text from pictures",
        module="rapidocr",
        extra="ocr",
        needed_bytes=900 << 20,
        backend="polymux.engines.media.backend:ocr_backend",
    ),
    "tesseract": EngineSpec(
        engine="polymux.engines.ocr.tesseract:TesseractEngine",
        operations=("read_text",),
        title="text from pictures",
        program="tesseract",
        install="apt install tesseract-ocr",
        options={"program": TEXT, "language": TEXT},
        needed_bytes=100 << 20,
        backend="polymux.engines.media.backend:ocr_backend",
    ),
}  # fmt: skip


def loaded(reference: str) -> Any:
    """What a ``module:name`` names.

    Raises:
        ImportError: There is no such module.
        AttributeError: It has no such name.
    """
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def engine_of(family: str) -> Engine:
    """A new engine, nothing loaded. ``module:name`` names one that is not in the table.

    Raises:
        KeyError: There is no such engine.
        ImportError: Its module is not there.
    """
    kind: Callable[[], Engine] = loaded(family if ":" in family else ENGINES[family].engine)
    return kind()
