"""Which models of the registry fit this machine, and the commands that install and use them."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from polymux import contract
from polymux._util.memory import machine_bytes
from polymux._util.text import did_you_mean, shown
from polymux.engines.memory import expected_bytes
from polymux.errors import InvalidRequestError
from polymux.models import registry
from polymux.models.families import FAMILIES
from polymux.models.folder import ModelsFolder
from polymux.models.roles import ROLES, needed_roles, request_of, roles_named
from polymux.models.selection import remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.models.registry import Model

#: Memory for the system and other programs.
_RESERVED_BYTES = 1 << 30
_MAX_PROBE_S = 20.0
#: Models of the distribution polymux-mini-models: operation, and size of the files in bytes.
SMALL = {
    "pictures-mini": ("generate_image", 47_000_000),
    "music-mini": ("generate_music", 25_600_000),
}
_SMALL_TITLE = "comes with polymux; shows that prompts are followed, not quality"
#: Arguments of an operation's command.
_INPUTS = {"transcribe": "RECORDING", "upscale_image": "IMAGE"}
#: Operations that others do for it.
_PARTS = {"summarize_video": ("chat", "transcribe")}


class Machine(NamedTuple):
    """Memory, processors and GPUs of this machine.

    Attributes:
        memory_bytes: Memory of the machine, or of its container.
        processors: Processor cores that this process may use.
        gpus: Names of NVIDIA GPUs.
        gpu_bytes: Memory of the largest GPU; 0 without one.
    """

    memory_bytes: int
    processors: int
    gpus: tuple[str, ...] = ()
    gpu_bytes: int = 0


class Candidate(NamedTuple):
    """A model that can do an operation.

    Attributes:
        name: Name in commands and settings.
        title: Short description.
        engine: Engine that runs it.
        fits: Whether its memory fits this machine.
        memory_bytes: Memory that it needs, estimated from the size of its files.
        on_gpu: Whether that is memory of the GPU.
        bytes: Size of its files; None if unknown.
        about: Whether `bytes` is approximate.
        license: SPDX identifier or text.
        commercial_use: ``"yes"``, ``"no"`` or ``"limited"``; see `polymux.models.registry.Model`.
        seconds: Measured time of one result; None if not measured.
        seconds_for: The result and the machine of that measurement.
        small: Whether it is a small model of polymux-mini-models.
        installed: Whether it is installed.
        install: Command that installs it, and its engine if that is missing; empty if both are.
        use: Command that uses it, or gives it a role first.
    """

    name: str
    title: str
    engine: str
    fits: bool
    memory_bytes: int
    on_gpu: bool
    bytes: int | None
    about: bool
    license: str
    commercial_use: str
    seconds: float | None
    seconds_for: str
    small: bool
    installed: bool
    install: str
    use: str


class Recommendation(NamedTuple):
    """The models for an operation.

    Attributes:
        operation: Name of the operation.
        machine: Memory, processors and GPUs of this machine.
        models: All models that can do it, the recommended one first.
        recommended: Name of the model to use; None if none fits.
        note: Advice if no model is recommended; else empty.
    """

    operation: str
    machine: Machine
    models: tuple[Candidate, ...]
    recommended: str | None
    note: str


def machine() -> Machine:
    """Describe this machine. NVIDIA's program reports its GPUs, if it is installed."""
    from polymux._native.media import available_cores

    gpus, sizes = [], [0]
    program = shutil.which("nvidia-smi")
    if program is not None:
        query = [program, "--query-gpu=memory.total,name", "--format=csv,noheader,nounits"]
        with suppress(OSError, ValueError, subprocess.SubprocessError):
            done = subprocess.run(  # noqa: S603 - a program from PATH, fixed words
                query, capture_output=True, check=True, stdin=subprocess.DEVNULL, text=True,
                timeout=_MAX_PROBE_S,
            )  # fmt: skip
            for line in done.stdout.splitlines():
                mebibytes, _, name = line.partition(", ")
                sizes.append(int(mebibytes) << 20)
                gpus.append(name)
    return Machine(machine_bytes(), available_cores(), tuple(gpus), max(sizes))


def recommend(
    operation: str, folder: ModelsFolder | None = None, found: Machine | None = None
) -> Recommendation:
    """Return the models for an operation, the one that fits this machine best first.

    A recommended model fits the memory, and its license permits commercial use. Without a GPU,
    quantized models come first, and of these the fastest. A small model is recommended only if no
    other model fits.

    Args:
        operation: Name of the operation, such as ``"generate_image"`` or ``"generate-image"``.
        folder: The models directory. Default: the user's.
        found: The machine. Default: this one.

    Raises:
        InvalidRequestError: The operation is unknown.

    Example:
        >>> from polymux.models.recommend import Machine, recommend
        >>> recommend("transcribe", found=Machine(8 << 30, 4)).recommended
        'whisper-base'
    """
    name = operation.replace("-", "_")
    known = [one.name for one in contract.operations()]
    if name not in known:
        raise InvalidRequestError(
            f"unknown operation {shown(operation)} (known: {', '.join(known)})"
            f"{did_you_mean(name, known)}"
        )
    found = found or machine()
    models = sorted(_candidates(name, folder or ModelsFolder(), found), key=_rank)
    good = [one for one in models if one.fits and one.commercial_use == "yes"]
    chosen = good[0].name if good else None
    return Recommendation(name, found, tuple(models), chosen, _note(name, models, chosen))


