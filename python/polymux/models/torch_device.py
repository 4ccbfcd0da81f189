"""Which device torch would work on, found out without importing torch, which takes seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

#: What the driver of NVIDIA's cards makes.
_DRIVER = Path("/dev/nvidiactl")
_MAX_PROBE_S = 60.0
_NUMBER_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
_ASK = """
import json, torch
there = torch.cuda.is_available()
names = [torch.cuda.get_device_name(one) for one in range(torch.cuda.device_count())]
bfloat16 = there and torch.cuda.is_bf16_supported()
print(json.dumps({"cuda": there, "names": names, "bfloat16": bfloat16}))
"""


class Device(NamedTuple):
    """What torch would work on.

    Attributes:
        torch: Its version; empty where it is not installed.
        cuda: Whether it sees a card of NVIDIA's.
        names: Of those cards.
        dtype: What ``"auto"`` is there.
        why: Why there is no CUDA, for people; empty where there is.
    """

    torch: str
    cuda: bool
    names: tuple[str, ...]
    dtype: str
    why: str


def might_have_cuda() -> bool:
    """Whether this torch could see a card, by its version and the driver; torch is not asked."""
    return _DRIVER.exists() and not _torch().endswith("+cpu") and _torch() != ""


def number_bytes(device: str, dtype: str) -> int:
    """What a number of a model's weights takes in memory, as settings have device and dtype.

    Example:
        >>> from polymux.models.torch_device import number_bytes
        >>> number_bytes("cpu", "auto"), number_bytes("auto", "bfloat16")
        (4, 2)
    """
    if dtype in _NUMBER_BYTES:
        return _NUMBER_BYTES[dtype]
    on_card = device.startswith("cuda") or (device == "auto" and might_have_cuda())
    return 2 if on_card else 4


def device() -> Device:
    """What torch would work on; where there may be a card, a process of its own asks torch."""
    found = _torch()
    if not found:
        return Device("", cuda=False, names=(), dtype="float32", why="torch is not installed")
    if found.endswith("+cpu"):
        return _processor(found, "this torch was built for processors alone")
    if not _DRIVER.exists():
        return _processor(found, "there is no driver of NVIDIA's")
    try:
        done = subprocess.run(  # noqa: S603 - this Python, fixed words
            [sys.executable, "-P", "-c", _ASK], capture_output=True, check=False,
            stdin=subprocess.DEVNULL, timeout=_MAX_PROBE_S,
        )  # fmt: skip
        plain = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return _processor(found, "torch did not answer")
    if not plain["cuda"]:
        return _processor(found, "torch sees no CUDA device")
    dtype = "bfloat16" if plain["bfloat16"] else "float16"
    return Device(found, cuda=True, names=tuple(plain["names"]), dtype=dtype, why="")


def _processor(version_: str, why: str) -> Device:
    return Device(version_, cuda=False, names=(), dtype="float32", why=why)


def _torch() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""
