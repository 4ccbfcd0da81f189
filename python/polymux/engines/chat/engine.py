"""Chat on llama.cpp, by the package xllamacpp: messages, tools, JSON schemas, several at once.

The library speaks OpenAI's form already. What is done here: what the interface has and it has not,
its three ways to fail, cancelling while the prompt is read, and the door that it opens by itself.
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
from polymux.engines.base import Engine, Output, context_tokens, hash_of, missing_package, threads
from polymux.engines.chat.answers import Conversation, of_library, refused
from polymux.engines.chat.gguf import TOKENS, control_tokens, gguf_facts, knows_tools
from polymux.engines.chat.json_schema import ChatSchemas, for_grammar
from polymux.engines.chat.requests import (
    check_tools,
    control_pattern,
    named_tool,
    plain_texts,
    stops,
    with_parts,
    with_picture,
)
from polymux.service.errors import engine_failed, status_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from polymux.engines.base import EngineSink, Request, Token


class Places:
    """So many. Thread-safe."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._changed = threading.Condition()
        #: Whoever comes first is first: many who want one each would keep out who wants several.
        self._queue: deque[object] = deque()

    @contextmanager
    def taken(self, count: int, token: Token) -> Iterator[None]:
        """Waits for some, all at once, and has them as long as the block goes on.

        Args:
            count: How many; no more than there are.
            token: Whose end ends the waiting.

        Raises:
            Cancelled: `token` asked for it.
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
    """A Unix socket in the abstract namespace (unix(7)).

    Attributes:
        name: What the library is to listen on; by its end the library knows it for a socket's.
        key: What whoever comes would have to say.
    """

    def __init__(self) -> None:
        self.name = f"\0polymux-chat-{secrets.token_hex(16)}.sock"
        self.key = secrets.token_hex(32)

    def shut(self) -> None:
        """Nobody comes any more: the library's listening ends.

        Raises:
            InternalServerError: It is not found, and so would stay open.
        """
        for one in Path("/proc/self/fd").iterdir():
            descriptor = int(one.name)
            with suppress(OSError):
                if stat.S_ISSOCK(os.fstat(descriptor).st_mode) and self._shut(descriptor):
                    return
        raise engine_failed("the socket of the chat library is not found, and cannot be shut")

    def _shut(self, descriptor: int) -> bool:
        """Shuts a socket, where it is this one; it is the library's to close."""
        with socket.socket(fileno=os.dup(descriptor)) as found:
            if found.family != socket.AF_UNIX or found.getsockname() != self.name.encode():
                return False
            found.shutdown(socket.SHUT_RDWR)
            return True


#: What the library takes of the interface's fields.
_TAKEN = frozenset(
    (
        "messages", "temperature", "top_p", "stop", "seed", "n", "response_format", "tools",
        "tool_choice", "parallel_tool_calls", "frequency_penalty", "presence_penalty", "logprobs",
        "top_logprobs", "logit_bias",
    )
)  # fmt: skip
#: What is done here, or by who asks.
_OWN = frozenset(
    ("model", "stream", "timeout", "shuffle", "image_url", "max_completion_tokens",
     "stream_options", "user", "disable_tool_validation")
)  # fmt: skip
#: On a processor, larger ones are no faster: 64 tokens of 135 million parameters take one half a
#: second. A GPU wants more at once, and is through them sooner.
_BATCH, _GPU_BATCH = 64, 512
_DEVICES = ("auto", "cpu", "gpu")
#: The library reads 32 bits of a seed, of which the largest is "any", and counts on by one for each
#: of several answers.
_SEEDS = 2**32 - 8


