"""The prompt syntax (weights, networks, parts) is that of AUTOMATIC1111's documentation."""

from __future__ import annotations

import pytest
from polymux.engines.diffusion.prompts import parsed

LESS = 1 / 1.1
CASES = [
    ("", []),
    ("a barn", [("a barn", 1)]),
    ("a (red) barn", [("a ", 1), ("red", 1.1), (" barn", 1)]),
    ("[dull]", [("dull", LESS)]),
    ("([even])", [("even", 1.1 * LESS)]),
    ("(red:1.5)", [("red", 1.5)]),
    ("(red: 0.5 )", [("red", 0.5)]),
    ("(red:-1)", [("red", -1)]),
    ("((red:1.5) big)", [("red", 1.65), (" big", 1.1)]),
    ("(worst quality, low quality:2) x", [("worst quality, low quality", 2), (" x", 1)]),
    (r"smile \(happy\) \\", [("smile (happy) \\", 1)]),
    ("at 10:30", [("at 10:30", 1)]),
    ("(ratio:wide)", [("ratio:wide", 1.1)]),
    ("never ((closed [twice", [("never ", 1), ("closed ", 1.21), ("twice", 1.1)]),
    ("not opened) there] x:2)", [("not opened) there] x:2)", 1)]),
    ("a < b > c <3", [("a < b > c <3", 1)]),
    ("()", []),
    ("été (日本:1.2)", [("été ", 1), ("日本", 1.2)]),
]


@pytest.mark.parametrize(("text", "words"), CASES, ids=[text for text, _ in CASES])
def test_weights(text: str, words: list[tuple[str, float]]) -> None:
    (part,) = parsed(text).parts
    assert [one.text for one in part] == [one for one, _ in words]
    assert [one.weight for one in part] == pytest.approx([weight for _, weight in words])


def test_break_makes_parts_also_within_brackets() -> None:
    parts = parsed("a (b BREAK c:2) BREAKFAST BREAK").parts
    assert [[tuple(one) for one in part] for part in parts] == [
        [("a ", 1), ("b", 2)],
        [("c", 2), (" BREAKFAST", 1)],
        [],
    ]


def test_networks_are_named_and_no_words() -> None:
    prompt = parsed("x <lora:more_details:0.5> <LoRA:b v2.0> <lyco:c:1:0.2><lora:d:odd>, y")
    assert prompt.loras == (("more_details", 0.5), ("b v2.0", 1.0), ("c", 1.0), ("d", 1.0))
    assert "".join(one.text for one in prompt.parts[0]) == "x   , y"
    assert prompt.left_out == ()


def test_what_nothing_here_does_is_reported() -> None:
    prompt = parsed("<hypernet:anime:1> (bad) JuggernautNegative-neg, easynegative, badhandv42")
    assert [line.partition(":")[0] for line in prompt.left_out] == [
        "<hypernet", "JuggernautNegative-neg", "easynegative",
    ]  # fmt: skip
    assert [one.text.strip() for one in prompt.parts[0]][-1] == ", , badhandv42"


@pytest.mark.parametrize(
    "text",
    ["(x:" + "1" * 40_000, " " * 40_000 + "x", "(a" * 9_000, "[a" * 9_000 + "]" * 9_000,
     "\\" * 4999, "<lora:" * 999, "<a:b" + ":" * 40_000, (":" + " " * 200) * 200],
    ids=["digits", "spaces", "open", "closed", "slashes", "angles", "colons", "gaps"],
)  # fmt: skip
def test_long_prompts_take_no_longer_than_they_are(text: str) -> None:
    """Each of the first four once took minutes, and nothing could cancel it."""
    assert len(parsed(text).parts) == 1


def test_weights_are_numbers_whatever_is_written() -> None:
    huge = "9" * 400
    weighed = parsed(f"(a:{huge}) (b:-{huge}) ((c:99):99) (d:0)").parts[0]
    assert [one.weight for one in weighed if one.text.strip()] == [100, -100, 100, 0]
    odd = [
        parsed(f"<lora:a:{one}>").loras[0][1] for one in ("nan", "inf", "1e999", huge, "-1e9", "")
    ]
    assert odd == [1, 1, 1, 1, -100, 1]


def test_brackets_beyond_the_sixteenth_are_words() -> None:
    (one,) = parsed("(" * 16 + "a" + ")" * 16).parts[0]
    assert (one.text, one.weight) == ("a", pytest.approx(1.1**16))
    assert "((" in "".join(one.text for one in parsed("(" * 18 + "a").parts[0])


def test_what_is_beyond_50000_characters_is_reported() -> None:
    prompt = parsed("a" * 50_000 + "<lora:b:1>")
    assert prompt.loras == ()
    assert ["50000" in one for one in prompt.left_out] == [True]
    assert parsed("a" * 50_000).left_out == ()
