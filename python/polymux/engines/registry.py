"""The registry of engines: operations, requirements, options and code.

This table is the only list of engines. Settings, model selection, `polymux doctor`, the memory
budget and the processes are derived from it. Code is named as ``module:name`` and loaded when it is
needed: reading this table imports no engine.
"""

from __future__ import annotations

import math
import shutil
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.memory import machine_bytes
from polymux._util.settings import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from polymux.downloads.url_inputs import UrlFetcher
    from polymux.engines.base import Engine
    from polymux.fetch.fetcher import FetchPolicy
    from polymux.service.backend import Backend

#: Rules for options.
TEXT, TEXTS = Rule("str"), Rule("tuple[str, ...]")
FLAG, TABLE = Rule("bool"), Rule("Mapping")
COUNT, WHOLE = Rule("int", min=1), Rule("int", min=-(1 << 31), must="an integer")

_NONE: Mapping[str, Any] = MappingProxyType({})
_SIGNS_OF_LIBGOMP = (
    "libgomp.so.1:", "symbol: GOMP_", "symbol: omp_", "version `GOMP_", "version `OMP_",
)  # fmt: skip
#: Shared libraries that Python packages expect in the system, what import errors say without them,
#: and their packages in Debian. polymux's own libgomp has only the functions that are used today.
_SYSTEM_LIBRARIES = {"libgomp.so.1": (_SIGNS_OF_LIBGOMP, "libgomp1")}


class EngineSpec(NamedTuple):
    """An engine.

    Attributes:
        engine: Its class, a `polymux.engines.base.Engine`, as ``module:name``.
        operations: Operations that it supports.
        title: Short description for users.
        modules: Python modules that it needs, also for opening its files in the media engine.
        preparation: Function ``module:name`` to call before importing the modules; empty if none.
        extra: The extra of polymux that installs the modules.
        program: Program that it needs; empty if none.
        install: Command that installs the program.
        options: Options of the engine's `load`, with their rules.
        files: Options that name files.
        model_form: Format of its model on disk; empty if it needs none.
        model_layout: Function ``module:name`` from a path and the engine's name to a
            `polymux.models.families.Layout`, or None if the path is not such a model.
        model_operations: Function ``module:name`` from the path of a model (its main file, or its
            directory) to the operations that it can run. Default: all of the engine.
        has_roles: Whether it needs several models, each in a role (`polymux.models.roles`).
        needed_bytes: Approximate memory in bytes, or a function ``module:name`` from options to it;
            None if unknown.
        backend: Function ``module:name`` from the process's backend and a `BackendContext` to the
            service's backend. Default: the process's backend.
        supervision: Settings that differ from the defaults of
            `polymux.engines.process.supervisor.Supervision`.
        memory_for_two_bytes: Memory of the machine from which on it runs two requests at the same
            time by default, so that one long request does not hold up all others. Default: never.
    """

    engine: str
    operations: tuple[str, ...]
    title: str
    modules: tuple[str, ...] = ()
    preparation: str = ""
    extra: str = ""
    program: str = ""
    install: str = ""
    options: Mapping[str, Rule] = _NONE
    files: tuple[str, ...] = ()
    model_form: str = ""
    model_layout: str = ""
    model_operations: str = ""
    has_roles: bool = False
    needed_bytes: str | int | None = None
    backend: str = ""
    supervision: Mapping[str, float] = _NONE
    memory_for_two_bytes: float = math.inf

    @property
    def usual_concurrency(self) -> int:
        """How many requests run at the same time by default."""
        return 2 if machine_bytes() >= self.memory_for_two_bytes else 1

    @property
    def remedy(self) -> str:
        """Commands that install what is missing; all of them if nothing is."""
        pip = f"pip install 'polymux[{self.extra}]'"
        if not self.program:
            return pip
        missing = [self.install] * (not self._has_program) + [pip] * (not self._has_modules)
        return " && ".join(missing or [self.install, pip])

    @property
    def is_installed(self) -> bool:
        return self._has_program and self._has_modules

    @property
    def _has_program(self) -> bool:
        return not self.program or shutil.which(self.program) is not None

    @property
    def _has_modules(self) -> bool:
        return all(find_spec(one) is not None for one in self.modules)


