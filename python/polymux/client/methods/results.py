"""The result of each operation. Made by scripts/generate from contract/; do not edit."""

#: Name of the class in `polymux` of an operation's result.
RESULTS = {
    "chat": "ChatCompletion",
    "free_chat": "TextResponse",
    "search_music": "SongList",
    "generate_image": "Prediction",
    "upscale_image": "Prediction",
    "transcribe": "Prediction",
    "generate_video": "Prediction",
    "generate_music": "Prediction",
    "identify_song": "Song",
    "download_video": "MediaFile",
    "summarize_video": "TextResponse",
    "download_music": "MediaFile",
    "convert_to_mp3": "MediaFile",
    "read_text": "OcrText",
}
#: Path of each operation, after ``/api/v1/``.
PATHS = {
    "chat": "fastllm/chatcompletion",
    "free_chat": "freellm",
    "search_music": "musicsearch",
    "generate_image": "modelhost/imagegeneration",
    "upscale_image": "modelhost/imageupscale",
    "transcribe": "modelhost/stt",
    "generate_video": "modelhost/videogeneration",
    "generate_music": "modelhost/musicgeneration",
    "identify_song": "songid",
    "download_video": "downloadvideo",
    "summarize_video": "videosummarization",
    "download_music": "downloadmusic",
    "convert_to_mp3": "convert2mp3",
    "read_text": "image2text",
}
#: Other names of methods.
ALIASES = {
    "ocr": "read_text",
}
#: Operations that a server runs as a job, which clients can read, watch and cancel.
JOBS = frozenset(
    {
        "generate_image",
        "upscale_image",
        "transcribe",
        "generate_video",
        "generate_music",
        "download_video",
        "summarize_video",
        "download_music",
        "convert_to_mp3",
    }
)
