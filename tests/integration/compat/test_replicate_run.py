"""/replicate/v1 over TLS with the package replicate: run, files and waiting."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

import httpx
import polymux
import pytest
from polymux.runtime.settings import EngineSettings
from replicate.exceptions import ModelError
from replicate.helpers import FileOutput
from servers import media
from servers.certificates import Authority
from support.polymux_server import PolymuxServer
from support.replicate_compat import MP3, PICTURE, SONG, ScriptedModels, of
from support.server_process import until

if TYPE_CHECKING:
    from pathlib import Path

    import replicate


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def made() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture(scope="module")
def settings(authority: Authority) -> dict[str, Any]:
    certificate = authority.certificate()
    return {"tls_cert": certificate.chain, "tls_key": certificate.key}


@pytest.fixture
def client(server: PolymuxServer, authority: Authority) -> replicate.Client:
    return of(server, authority)


def recording(data: bytes = b"RIFF and samples") -> io.BytesIO:
    made = io.BytesIO(data)
    made.name = "talk.wav"
    return made


def test_a_file_in_and_a_file_out(
    server: PolymuxServer, client: replicate.Client, backend: ScriptedModels, authority: Authority
) -> None:
    made = client.run("polymux/convert-to-mp3", input={"file": recording(), "bitrate": "128k"})
    assert isinstance(made, FileOutput)
    assert made.url.startswith(f"{server.url}/media/")
    assert made.read() == MP3
    (work,) = backend.began
    assert work.values["bitrate"] == "128k"
    assert work.values["file"].file_name == "talk.wav"
    assert backend.files == [{"file": b"RIFF and samples"}]
    (sent,) = client.files.list()
    (prediction,) = client.predictions.list()
    assert prediction.input == {"file": sent.urls["get"], "bitrate": "128k"}
    assert (prediction.model, prediction.status) == ("polymux/convert-to-mp3", "succeeded")
    # The same job in the polymux API.
    with polymux.Client(server.url, server.key, verify=authority.ca) as own:
        (job,) = own.predictions.list()
        assert job.id == prediction.id
        assert job.input is not None
        assert job.input["file"] == sent.urls["get"]


def test_the_media_engine(tmp_path: Path, settings: dict[str, Any], authority: Authority) -> None:
    """Uses the real engine: a WAV file becomes MP3, with and without ``version``."""
    sound = media.wav(8_000)
    engines = {"media": EngineSettings("media", threads=1)}
    with PolymuxServer(tmp_path / "s", engines=engines, **settings) as running:
        client = of(running, authority)
        version = client.models.get("polymux/convert-to-mp3").latest_version
        assert version is not None
        for name in ("polymux/convert-to-mp3", f"polymux/convert-to-mp3:{version.id}"):
            made = client.run(name, input={"file": recording(sound), "start": 0.5})
            (tmp_path / "made.mp3").write_bytes(made.read())
            assert polymux.probe(tmp_path / "made.mp3").duration_s == pytest.approx(0.5, abs=0.2)
        with pytest.raises(ModelError) as failed:
            client.run("polymux/convert-to-mp3", input={"file": recording(b"no sound" * 9)})
        assert failed.value.prediction.status == "failed"


@pytest.mark.parametrize(
    ("model", "given", "shape"),
    [
        ("bytedance/sdxl-lightning-4step", {"prompt": "a boat", "num_outputs": 2}, [0, 1]),
        ("nightmareai/real-esrgan", {"image": "data:image/png;base64,iVBO", "scale": 2}, 0),
        ("riffusion/riffusion", {"prompt_a": "waves"}, {"audio": 0, "spectrogram": 1}),
    ],
)
def test_outputs_that_are_files(
    client: replicate.Client, model: str, given: dict[str, Any], shape: Any
) -> None:
    def read(made: Any) -> Any:
        if isinstance(made, list):
            return [read(one) for one in made]
        if isinstance(made, dict):
            return {name: read(one) for name, one in made.items()}
        assert isinstance(made, FileOutput)
        data = made.read()
        assert data.startswith(PICTURE)
        return int(data[len(PICTURE) :])

    assert read(client.run(model, input=given)) == shape


@pytest.mark.parametrize(
    ("model", "given", "output"),
    [
        ("polymux/search-music", {"song": "Blue Danube", "limit": 1}, [SONG]),
        ("polymux/summarize-video", {"url": "https://video.example/1"}, "a video"),
        ("maker/large", {"prompt": "Hi"}, ["Hel", "lo ", "there"]),
    ],
)
def test_outputs_that_are_none(
    client: replicate.Client, model: str, given: dict[str, Any], output: Any
) -> None:
    assert client.run(model, input=given, use_file_output=False) == output


def test_outputs_that_are_lists_of_pieces(
    client: replicate.Client, backend: ScriptedModels
) -> None:
    """With a version, the package reads the schema and iterates outputs marked as iterators."""
    version = client.models.get("polymux/chat").latest_version
    assert version is not None
    answer = client.run(f"polymux/chat:{version.id}", input={"prompt": "Hi"})
    assert not isinstance(answer, list)
    assert "".join(answer) == "Hello there"
    pieces = client.run(f"polymux/chat:{version.id}", input={"prompt": "Hi"}, wait=False)
    assert "".join(pieces) == "Hello there"
    assert [work.values["model"] for work in backend.began] == ["default"] * 2


def test_who_waits_in_vain_asks_on(
    server: PolymuxServer, client: replicate.Client, backend: ScriptedModels
) -> None:
    """After waiting, the package takes any status except ``starting`` as final."""
    client.poll_interval = 0.05
    backend.gate.clear()
    begun = client.predictions.create(
        version="polymux/convert-to-mp3", input={"file": "data:,x"}, wait=1
    )
    assert begun.status == "starting"
    assert begun.started_at is not None
    begun.reload()
    assert begun.status == "processing"
    assert begun.logs == "begun"
    server.loop.call_soon_threadsafe(backend.gate.set)
    begun.wait()
    assert begun.status == "succeeded"
    assert begun.output.startswith(f"{server.url}/media/")
    assert begun.metrics is not None
    assert begun.metrics["total_time"] >= begun.metrics["predict_time"] > 0


def test_who_leaves_leaves_it_running(
    server: PolymuxServer, client: replicate.Client, backend: ScriptedModels, authority: Authority
) -> None:
    backend.gate.clear()
    with pytest.raises(httpx.ReadTimeout):
        client._client.post(
            "/v1/predictions",
            json={"version": "polymux/convert-to-mp3", "input": {"file": "data:,x"}},
            headers={"Prefer": "wait"},
            timeout=1,
        )
    (running,) = of(server, authority).predictions.list()
    assert running.status == "processing"
    server.loop.call_soon_threadsafe(backend.gate.set)
    until(lambda: client.predictions.get(running.id).status == "succeeded")
    assert backend.ended == []


def test_files_inside_of_inputs(client: replicate.Client, backend: ScriptedModels) -> None:
    """``file_encoding_strategy`` "base64", and other data URLs of RFC 2397."""
    client.run(
        "polymux/convert-to-mp3",
        input={"file": recording(b"\0\1\2" * 900)},
        file_encoding_strategy="base64",
    )
    data = base64.b64encode(b"plain").decode()
    for url in ("data:,plain", "data:text/plain,pl%61in", f"DATA:audio/wav;base64,{data}"):
        client.run("polymux/convert-to-mp3", input={"file": url})
    files = [one["file"] for one in backend.files]
    assert files == [b"\0\1\2" * 900, b"plain", b"plain", b"plain"]
    oldest = client.predictions.list().results[-1]
    assert oldest.input is not None
    assert len(oldest.input["file"]) == 1027, "the prediction does not keep the file"
