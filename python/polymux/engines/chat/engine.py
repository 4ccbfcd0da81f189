"""Chat engine on llama.cpp (package xllamacpp): messages, tools, JSON schemas, concurrency.

The library supports OpenAI's format. This module adds the fields that it lacks, its three kinds of
errors, cancellation while the prompt is processed, and closing of the server socket that it opens.
"""

from __future__ import annotations

import base64
import os
import secrets
import socket
import stat
import struct
import threading
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import (
    Engine,
    Output,
    context_tokens,
    hash_of,
    missing_package,
    model_name,
    threads,
)
from polymux.engines.chat.answers import Conversation, Pace, of_library, refused
from polymux.engines.chat.calls import RequiredCalls
from polymux.engines.chat.gguf import TOKENS, control_tokens, gguf_facts, knows_tools
from polymux.engines.chat.json_schema import ChatSchemas, for_grammar
from polymux.engines.chat.openmp import OpenMpThreads, provide_libgomp
from polymux.engines.chat.requests import (
    check_tools,
    control_pattern,
    plain_texts,
    stops,
    with_parts,
    with_picture,
    with_system,
)
from polymux.service.errors import engine_failed, status_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from polymux.engines.base import EngineSink, Request, Token


class Places:
    """A counter of free places. Thread-safe."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._changed = threading.Condition()
        #: First come, first served: otherwise single requests would starve requests for several.
        self._queue: deque[object] = deque()

    @contextmanager
    def taken(self, count: int, token: Token) -> Iterator[None]:
        """Wait for several places at once, and hold them inside the ``with`` block.

        Args:
            count: How many; at most the total number.
            token: Cancellation stops the waiting.

        Raises:
            Cancelled: `token` was canceled.
        """
        token.on_cancel(self._look)
        self._wait(count, token)
        try:
            yield
        finally:
            with self._changed:
                self._free += count
                self._changed.notify_all()

    def _wait(self, count: int, token: Token) -> None:
        own = object()
        with self._changed:
            self._queue.append(own)
            try:
                token.check()
                while self._queue[0] is not own or self._free < count:
                    self._changed.wait()
                    token.check()
                self._free -= count
            finally:
                self._queue.remove(own)
                self._changed.notify_all()

    def _look(self) -> None:
        with self._changed:
            self._changed.notify_all()


class IpcListener:
    """A Unix socket in the abstract namespace (unix(7)) for the library's server.

    Attributes:
        name: Name for the library to listen on. The library recognizes a socket by the name's end.
        key: API key that a connection would need.
    """

    def __init__(self) -> None:
        self.name = f"\0polymux-chat-{secrets.token_hex(16)}.sock"
        self.key = secrets.token_hex(32)

    def shut(self) -> None:
        """Stop the library from accepting connections.

        Raises:
            InternalServerError: The socket was not found, so it would stay open.
        """
        for one in Path("/proc/self/fd").iterdir():
            descriptor = int(one.name)
            with suppress(OSError):
                if stat.S_ISSOCK(os.fstat(descriptor).st_mode) and self._shut(descriptor):
                    return
        raise engine_failed("cannot close the socket of xllamacpp, because it was not found")

    def _shut(self, descriptor: int) -> bool:
        """Shut a socket down if it is ours. The library closes the descriptor."""
        with socket.socket(fileno=os.dup(descriptor)) as found:
            if found.family != socket.AF_UNIX or found.getsockname() != self.name.encode():
                return False
            found.shutdown(socket.SHUT_RDWR)
            return True


#: API fields that are passed to the library.
_TAKEN = frozenset(
    (
        "messages", "temperature", "top_p", "stop", "seed", "n", "response_format", "tools",
        "tool_choice", "parallel_tool_calls", "frequency_penalty", "presence_penalty", "logprobs",
        "top_logprobs", "logit_bias",
    )
)  # fmt: skip
#: API fields that are handled here or by the caller.
_OWN = frozenset(
    ("model", "stream", "timeout", "shuffle", "image_url", "max_completion_tokens",
     "stream_options", "user", "disable_tool_validation")
)  # fmt: skip
#: Prompt tokens per batch. Larger batches are not faster on a CPU: 64 tokens with 135 million
#: parameters take half a second. GPUs need larger batches, which take them less time.
_BATCH, _GPU_BATCH = 64, 512
_DEVICES = ("auto", "cpu", "gpu")
#: The library uses 32 bits of a seed. The largest value means "random", and each further response
#: increments the seed.
_SEEDS = 2**32 - 8


class ChatEngine(Engine):
    """A chat engine with one model and several parallel conversations."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Load the GGUF file ``model``.

        Further options: ``mmproj`` (GGUF file for image input), ``aliases`` (model names in
        requests; responses use the first), ``context`` (tokens per conversation),
        ``max_concurrency``, ``batch`` (prompt tokens between two checks for cancellation),
        ``device`` (``"auto"`` uses a GPU if available; ``"cpu"``, ``"gpu"``), ``gpu_layers``
        (default: all) and ``system_prompt`` (for chats without a system or developer message).

        Raises:
            NoBackendError: The package or the file is missing.
        """
        self._threads = OpenMpThreads(threads())
        provide_libgomp()
        try:
            import xllamacpp
        except ImportError as error:
            raise missing_package("chat", "xllamacpp", "chat", error) from None
        self._threads.attach(xllamacpp)
        path = Path(str(options.get("model", ""))).expanduser()
        if not path.is_file():
            raise status_error(
                errors.NoBackendError,
                f"chat model not found: {path.name!r}. Set the engine's option `model` to the path "
                "of a GGUF file",
            )
        self.max_concurrency = int(options.get("max_concurrency", 1))
        self._places = Places(self.max_concurrency)
        self._pace = Pace()
        self._context = context_tokens(options)
        self._has_eyes = bool(options.get("mmproj"))
        self._system_prompt = str(options.get("system_prompt") or "")
        self._door = IpcListener()
        try:
            self._server = xllamacpp.Server(self._parameters(xllamacpp, path, options))
        except RuntimeError as error:
            raise engine_failed(f"cannot load chat model {path.name!r}: {error}") from None
        self._door.shut()
        self._version = hash_of(path)
        self._engine_model = model_name(options, path.stem)
        facts = _facts(path)
        self._knows_tools = knows_tools(facts)
        self._control = control_pattern(control_tokens(facts))
        names = options.get("aliases") or [path.stem]
        self._names = [str(one) for one in names]
        return {
            "model": self._engine_model,
            "version": self._version,
            "pictures": self._has_eyes,
            "device": "gpu" if self._on_gpu else "cpu",
        }

    def _parameters(self, library: Any, path: Path, options: Mapping[str, Any]) -> Any:
        parameters = library.CommonParams()
        parameters.model.path = os.fspath(path)
        if self._has_eyes:
            parameters.mmproj.path = os.fspath(Path(options["mmproj"]).expanduser())
        parameters.n_parallel = self.max_concurrency
        parameters.n_ctx = self._context * self.max_concurrency
        self._on_gpu = _wants_gpu(library, str(options.get("device", "auto")))
        batch = int(options.get("batch", _GPU_BATCH if self._on_gpu else _BATCH))
        parameters.n_batch = parameters.n_ubatch = batch
        parameters.n_gpu_layers = int(options.get("gpu_layers", -1)) if self._on_gpu else 0
        parameters.mmproj_use_gpu = self._on_gpu
        for one in (parameters.cpuparams, parameters.cpuparams_batch):
            one.n_threads = threads()
            one.poll = 0  # Do not busy-wait.
        parameters.verbosity = -1
        parameters.use_jinja = True
        parameters.ui = False
        parameters.hostnames, parameters.api_keys = [self._door.name], [self._door.key]
        return parameters

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        count = int(request.values.get("n") or 1)
        longest = min(self._context, int(request.values.get("max_completion_tokens") or 1 << 62))
        schemas = ChatSchemas(request.values)
        check_tools(request.values, sink.warn, known=self._knows_tools)
        calls = RequiredCalls.of(request)
        conversation = Conversation(
            request, sink, token, self._called(request), schemas, count * longest, self._pace, calls
        )
        conversation.engine_model = self._engine_model
        body = self._body(request, sink, calls)
        # The library generates at most `max_concurrency` responses at once; the others follow.
        for first in range(0, count, self.max_concurrency):
            conversation.first = first
            some = min(self.max_concurrency, count - first)
            with self._places.taken(some, token):
                self._ask(_several(body, first, some), conversation, token)
        return Output(conversation.finished(), self._version, conversation.metrics())

    def _ask(self, body: dict[str, Any], conversation: Conversation, token: Token) -> None:
        def take(chunks: Any) -> bool:
            self._threads.adapt()
            return conversation.take(chunks)

        token.check()
        self._threads.adapt()
        try:
            response = self._server.handle_chat_completions(body, take)
        except (ValueError, RuntimeError) as error:
            raise refused(str(error), conversation.schema_param) from None
        token.check()
        conversation.check()
        if isinstance(response, dict) and "error" in response:
            raise of_library(response["error"], conversation.schema_param)

    def _called(self, request: Request) -> str:
        """Return the model name for the response: the one in the request if it has one."""
        asked = str(request.values.get("model") or "default")
        return self._names[0] if asked == "default" else asked

    def _body(
        self, request: Request, sink: EngineSink, calls: RequiredCalls | None
    ) -> dict[str, Any]:
        values = request.values
        body: dict[str, Any] = {name: values[name] for name in _TAKEN & request.given}
        for name in sorted(request.given - _TAKEN - _OWN):
            sink.warn(f"{name}: not supported by the local engine, ignored")
        if "max_completion_tokens" in request.given:
            # The library only uses 32 bits of the value.
            body["max_tokens"] = min(values["max_completion_tokens"], self._context)
        if isinstance(body.get("seed"), int):
            body["seed"] %= _SEEDS
        if calls is not None:
            # The template still gets the tools.
            body["tools"], body["tool_choice"] = calls.tools, "none"
            form = {"name": "call", "schema": calls.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if "stop" in body:
            body["stop"] = stops(values["stop"], sink.warn)
        if values.get("logprobs") is True:
            # The library returns 20 alternatives by default, and no probabilities for 0.
            body["top_logprobs"] = max(1, int(values.get("top_logprobs") or 0))
        body["messages"] = plain_texts(body["messages"], self._control, sink.warn)
        if self._system_prompt:
            body["messages"] = with_system(body["messages"], self._system_prompt)
        if values.get("image_url"):
            picture = {"url": values["image_url"]}
            body["messages"] = with_picture(body["messages"], picture) or body["messages"]
        body["messages"] = _with_pixels(body["messages"], values)
        body |= {
            name: for_grammar(body[name]) for name in ("response_format", "tools") if name in body
        }
        # Streaming allows cancellation between chunks and between batches of the prompt.
        return body | {
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
            "timings_per_token": False,
            "cache_prompt": True,
        }


def _several(body: dict[str, Any], first: int, count: int) -> dict[str, Any]:
    """Request some of several responses, each with the seed that it would have among all."""
    seed = body.get("seed")
    own = {"seed": seed + first} if first and isinstance(seed, int) else {}
    return body | own | {"n": count}


def _facts(path: Path) -> dict[str, Any]:
    """Read the model's metadata, or return {} if that fails. The library has loaded it already."""
    with suppress(OSError, ValueError, struct.error, KeyError):
        return gguf_facts(path, TOKENS)
    return {}


