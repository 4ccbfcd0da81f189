"""The peers' packages, in a separate virtual environment whose folder is added to the path."""

import site
import subprocess
import sys
import sysconfig
from importlib.metadata import version

from benchmarks.measure import BUILD, ROOT

REQUIREMENTS = ROOT / "benchmarks" / "json" / "requirements.txt"
VENV = BUILD.parent / "bench-json-venv"
PACKAGES = ("orjson", "msgspec", "pydantic")


def prepare() -> dict[str, str]:
    """Install the peers if needed, and make them importable here.

    In one process the functions can take turns.

    Returns:
        Their versions.
    """
    wanted = REQUIREMENTS.read_text()
    stamp = VENV / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing the peers in {VENV.relative_to(ROOT)} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
        python = str(VENV / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", str(REQUIREMENTS)], check=True)
        stamp.write_text(wanted)
    site.addsitedir(sysconfig.get_path("purelib", vars={"base": str(VENV)}))
    return {name: version(name) for name in PACKAGES}
