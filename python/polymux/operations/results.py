"""What comes back from each operation. Made by scripts/generate from contract/; change it there."""

#: Names of the classes of `polymux` that answers become.
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
#: Operations of which a server makes a job, which can be read, watched and cancelled.
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