def _with_pixels(messages: list[Any], values: Mapping[str, Any]) -> list[Any]:
    """Replace the images in messages with their pixels.

    The library would download any URL without SSRF protection and open any file, so it only gets
    pixels.
    """
    facts = iter(enumerate(values.get("pictures") or ()))

    def replaced(_: dict[str, Any]) -> dict[str, Any]:
        number, size = next(facts, (0, None))
        if size is None:
            raise status_error(
                errors.NoBackendError,
                "the images of the chat cannot be decoded, because the media engine is not "
                "available",
            )
        url = _portable_pixmap(values[f"pixels_{number}"].path, size)
        return {"type": "image_url", "image_url": {"url": url}}

    return with_parts(messages, replaced)


def _portable_pixmap(path: Path, facts: Mapping[str, int]) -> str:
    """Encode pixels as PPM, the simplest format that the library reads, in a data: URL."""
    header = f"P6\n{facts['width']} {facts['height']}\n255\n".encode()
    data = base64.b64encode(header + path.read_bytes()).decode()
    return f"data:image/x-portable-pixmap;base64,{data}"


def _wants_gpu(library: Any, device: str) -> bool:
    """Whether to use a GPU: on request, or with ``"auto"`` if the library finds one.

    Raises:
        NoBackendError: A GPU is requested but not found, or the device is unknown.
    """
    if device not in _DEVICES:
        raise status_error(
            errors.NoBackendError,
            f"device={device[:50]!r}: unknown device (allowed: {', '.join(_DEVICES)})",
        )
    if device == "cpu":
        return False
    kinds = library.ggml_backend_dev_type
    gpus = (kinds.GGML_BACKEND_DEVICE_TYPE_GPU, kinds.GGML_BACKEND_DEVICE_TYPE_IGPU)
    found = any(one["type"] in gpus for one in library.get_device_info())
    if device == "gpu" and not found:
        raise status_error(
            errors.NoBackendError,
            "device=gpu: xllamacpp found no GPU. Install a build of xllamacpp for your GPU",
        )
    return found