def _rank(one: Candidate) -> tuple[bool, bool, bool, bool]:
    """Order models; those that are equal keep the order of the registry."""
    is_slow = one.engine == "diffusion" and not one.on_gpu
    return not one.fits, one.commercial_use != "yes", one.small, is_slow


def _note(operation: str, models: list[Candidate], chosen: str | None) -> str:
    if operation in _PARTS:
        parts = " and ".join(f"'polymux models recommend {one}'" for one in _PARTS[operation])
        return f"{operation} uses the models of other operations. Run {parts}"
    if not models:
        steps = remedy(operation)
        return f"{operation} needs no model that you download" + (f": {steps}" if steps else "")
    if chosen is None and models[0].fits:
        return (
            "no license of a model that fits permits commercial use by everyone. "
            f"{models[0].name} fits, and its license is {models[0].license}"
        )
    if chosen is None:
        least = min(models, key=lambda one: one.memory_bytes)
        where = "memory of a GPU" if least.on_gpu else "memory"
        return (
            f"no model fits this machine. {least.name} needs about "
            f"{least.memory_bytes / 1e9:.1f} GB of {where}, and 1 GB for the system"
        )
    return ""


def _candidates(operation: str, folder: ModelsFolder, found: Machine) -> Iterator[Candidate]:
    for model in registry.all_models():
        if not FAMILIES[model.family].has_roles:
            if operation in FAMILIES[model.family].operations:
                yield _candidate(model, operation, folder, found)
            continue
        own = [role for role, one in ROLES.items() if one.model == model.name]
        for kind, role in _roles(own, model.suits):
            request = request_of(role)
            if request is not None and request[0] == operation:
                needed = needed_roles(*request)
                others = [ROLES[one].model for one in needed if one != role]
                yield _candidate(model, operation, folder, found, others, kind)
                break  # One role represents all of its kind.
    for name, (own_operation, size) in SMALL.items():
        if own_operation == operation:
            yield _small(name, operation, size, folder, found)


def _roles(own: list[str], suits: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the default roles, else those that suit a model, each with the kind to assign."""
    for role in own:
        yield "", role
    for kind in suits:
        for role in roles_named([kind]):
            yield kind, role


def _candidate(
    model: Model,
    operation: str,
    folder: ModelsFolder,
    found: Machine,
    others: list[str] | None = None,
    kind: str = "",
) -> Candidate:
    """Describe a model, with the models that it needs, and the kind of roles to assign to it."""
    models = [model, *filter(None, map(registry.find, others or ()))]
    missing = [one.name for one in models if not _is_installed(one.name, folder)]
    about = FAMILIES[model.family]
    steps = [] if about.is_installed else [about.remedy]
    steps += [f"polymux models pull {' '.join(missing)}"] if missing else []
    use = _command(operation, model)
    if kind:
        use = f"polymux models use {model.name} --for {kind} && {_command(operation)}"
    size = sum(one.bytes or 0 for one in models)
    on_gpu = model.family == "diffusion" and found.gpu_bytes > 0
    needed = expected_bytes(model.family, size, model.number_bytes, on_gpu=on_gpu)
    return Candidate(
        model.name, model.title, model.family, _fits(needed, found, on_gpu=on_gpu), needed, on_gpu,
        size or None, any(one.about_bytes is not None for one in models), model.license,
        model.commercial_use, model.seconds, model.seconds_for, small=False,
        installed=not missing, install=" && ".join(steps), use=use,
    )  # fmt: skip


def _small(name: str, operation: str, size: int, folder: ModelsFolder, found: Machine) -> Candidate:
    needed = expected_bytes("diffusion", size, 2, on_gpu=False)
    is_there = _is_installed(name, folder)
    is_ready = is_there and FAMILIES["diffusion"].is_installed
    return Candidate(
        name, _SMALL_TITLE, "diffusion", _fits(needed, found, on_gpu=False), needed, on_gpu=False,
        bytes=size, about=True, license="MIT", commercial_use="yes", seconds=None, seconds_for="",
        small=True, installed=is_there,
        install="" if is_ready else "pip install 'polymux[mini]'", use=_command(operation),
    )  # fmt: skip


def _command(operation: str, model: Model | None = None) -> str:
    given = _INPUTS.get(operation, '"TEXT"')
    named = "" if model is None else f" --model {model.name}"
    return f"polymux {operation.replace('_', '-')} {given}{named} --local"


def _fits(needed: int, found: Machine, *, on_gpu: bool) -> bool:
    return needed <= (found.gpu_bytes if on_gpu else found.memory_bytes - _RESERVED_BYTES)


def _is_installed(name: str, folder: ModelsFolder) -> bool:
    model = folder.find(name)
    return model is not None and not model.problem
