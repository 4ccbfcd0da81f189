"""How files begin: what all who look at first bytes go by."""

from __future__ import annotations

import re

#: Pictures that are read: PNG, JPEG, TIFF, BMP, GIF, WebP, PNM. Of BMP's two letters words begin,
#: so what is reserved in its header counts too.
PICTURE = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|II[*+]\0|MM\0[*+]|BM.{4}\0{4}|GIF8[79]a|RIFF.{4}WEBP|"
    rb"P[1-6][ \t\r\n]",
    re.DOTALL,
)
#: What no text has, and every container of media: they have lengths and counts at their beginning.
NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")