class BackendContext(NamedTuple):
    """Resources for the function that creates an engine's backend.

    Attributes:
        name: Name of the engine in settings.
        settings: Its options in the settings.
        options: Its options with the selected model.
        media: Opens untrusted files for other engines.
        url_fetcher: Downloads URL inputs.
        policy: Exceptions to SSRF protection.
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
        title="conversion to MP3",
        modules=("polymux._native._media",),
        options={"max_concurrency": COUNT, "limits": TABLE, "max_pixels": COUNT},
        # Time limits without progress or output: a decoder may be in an infinite loop, and opening
        # a crafted file may take minutes.
        supervision={"stalled_s": 120.0, "opening_s": 20.0},
        memory_for_two_bytes=4 << 30,
    ),
    "chat": EngineSpec(
        engine="polymux.engines.chat.engine:ChatEngine",
        operations=("chat", "free_chat"),
        title="chat",
        modules=("xllamacpp",),
        preparation="polymux.engines.chat.openmp:provide_libgomp",
        extra="chat",
        options={
            "model": TEXT, "mmproj": TEXT, "aliases": TEXTS, "context": COUNT, "batch": COUNT,
            "max_concurrency": COUNT, "device": TEXT, "gpu_layers": WHOLE, "system_prompt": TEXT,
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
        modules=("faster_whisper",),
        extra="speech",
        options={
            "model": TEXT, "device": TEXT, "compute": TEXT, "beam": COUNT, "batch": COUNT,
        },
        files=("model",),
        model_form="a directory in CTranslate2 format (config.json, model.bin, tokenizer.json)",
        model_layout="polymux.models.families:ctranslate2_layout",
        needed_bytes="polymux.engines.memory:speech_bytes",
        backend="polymux.engines.media.backend:speech_backend",
    ),
    "upscale": EngineSpec(
        engine="polymux.engines.upscale:UpscaleEngine",
        operations=("upscale_image",),
        title="image upscaling",
        modules=("ncnn", "numpy", "PIL"),
        extra="upscale",
        options={
            "model": TEXT, "factor": COUNT, "input": TEXT, "output": TEXT, "tile": COUNT,
            "max_pixels": COUNT,
        },
        files=("model",),
        model_form="an ncnn .param file with its .bin file next to it",
        model_layout="polymux.models.families:ncnn_layout",
        needed_bytes="polymux.engines.memory:upscale_bytes",
        backend="polymux.engines.media.backend:upscale_backend",
    ),
    "diffusion": EngineSpec(
        engine="polymux.engines.diffusion.engine:DiffusionEngine",
        operations=("generate_image", "upscale_image", "generate_video", "generate_music"),
        title="images, video and music",
        modules=("diffusers",),
        extra="diffusion",
        options={
            "models": TABLE, "loras": TABLE, "max_concurrency": COUNT, "device": TEXT,
            "dtype": TEXT, "offload": TEXT, "attention": TEXT, "max_pixels": COUNT,
            "untiled_pixels": COUNT, "non_commercial": FLAG, "tiny_vae": FLAG, "previews": FLAG,
            "upscaler": TEXT, "upscaler_factor": COUNT, "max_detail_pixels": COUNT,
        },
        model_form="a directory in diffusers format (save_pretrained) with safetensors weights, "
        "or a LoRA in one .safetensors file",
        model_layout="polymux.models.families:diffusers_layout",
        has_roles=True,
        needed_bytes="polymux.engines.memory:diffusion_bytes",
        backend="polymux.engines.diffusion.backend:diffusion_backend",
        # Longer than the default, because loading models again takes long.
        supervision={"cancel_timeout_s": 10.0},
    ),
    "sdcpp": EngineSpec(
        engine="polymux.engines.sdcpp.engine:SdcppEngine",
        operations=("generate_image", "generate_video"),
        title="images and video with quantized weights",
        modules=("cyllama", "numpy", "PIL"),
        extra="sdcpp",
        options={
            "models": TABLE, "weights": TEXT, "max_pixels": COUNT, "non_commercial": FLAG,
            "previews": FLAG, "upscaler": TEXT, "upscaler_factor": COUNT,
        },
        model_form="a checkpoint in one .gguf or .safetensors file, or a directory with "
        "diffusion_model.gguf and the other parts",
        model_layout="polymux.engines.sdcpp.models:layout",
        model_operations="polymux.engines.sdcpp.models:operations_of",
        has_roles=True,
        needed_bytes="polymux.engines.memory:sdcpp_bytes",
        backend="polymux.engines.sdcpp.backend:sdcpp_backend",
        # The library cannot stop a request, so its process ends. While it loads and converts
        # weights, no Python code runs.
        supervision={"cancel_timeout_s": 0.1, "silence_s": 600.0},
    ),
    "rapidocr": EngineSpec(
        engine="polymux.engines.ocr.rapidocr:RapidOcrEngine",
        operations=("read_text",),
        title="text from images",
        modules=("rapidocr", "numpy", "PIL"),
        extra="ocr",
        needed_bytes="polymux.engines.memory:rapidocr_bytes",
        memory_for_two_bytes=8 << 30,
        backend="polymux.engines.media.backend:ocr_backend",
    ),
    "tesseract": EngineSpec(
        engine="polymux.engines.ocr.tesseract:TesseractEngine",
        operations=("read_text",),
        title="text from images",
        modules=("numpy", "PIL"),
        extra="images",
        program="tesseract",
        install="apt install tesseract-ocr",
        options={"program": TEXT, "language": TEXT},
        needed_bytes=100 << 20,
        memory_for_two_bytes=4 << 30,
        backend="polymux.engines.media.backend:ocr_backend",
    ),
}  # fmt: skip


def missing_library(problem: str) -> tuple[str, str]:
    """Return the shared library that an import needs, and the command that installs it on Debian.

    Args:
        problem: The message of an import error.

    Returns:
        Name and command; both empty if the message is about something else.
    """
    for library, (signs, package) in _SYSTEM_LIBRARIES.items():
        if any(sign in problem for sign in signs):
            return library, f"apt install {package}"
    return "", ""


def loaded(reference: str) -> Any:
    """Import the object that a ``module:name`` names.

    Raises:
        ImportError: The module does not exist.
        AttributeError: The module has no such name.
    """
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def engine_of(family: str) -> Engine:
    """Create an engine without loading its models. ``module:name`` names an unregistered engine.

    Raises:
        KeyError: The engine is unknown.
        ImportError: Its module is missing.
    """
    kind: Callable[[], Engine] = loaded(family if ":" in family else ENGINES[family].engine)
    return kind()
