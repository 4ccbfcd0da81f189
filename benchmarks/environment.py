"""Virtual environments for the peers, created once under build/."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

from benchmarks.measure import BUILD, ROOT


class Environment:
    """A virtual environment with the packages of benchmarks/NAME/requirements.txt, without
    polymux."""

    def __init__(self, name: str) -> None:
        self.requirements = ROOT / "benchmarks" / name / "requirements.txt"
        self.folder = BUILD.parent / f"bench-{name}-venv"

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def packages(self) -> Path:
        """Folder of the packages, for processes of another environment."""
        return Path(sysconfig.get_path("purelib", vars={"base": str(self.folder)}))

    def prepare(self) -> None:
        """Install the packages of the requirements file unless they are installed."""
        wanted = self.requirements.read_text()
        stamp = self.folder / "requirements.txt"
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"installing the peers in {self.folder.relative_to(ROOT)} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.folder)], check=True)
        pip = [self.python, "-m", "pip", "install", "-q", "-r", str(self.requirements)]
        subprocess.run(pip, check=True)
        stamp.write_text(wanted)

    def versions(self) -> dict[str, str]:
        """Versions of the packages in the requirements file."""
        lines = self.requirements.read_text().splitlines()
        named = {line.partition("==")[0].strip().lower() for line in lines if "==" in line}
        command = [self.python, "-m", "pip", "list", "--format=json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        installed = {one["name"].lower(): one["version"] for one in json.loads(done.stdout)}
        return {name: installed[name] for name in sorted(named) if name in installed}