class ChatEngine(Engine):
    """One model; as many conversations at once as it has slots."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Loads ``model``, a GGUF file.

        Also ``mmproj`` (a GGUF file, for pictures), ``aliases`` (what requests call the model; the
        first is what answers call it), ``context`` (tokens of each conversation),
        ``max_concurrency``, ``batch`` (tokens of the prompt between two looks at who has left),
        ``device`` (``"auto"``: a GPU where there is one; ``"cpu"``, ``"gpu"``) and ``gpu_layers``
        (default: all).

        Raises:
            NoBackendError: The package or the file is missing.
        """
        try:
            import xllamacpp
        except ImportError:
            raise missing_package("chat", "xllamacpp", "chat") from None
        path = Path(str(options.get("model", ""))).expanduser()
        if not path.is_file():
            raise status_error(
                errors.NoBackendError,
                f"there is no chat model {path.name!r}: give the path of a GGUF file as `model` in "
                "the engine's options",
            )
        self.max_concurrency = int(options.get("max_concurrency", 1))
        self._places = Places(self.max_concurrency)
        self._context = context_tokens(options)
        self._has_eyes = bool(options.get("mmproj"))
        self._door = IpcListener()
        try:
            self._server = xllamacpp.Server(self._parameters(xllamacpp, path, options))
        except RuntimeError as error:
            raise engine_failed(f"the chat model {path.name!r} cannot be loaded: {error}") from None
        self._door.shut()
        self._version = hash_of(path)
        facts = _facts(path)
        self._knows_tools = knows_tools(facts)
        self._control = control_pattern(control_tokens(facts))
        names = options.get("aliases") or [path.stem]
        self._names = [str(one) for one in names]
        return {
            "model": path.name,
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
            one.poll = 0  # Threads that wait would burn the processors.
        parameters.verbosity = -1
        parameters.use_jinja = True
        parameters.ui = False
        parameters.hostnames, parameters.api_keys = [self._door.name], [self._door.key]
        return parameters

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        count = int(request.values.get("n") or 1)
        longest = min(self._context, int(request.values.get("max_completion_tokens") or 1 << 62))
        schemas = ChatSchemas(request.values)
        conversation = Conversation(
            request, sink, token, self._called(request), schemas, count * longest
        )
        body = self._body(request, sink)
        # The library says no more answers at once than it has slots: others come after those.
        for first in range(0, count, self.max_concurrency):
            conversation.first = first
            some = min(self.max_concurrency, count - first)
            with self._places.taken(some, token):
                self._ask(_several(body, first, some), conversation, token)
        return Output(conversation.finished(), self._version, conversation.metrics())

    def _ask(self, body: dict[str, Any], conversation: Conversation, token: Token) -> None:
        token.check()
        try:
            told = self._server.handle_chat_completions(body, conversation.take)
        except (ValueError, RuntimeError) as error:
            raise refused(str(error)) from None
        token.check()
        conversation.check()
        if isinstance(told, dict) and "error" in told:
            raise of_library(told["error"])

    def _called(self, request: Request) -> str:
        """What the answer calls the model: as the request does, where that names one."""
        asked = str(request.values.get("model") or "default")
        return self._names[0] if asked == "default" else asked

    def _body(self, request: Request, sink: EngineSink) -> dict[str, Any]:
        values = request.values
        check_tools(values, sink.log, known=self._knows_tools)
        body: dict[str, Any] = {name: values[name] for name in _TAKEN & request.given}
        for name in sorted(request.given - _TAKEN - _OWN):
            sink.log(f"{name}: the local engine does not know it and leaves it out")
        if "max_completion_tokens" in request.given:
            # Of a longer one it would look at 32 bits alone.
            body["max_tokens"] = min(values["max_completion_tokens"], self._context)
        if isinstance(body.get("seed"), int):
            body["seed"] %= _SEEDS
        if isinstance(values.get("tool_choice"), dict):
            body["tools"], body["tool_choice"] = named_tool(values), "required"
        if "stop" in body:
            body["stop"] = stops(values["stop"], sink.log)
        if values.get("logprobs") is True:
            # Without a number it tells twenty, and of none it tells nothing at all.
            body["top_logprobs"] = max(1, int(values.get("top_logprobs") or 0))
        body["messages"] = plain_texts(body["messages"], self._control, sink.log)
        if values.get("image_url"):
            picture = {"url": values["image_url"]}
            body["messages"] = with_picture(body["messages"], picture) or body["messages"]
        body["messages"] = _with_pixels(body["messages"], values)
        body |= {
            name: for_grammar(body[name]) for name in ("response_format", "tools") if name in body
        }
        # Always in pieces: between two, and between two batches of the prompt, it can be stopped.
        return body | {
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
            "timings_per_token": False,
            "cache_prompt": True,
        }


def _several(body: dict[str, Any], first: int, count: int) -> dict[str, Any]:
    """What asks for some of several answers: each has the seed that it would have among all."""
    seed = body.get("seed")
    own = {"seed": seed + first} if first and isinstance(seed, int) else {}
    return body | own | {"n": count}


def _facts(path: Path) -> dict[str, Any]:
    """What the model tells of itself; the library has read it already."""
    with suppress(OSError, ValueError, struct.error, KeyError):
        return gguf_facts(path, TOKENS)
    return {}


def _with_pixels(messages: list[Any], values: Mapping[str, Any]) -> list[Any]:
    """The messages with opened pictures in the place of what the request has.

    The library would fetch addresses by itself, wherever they lead, and open whatever it gets: so
    it gets nothing but pixels.
    """
    facts = iter(enumerate(values.get("pictures") or ()))

    def replaced(_: dict[str, Any]) -> dict[str, Any]:
        number, size = next(facts, (0, None))
        if size is None:
            raise status_error(errors.NoBackendError, "no engine here opens pictures")
        url = _portable_pixmap(values[f"pixels_{number}"].path, size)
        return {"type": "image_url", "image_url": {"url": url}}

    return with_parts(messages, replaced)


def _portable_pixmap(path: Path, facts: Mapping[str, int]) -> str:
    """Pixels as the plainest of files that the library reads, in a data: URL."""
    header = f"P6\n{facts['width']} {facts['height']}\n255\n".encode()
    data = base64.b64encode(header + path.read_bytes()).decode()
    return f"data:image/x-portable-pixmap;base64,{data}"


def _wants_gpu(library: Any, device: str) -> bool:
    """Whether layers go to a GPU: where one is wanted or, by ``"auto"``, where the library has one.

    Raises:
        NoBackendError: One is wanted, and the library has none; or it is none of the three words.
    """
    if device not in _DEVICES:
        raise status_error(
            errors.NoBackendError,
            f"device is {device[:50]!r}: a chat model's is {', '.join(_DEVICES)}",
        )
    if device == "cpu":
        return False
    kinds = library.ggml_backend_dev_type
    gpus = (kinds.GGML_BACKEND_DEVICE_TYPE_GPU, kinds.GGML_BACKEND_DEVICE_TYPE_IGPU)
    found = any(one["type"] in gpus for one in library.get_device_info())
    if device == "gpu" and not found:
        raise status_error(
            errors.NoBackendError,
            "device is gpu, and the installed xllamacpp finds none: install its build for your GPU",
        )
    return found
