"""Names of commands. Made by scripts/generate from contract/; do not edit.

Separate from the arguments, because starting the program only needs the names.
"""

#: Operation, command, alias, and title.
NAMES = (
    ("chat", "chat", "chatcompletion", "Chat completion"),
    ("free_chat", "free-chat", "freellm", "Chat with failover"),
    ("search_music", "search-music", "musicsearch", "Music search"),
    ("generate_image", "generate-image", "imagegeneration", "Image generation"),
    ("upscale_image", "upscale-image", "imageupscale", "Image upscaling"),
    ("transcribe", "transcribe", "stt", "Speech to text"),
    ("generate_video", "generate-video", "videogeneration", "Video generation"),
    ("generate_music", "generate-music", "musicgeneration", "Music generation"),
    ("identify_song", "identify-song", "songid", "Song recognition"),
    ("download_video", "download-video", "downloadvideo", "Video download"),
    ("summarize_video", "summarize-video", "videosummarization", "Video summary"),
    ("download_music", "download-music", "downloadmusic", "Music download"),
    ("convert_to_mp3", "convert-to-mp3", "convert2mp3", "Conversion to MP3"),
    ("read_text", "read-text", "image2text", "Image to text"),
)
