"""container_check.py CONFIG: checks an image of deploy/ from inside a container of it.

CONFIG contains the image's configuration (JSON): scripts/check-container writes it, and runs this
program with the image's Python, user and environment.
"""

import ctypes
import http.client
import io
import json
import os
import signal
import subprocess
import sys
import tomllib
import wave
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

DATA = Path("/var/lib/polymux")
SETTINGS = "/etc/polymux/polymux.toml"


def main() -> None:
    config = json.loads(Path(sys.argv[1]).read_text())
    expect(config["User"] == "990" and os.getuid() == os.getgid() == 990, "wrong user or group")
    expect(list(config["Volumes"]) == [str(DATA)], "wrong volumes")
    expect(config["StopSignal"] == "SIGTERM", "wrong stop signal")
    unexpected = writable() - {"/tmp", "/var/tmp", "/run/lock", "/dev/shm", str(DATA)}
    expect(not unexpected, f"the user may write to {sorted(unexpected)}")
    engines()
    if find_spec("torch"):
        cuda()
    server(config)


def expect(condition: object, problem: str) -> None:
    if not condition:
        sys.exit(f"container_check.py: {problem}")


def writable() -> set[str]:
    """Folders and files that this user may change. The tests' own mounts are read-only."""
    here = set()
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders[:] = [one for one in folders if one not in ("proc", "sys")]
        if os.access(folder, os.W_OK):
            here.add(folder)
            folders.clear()
            continue
        paths = (f"{folder}/{name}" for name in files)
        if not folder.startswith("/dev"):  # Devices such as /dev/null.
            here.update(p for p in paths if not Path(p).is_symlink() and os.access(p, os.W_OK))
    return here


def engines() -> None:
    """Every engine of the default extras loads."""
    done = subprocess.run(["polymux", "doctor"], capture_output=True, text=True, check=False)
    print(done.stdout)
    expect(done.returncode == 0, "polymux doctor failed")
    expect("broken" not in done.stdout, "polymux doctor reports a broken part")
    for name in ("chat", "speech", "upscale", "rapidocr"):
        expect(f"ok       engine {name}" in done.stdout, f"engine {name} is missing")


def cuda() -> None:
    """The libraries load. Without a GPU and its driver, nothing can run on them."""
    import torch
    from diffusers import DiffusionPipeline
    from imwatermark import WatermarkEncoder
    from transformers import CLIPTextModel

    print(DiffusionPipeline.__name__, CLIPTextModel.__name__, WatermarkEncoder.__name__)
    expect(torch.version.cuda, "torch is not a CUDA build")
    expect(torch.backends.cudnn.version(), "torch does not find cuDNN")
    for library in ("libcublas.so.12", "libcublasLt.so.12"):
        ctypes.CDLL(library)  # Raises an error if it is missing.
    print(f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, and cuBLAS 12")


def server(config: dict[str, list[str]]) -> None:
    """The image's command serves a conversion, passes the health check, and stops at SIGTERM."""
    health = config["Healthcheck"]["Test"][1:]
    done = subprocess.run(health, capture_output=True, check=False)
    expect(done.returncode != 0, "the health check succeeds without a server")
    key = subprocess.run(
        ["polymux", "keys", "add", "check", "--config", SETTINGS],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    process = subprocess.Popen(
        [*config["Entrypoint"], *config["Cmd"]], stderr=subprocess.PIPE, text=True
    )
    try:
        use(process, health, key)
    finally:
        process.kill()


def use(process: subprocess.Popen[str], health: list[str], key: str) -> None:
    lines = []
    for line in process.stderr or ():
        lines.append(line)
        if "serving on" in line:
            break
    expect(lines and "serving on" in lines[-1], "".join(lines))
    done = subprocess.run(health, capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"the health check failed: {done.stderr}")
    convert(key)
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=30)
    expect(process.returncode == 0, f"exit code {process.returncode}: {rest}")


def convert(key: str) -> None:
    """Convert a second of silence. The Host header is that of the proxy in the image's settings."""
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setparams((1, 2, 44100, 0, "NONE", ""))
        file.writeframes(bytes(88200))
    head = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    connection = http.client.HTTPConnection("127.0.0.1", 8000, timeout=60)
    host = tomllib.loads(Path(SETTINGS).read_text())["allowed_hosts"][0]
    headers = {
        "Host": host,
        "Authorization": f"Bearer {key}",
        "Content-Type": "multipart/form-data; boundary=x",
    }
    body = head.encode() + sound.getvalue() + b"\r\n--x--\r\n"
    connection.request("POST", "/api/v1/convert2mp3", body, headers)
    response = connection.getresponse()
    text = response.read().decode()
    expect(response.status == 200, f"the conversion failed: {response.status} {text}")
    url = urlsplit(json.loads(text)["response"])
    connection.request("GET", f"{url.path}?{url.query}", headers={"Host": host})
    data = connection.getresponse().read()
    expect(data.startswith(b"\xff\xfb"), f"not an MP3: {data[:100]!r}")
    connection.close()


if __name__ == "__main__":
    main()
