"""Patterns that tell images, texts and other files apart by their bytes."""

import re

#: First bytes of supported images: PNG, JPEG, TIFF, BMP, GIF, WebP, PNM. Words can start with BMP's
#: two letters, so the reserved bytes of its header must match as well.
PICTURE = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|II[*+]\0|MM\0[*+]|BM.{4}\0{4}|GIF8[79]a|RIFF.{4}WEBP|"
    rb"P[1-6][ \t\r\n]",
    re.DOTALL,
)
#: Bytes that texts never contain. All media containers contain them in lengths and counts.
NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")
