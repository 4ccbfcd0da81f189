"""Detection of torch's device without importing torch, which takes seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

#: Device file of the NVIDIA driver.
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
    """The device that torch would use.

    Attributes:
        torch: Version of torch; empty if it is not installed.
        cuda: Whether torch finds an NVIDIA GPU.
        names: Names of the GPUs.
        dtype: The data type that ``"auto"`` selects.
        why: Why CUDA is not available; empty if it is.
    """

    torch: str
    cuda: bool
    names: tuple[str, ...]
    dtype: str
    why: str


def might_have_cuda() -> bool:
    """Whether torch may find a GPU, judging by its version and the driver, without running it."""
    return _DRIVER.exists() and not _torch().endswith("+cpu") and _torch() != ""


def number_bytes(device: str, dtype: str) -> int:
    """Return the bytes per weight in memory for the settings `device` and `dtype`.

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
    """Detect the device. If a GPU may exist, torch runs in a separate process."""
    found = _torch()
    if not found:
        return Device("", cuda=False, names=(), dtype="float32", why="torch is not installed")
    if found.endswith("+cpu"):
        return _processor(found, "this torch build supports only CPUs")
    if not _DRIVER.exists():
        return _processor(found, "the NVIDIA driver is not installed")
    try:
        done = subprocess.run(  # noqa: S603 - this Python, fixed words
            [sys.executable, "-P", "-c", _ASK], capture_output=True, check=False,
            stdin=subprocess.DEVNULL, timeout=_MAX_PROBE_S,
        )  # fmt: skip
        plain = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return _processor(found, "the check for a GPU with torch failed")
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
