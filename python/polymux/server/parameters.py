"""A header field with parameters: of a form's parts, and of the form itself (RFC 9110, 5.6.6).

The parser of `python_multipart` believes the last of two parameters of one name, and takes time
that grows with the square of their number: a form of a thousand parts held everybody up.
"""

from __future__ import annotations

import re

from polymux.service.errors import invalid

#: Names of files have 255 letters at most, of up to four bytes; some clients send them twice.
_LONGEST_BYTES = 4 << 10
_MOST_PARAMETERS = 16
_FIRST = re.compile(r"[ \t]*+([^;,\s\"]*+)[ \t]*+")
#: One, with its semicolon; or nothing, as behind the last. Nothing is looked at twice.
_PARAMETER = re.compile(
    r""";[ \t]*+(?:([^;="\s]++)[ \t]*+(?:=[ \t]*+("(?:[^"\\]++|\\.)*+"|[^;"]*+))?+[ \t]*+)?+"""
)


def parameters(field: bytes, what: str) -> tuple[str, dict[str, bytes]]:
    """What a field says, in lower case, and its parameters by their names, in lower case.

    Names with a ``*`` are left out: forms have none such (RFC 7578, 4.2).

    Args:
        field: The field's value.
        what: Whose it is, for errors.

    Raises:
        BadRequestError: It is too long, is none, or has one name twice.

    Example:
        >>> from polymux.server.parameters import parameters
        >>> parameters(b'Form-Data; Name="a; b"; filename=c.wav;', "a part")
        ('form-data', {'name': b'a; b', 'filename': b'c.wav'})
    """
    if len(field) > _LONGEST_BYTES:
        raise invalid(f"{what} says more than {_LONGEST_BYTES} bytes of what it is")
    text = field.decode("latin-1")
    first = _FIRST.match(text)
    assert first is not None  # noqa: S101 - nothing matches as well
    place, found, count = first.end(), {}, 0
    while place < len(text):
        matched = _PARAMETER.match(text, place)
        count += 1
        if matched is None or count > _MOST_PARAMETERS:
            raise invalid(f"{what} says what it is in a form that cannot be read")
        place = matched.end()
        if matched[1] is None:
            continue
        name = matched[1].lower()
        if name in found:
            raise invalid(f"{what} has the parameter {name[:100]} more than once")
        found[name] = _plain(matched[2] or "")
    return first[1].lower(), {name: one for name, one in found.items() if "*" not in name}


def _plain(value: str) -> bytes:
    value = value.rstrip(" \t")
    if value.startswith('"'):
        # Others than these two are no escapes: browsers send what stands before a letter as it is.
        value = value[1:-1].replace("\\\\", "\\").replace('\\"', '"')
    return value.encode("latin-1")
