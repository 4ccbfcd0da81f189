"""Names of commands. Made by scripts/generate from contract/; do not edit.

Separate from the arguments, because starting the program only needs the names.
"""

#: Operation, command, aliases, line in the help.
NAMES = (
    ("chat", "chat", ("chatcompletion",), "Generate the next message of a conversation"),
    (
        "free_chat",
        "free-chat",
        ("freellm",),
        "Generate the next message of a conversation as plain text",
    ),
    ("search_music", "search-music", ("musicsearch",), "Search for songs by title or artist"),
    (
        "generate_image",
        "generate-image",
        ("imagegeneration",),
        "Generate images from a text prompt",
    ),
    ("upscale_image", "upscale-image", ("imageupscale",), "Increase the resolution of an image"),
    ("transcribe", "transcribe", ("stt",), "Transcribe speech"),
    (
        "generate_video",
        "generate-video",
        ("videogeneration",),
        "Generate a short video from a text prompt",
    ),
    (
        "generate_music",
        "generate-music",
        ("musicgeneration",),
        "Generate a few seconds of music from a prompt",
    ),
    ("identify_song", "identify-song", ("songid",), "Identify the song in an audio or video file"),
    ("download_video", "download-video", ("downloadvideo",), "Download an online video"),
    (
        "summarize_video",
        "summarize-video",
        ("videosummarization",),
        "Summarize the content of an online video",
    ),
    (
        "download_music",
        "download-music",
        ("downloadmusic",),
        "Download the best match for a song title or artist as MP3",
    ),
    ("convert_to_mp3", "convert-to-mp3", ("convert2mp3",), "Convert an audio or video file to MP3"),
    ("read_text", "read-text", ("image2text", "ocr"), "Extract the text in an image (OCR)"),
)
