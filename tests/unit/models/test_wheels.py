from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest
from polymux.models import registry, wheels
from polymux.models.errors import ModelError
from support.models import sha256

if TYPE_CHECKING:
    from pathlib import Path


def test_a_member_that_is_a_link_is_no_link(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("m")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, b"/etc/passwd")
    wheels.unpack(path, part("m", b"/etc/passwd"), tmp_path / "out")
    assert not (tmp_path / "out").is_symlink()
    assert (tmp_path / "out").read_bytes() == b"/etc/passwd"


def part(member: str, data: bytes) -> registry.Part:
    source = registry.Source("a.zip", "", None)
    return registry.Part(source, member, sha256(data), len(data))


def archive_of(path: Path, data: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m", data)
    return path


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("missing", r"\bn\b.*a\.zip"),
        ("longer", "5000"),
        ("other", "SHA-256"),
        ("bomb", "a.zip"),
        ("locked", "a.zip"),
        ("unknown", "a.zip"),
        ("broken", "a.zip"),
        ("no zip", "a.zip"),
    ],
)
def test_members_that_are_not_what_they_should_be(tmp_path: Path, what: str, named: str) -> None:
    good = b"x" * 4000
    path = archive_of(tmp_path / "a.zip", good)
    wanted = part("m", good)
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\1\2")
    if what == "missing":
        wanted = part("n", good)
    elif what == "longer":
        archive_of(path, b"x" * 5000)
    elif what == "other":
        archive_of(path, b"y" * 4000)
    elif what == "bomb":  # 16 MiB with a stated length of 4,000 bytes
        archive_of(path, bytes(1 << 24))
        data = bytearray(path.read_bytes())
        entry = data.index(b"PK\1\2")
        data[entry + 24 : entry + 28] = (4000).to_bytes(4, "little")
        path.write_bytes(data)
    elif what == "no zip":
        path.write_bytes(b"no zip at all")
    else:
        place, value = {"locked": (8, 1), "unknown": (10, 99), "broken": (16, 0)}[what]
        data[entry + place] ^= value or 0xFF
        path.write_bytes(data)
    with pytest.raises(ModelError, match=named):
        wheels.unpack(path, wanted, tmp_path / "out")
    if (tmp_path / "out").exists():
        assert (tmp_path / "out").stat().st_size <= 4000
