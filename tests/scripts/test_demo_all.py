"""The complete demo tour: every step, its output, and its end."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from support import weights
from support.chat_model import model_path
from support.commands import call, environment

ROOT = Path(__file__).resolve().parents[2]
#: Step to texts that its output must contain.
PRINTED = {
    "chat": r"Name three boats\. \S.*\b\d+\b.*\d s\b",
    "free_chat": r"What colour is the sky\? \S.*\b\d+\b",
    "read_text": r"HARBOUR OFFICE 1893 BOATS LEAVE AT NINE",
    "transcribe": r"[Tt]he train to the.*\b31\b",
    "convert_to_mp3": r"\b\d{3,}\b.*\bffmpeg\b",
    "upscale_image": r"160 x 120.*320 x 240",
    "SongIndex.add": r"\b4\b.*Blue Danube, Harbour Lights, Night Train, Stones in the River",
    "identify_song": r"Harbour Lights - The Sailors.* offset_s=(2\.9|3\.0)",
    "search_music": r"Harbour Lights - The Sailors",
    "download_video": r"[\d,]{7,} bytes.*(audio.*video|video.*audio)",
    "summarize_video": r"\w: \S",
    "download_music": r"MP3.*[\d,]{6,} bytes",
    "generate_image": r"generated\.png: [\d,]{4,} .*pictures-mini",
    "generate_video": r"generated\.mp4: [\d,]{4,} |models recommend generate-video",
    "generate_music": r"generated\.wav: [\d,]{6,} .*music-mini",
}


def add_models(folder: Path) -> None:
    """Add the small models from the packages of the tests."""
    weights.whisper(folder)
    for name, path in (("small", model_path()), ("drawings-x2", weights.upscaler())):
        call("models", "add", name, path, cwd=folder, POLYMUX_MODELS=str(folder))


def steps_of(text: str) -> dict[str, str]:
    """Step to all its output in one line."""
    parts = re.split(r"^ ?\d+  ([\w.]+): ", text, flags=re.MULTILINE)[1:]
    return {
        name: " ".join(output.split()) for name, output in zip(parts[::2], parts[1::2], strict=True)
    }


#: Steps that need no model and take a second or two.
LIGHT = ("convert_to_mp3", "SongIndex.add", "search_music", "generate_video")
TOUR = """
import sys
sys.path.insert(0, "{lib}")
import demo_all
demo_all.STEPS = tuple(one for one in demo_all.STEPS if one[0] in {names})
demo_all.fetch_models = lambda folder: []
sys.exit(demo_all.main())
"""


@pytest.mark.parametrize("names", [LIGHT, pytest.param(tuple(PRINTED), marks=pytest.mark.long)])
def test_steps_do_their_work_and_the_server_stays_until_ctrl_c(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """With --long, all steps run."""
    models = tmp_path / "models"
    models.mkdir()
    if names != LIGHT:
        add_models(models)
    code = TOUR.format(lib=ROOT / "scripts/lib", names=names)
    words = [sys.executable, "-c", code, "--keep", "--folder", str(tmp_path / "all")]
    own = environment(tmp_path, POLYMUX_MODELS=str(models))
    with subprocess.Popen(
        words, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as tour:
        try:
            assert tour.stdout is not None
            assert tour.stderr is not None
            output = ""
            for line in tour.stdout:
                output += line
                if "Ctrl-C" in line:
                    break
            steps = steps_of(output)
            assert tour.poll() is None, output + tour.stderr.read()
            assert list(steps) == list(names), output
            for name in names:
                assert re.search(PRINTED[name], steps[name]), steps[name]
                assert re.search(r"\b\d+\.\d s\b", steps[name]), steps[name]
            page, keys = re.findall(r"(http://\S+) .* (/[^)\n]+)\)", output)[-1]
            assert Path(keys).read_text().split()[0] not in output
            with urllib.request.urlopen(page, timeout=20) as answer:
                assert "<title>polymux" in answer.read().decode()
            tour.send_signal(signal.SIGINT)
            assert tour.wait(60) == 0, tour.stderr.read()
        finally:
            tour.terminate()


def test_words_that_mean_nothing_are_refused() -> None:
    words = [ROOT / "scripts/demo", "--all", "--twice"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"scripts/demo\b.*--all\b.*--keep\b", done.stderr)


def test_the_tour_has_the_versions_of_the_tests() -> None:
    pins = {
        name: set(
            re.findall(
                r"^[\w.-]+==.+$", (ROOT / f"requirements/{name}.txt").read_text(), re.MULTILINE
            )
        )
        for name in ("tour", "test")
    }
    assert len(pins["tour"]) > 10
    assert pins["tour"] <= pins["test"]
