"""The request that every client sends, and the part of the answer that it reads."""

from typing import Any

MODEL = "llama-3.3-70b-versatile"
MESSAGES: list[dict[str, str]] = [
    {"role": "user", "content": "Why is the sky blue? Answer in two sentences."}
]
TEMPERATURE = 0.7
BODY: dict[str, Any] = {"model": MODEL, "messages": MESSAGES, "temperature": TEMPERATURE}
KEY = "floor-token"
HEADERS = {"Authorization": f"Bearer {KEY}"}
FIRST_WORDS = "The sky scatters"


def content_of(answer: dict[str, Any]) -> str:
    """Return the text of a complete answer."""
    text: str = answer["choices"][0]["message"]["content"]
    return text
