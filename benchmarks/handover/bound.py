"""The pybind11 module for comparison, built on first use."""

import hashlib
import importlib.util
import subprocess
import sysconfig
from types import ModuleType

import pybind11

from benchmarks.measure import BUILD, ROOT

SOURCE = ROOT / "benchmarks" / "handover" / "bound_chunk.cpp"
TIMEOUT_S = 300


def module() -> ModuleType:
    """Return the module `bound_chunk`."""
    flags = [
        "-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden",
        f"-I{pybind11.get_include()}", f"-I{sysconfig.get_path('include')}",
    ]  # fmt: skip
    known = hashlib.sha256(SOURCE.read_bytes() + " ".join(flags).encode()).hexdigest()[:12]
    path = BUILD / "floors" / f"bound_chunk-{known}" / "bound_chunk.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".new")
        subprocess.run(["g++", *flags, "-o", unfinished, SOURCE], check=True, timeout=TIMEOUT_S)
        unfinished.rename(path)
    spec = importlib.util.spec_from_file_location("bound_chunk", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
