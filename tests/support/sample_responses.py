"""A complete answer for each operation."""

from __future__ import annotations

import json
from typing import Any

import polymux

COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-0d6fa6a1-1c2b-4d3e-9f50-6a7b8c9d0e1f",
    "object": "chat.completion",
    "created": 1_763_740_800,
    "model": "llama-3.3-70b-versatile",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "The sky scatters blue light.\n"},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "queue_time": 0.012, "prompt_tokens": 12, "prompt_time": 0.002,
        "completion_tokens": 7, "completion_time": 0.04, "total_tokens": 19, "total_time": 0.042,
        "completion_tokens_details": {"reasoning_tokens": 3},
    },
    "usage_breakdown": None,
    "system_fingerprint": "fp_4e32347616",
    "x_groq": {"id": "req_01j", "usage": {"dram_cached_tokens": 0}},
    "service_tier": "on_demand",
}  # fmt: skip
TOOL_CALLS = {
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": None,
                "reasoning": "They want the weather.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city": "Kiel"}'},
                        "index": 0,
                    }
                ],
            },
            "finish_reason": "tool_calls",
        }
    ]
}
PREDICTION: dict[str, Any] = {
    "id": "gm3qorzdhgbfurvjtvhg6dckhu",
    "model": "bytedance/sdxl-lightning-4step",
    "version": "5f24084160c9089501c1b3545d9be3c27883ae2239b6f412990e82d4a6210f8f",
    "input": {"prompt": "a boat", "width": 1024},
    "logs": "Using seed: 5\n",
    "output": ["https://files.example/out-0.png", "https://files.example/out-1.png"],
    "data_removed": False,
    "error": None,
    "source": "api",
    "status": "succeeded",
    "created_at": "2026-11-21T10:00:00.1Z",
    "started_at": "2026-11-21T10:00:01Z",
    "completed_at": "2026-11-21T10:00:03Z",
    "urls": {"get": "https://api.example/p/1", "cancel": "https://api.example/p/1/cancel"},
    "metrics": {"predict_time": 1.5, "total_time": 3.1},
}
SONG = {
    "song_name": "Blue Danube - Johann Strauss",
    "songid_url": "https://songs.example/1",
    "song_image": "https://songs.example/1.jpg",
}


def body(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


def prediction(**changes: Any) -> polymux.Prediction:
    return polymux.Prediction.decode(body(PREDICTION | changes))
