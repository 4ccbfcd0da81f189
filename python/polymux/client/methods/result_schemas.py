"""What comes back, as JSON Schema. Made by scripts/generate from contract/; change it there."""

from __future__ import annotations

from typing import Any

#: Objects of answers, by the names that `RESULTS` has.
SCHEMAS: dict[str, dict[str, Any]] = {
    "Transcript": {
        "type": "object",
        "description": "What was said.",
        "properties": {
            "text": {"type": "string", "description": "All of it."},
            "chunks": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/TranscriptChunk"},
                "description": "Stretch by stretch, or word by word.",
            },
        },
    },
    "TranscriptChunk": {
        "type": "object",
        "description": "A stretch of speech, or a word.",
        "properties": {
            "text": {"type": "string", "description": "What was said."},
            "timestamp": {
                "type": "array",
                "items": {"type": "number"},
                "description": "Start and end; the end of the last may be null.",
            },
        },
    },
    "GeneratedMusic": {
        "type": "object",
        "description": "Music that was made.",
        "properties": {
            "audio": {"type": "string", "description": "Address of the sound, WAV."},
            "spectrogram": {"type": "string", "description": "Address of the spectrogram, JPEG."},
            "error": {"type": "string", "description": "Why there is none."},
        },
    },
    "Song": {
        "type": "object",
        "description": "A song.",
        "properties": {
            "song_name": {"type": "string", "description": "Title - Artist, or the title alone."},
            "songid_url": {"type": "string", "description": "Page about the song."},
            "song_image": {"type": "string", "description": "Address of its cover."},
        },
    },
    "SongList": {
        "type": "array",
        "description": "Songs that were found, best first.",
        "items": {"$ref": "#/components/schemas/Song"},
    },
    "MediaFile": {
        "type": "object",
        "description": "Where a finished file lies.",
        "properties": {"response": {"type": "string", "description": "Address of the file."}},
    },
    "ChatCompletion": {
        "type": "object",
        "description": "A whole answer of a chat model.",
        "properties": {
            "id": {"type": "string", "description": "Identifier of the completion."},
            "object": {"type": "string", "description": "`chat.completion`."},
            "created": {"type": "integer", "description": "When it was made."},
            "model": {"type": "string", "description": "The model that answered."},
            "system_fingerprint": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "description": "Identifies the configuration that the model ran with.",
            },
            "choices": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/Choice"},
                "description": "The answers.",
            },
            "usage": {"$ref": "#/components/schemas/Usage", "description": "What the answer took."},
            "service_tier": {"type": "string", "description": "Class of service that was used."},
            "x_groq": {"type": "object", "description": "Groq's own identifiers and counts."},
        },
    },
    "Choice": {
        "type": "object",
        "description": "One answer.",
        "properties": {
            "index": {"type": "integer", "description": "Number of the answer, from 0."},
            "message": {
                "$ref": "#/components/schemas/AnswerMessage",
                "description": "The answer itself.",
            },
            "finish_reason": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "description": "Why it ended: stop, length, tool_calls, function_call, content_filter.",
            },
            "logprobs": {
                "anyOf": [{"type": "object"}, {"type": "null"}],
                "description": "Log probabilities of its tokens.",
            },
        },
    },
    "AnswerMessage": {
        "type": "object",
        "description": "A message that a model wrote.",
        "properties": {
            "role": {"type": "string", "description": "`assistant`."},
            "content": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "description": "The text; null when there are only tool calls.",
            },
            "reasoning": {"type": "string", "description": "The thinking that led to it."},
            "tool_calls": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/ToolCall"},
                "description": "Calls that the model asks for.",
            },
        },
    },
    "Usage": {
        "type": "object",
        "description": "What an answer took.",
        "properties": {
            "prompt_tokens": {"type": "integer", "description": "Length of the conversation."},
            "completion_tokens": {"type": "integer", "description": "Length of the answer."},
            "total_tokens": {"type": "integer", "description": "Both together."},
            "prompt_time": {"type": "number", "description": "Time to read the conversation."},
            "completion_time": {"type": "number", "description": "Time to write the answer."},
            "total_time": {"type": "number", "description": "Both together."},
            "queue_time": {"type": "number", "description": "Time waited before that."},
        },
    },
    "ChatChunk": {
        "type": "object",
        "description": "A piece of a streamed answer; one JSON object for each event, `[DONE]` in the last.",
        "properties": {
            "id": {
                "type": "string",
                "description": "Identifier of the completion, the same in every chunk.",
            },
            "object": {"type": "string", "description": "`chat.completion.chunk`."},
            "created": {"type": "integer", "description": "When the answer was begun."},
            "model": {"type": "string", "description": "The model that answers."},
            "choices": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/ChunkChoice"},
                "description": "What is new; empty in a chunk of token counts.",
            },
            "usage": {
                "anyOf": [{"$ref": "#/components/schemas/Usage"}, {"type": "null"}],
                "description": "Token counts, in the last chunk when asked for.",
            },
        },
    },
    "ChunkChoice": {
        "type": "object",
        "description": "What is new in one answer.",
        "properties": {
            "index": {"type": "integer", "description": "Number of the answer, from 0."},
            "delta": {
                "type": "object",
                "description": "Pieces of `role`, `content`, `reasoning` and `tool_calls`.",
            },
            "finish_reason": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "description": "Null until the answer's last chunk.",
            },
        },
    },
    "TextResponse": {
        "type": "object",
        "description": "An answer that is a text.",
        "properties": {"response": {"type": "string", "description": "The text."}},
    },
    "TextChunk": {
        "type": "object",
        "description": "A piece of a streamed text; `[DONE]` is the last event.",
        "properties": {"response": {"type": "string", "description": "What is new."}},
    },
    "OcrText": {
        "type": "object",
        "description": "Text that was read.",
        "properties": {"text": {"type": "string", "description": "The text, line by line."}},
    },
    "Prediction": {
        "type": "object",
        "description": "A job of a model, and what came of it.",
        "properties": {
            "id": {"type": "string", "description": "Identifier of the job."},
            "status": {
                "type": "string",
                "description": "starting, processing, succeeded, failed, canceled, aborted.",
            },
            "model": {"type": "string", "description": "The model, owner/name."},
            "version": {
                "type": "string",
                "description": "Version of the model: 64 hexadecimal digits, or a word.",
            },
            "input": {
                "type": "object",
                "description": "What was asked for, defaults filled in, files as addresses.",
            },
            "output": {
                "anyOf": [{"type": "array"}, {"type": "string"}, {"type": "object"}, {"type": "null"}],
                "description": "What was made; its form depends on the operation.",
            },
            "source": {"type": "string", "description": "web or api."},
            "error": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "description": "Why it failed.",
            },
            "logs": {"type": "string", "description": "What the model said while it worked."},
            "metrics": {
                "type": "object",
                "description": "`predict_time` and `total_time` in seconds, and counts.",
            },
            "urls": {
                "type": "object",
                "description": "`get`, `cancel` and, where supported, `stream`.",
            },
            "created_at": {"type": "string", "description": "RFC 3339."},
            "started_at": {"type": "string", "description": "RFC 3339."},
            "completed_at": {"type": "string", "description": "RFC 3339."},
        },
    },
    "ToolCall": {
        "type": "object",
        "description": "A call of a function that a model asked for.",
        "properties": {
            "id": {
                "type": "string",
                "description": "Number of the call, which the answer to it repeats.",
            },
            "type": {"type": "string", "enum": ["function"], "description": "Kind of tool."},
            "function": {
                "$ref": "#/components/schemas/CalledFunction",
                "description": "What to call.",
            },
        },
    },
    "CalledFunction": {
        "type": "object",
        "description": "A function and what it is called with.",
        "properties": {
            "name": {"type": "string", "description": "The function."},
            "arguments": {
                "type": "string",
                "description": "Its arguments, as the text of a JSON object.",
            },
        },
    },
}
#: What an operation's prediction has as its output, once it succeeded.
OUTPUTS: dict[str, dict[str, Any]] = {
    "generate_image": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Addresses of the pictures, PNG, one for each output.",
    },
    "upscale_image": {
        "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}],
        "description": "Address of the picture: a list from variant A, a plain text from variant B.",
    },
    "transcribe": {
        "anyOf": [{"$ref": "#/components/schemas/Transcript"}, {"type": "array"}],
        "description": "The text and its parts; some servers answer with the parts alone.",
    },
    "generate_video": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Addresses of the videos, MP4, one for each of the batch.",
    },
    "generate_music": {
        "$ref": "#/components/schemas/GeneratedMusic",
        "description": "The sound and the picture that it was made from.",
    },
}
#: The pieces of operations that can stream.
STREAMS = {"chat": "ChatChunk", "free_chat": "TextChunk"}
