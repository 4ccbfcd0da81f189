"""wheel_notices.py SOURCES WHEEL FOLDER: writes the wheel into FOLDER, with all license notices.

SOURCES has the unpacked sources of scripts/private-deps, which are linked into the wheel's modules.
auditwheel adds more libraries; their notices come from their Debian packages.
"""

import base64
import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

#: Project to the files that its license requires to be passed on.
LINKED = {
    "ffmpeg": ("LICENSE.md", "COPYING.LGPLv2.1", "CREDITS"),
    "libvpx": ("LICENSE", "PATENTS"),
    "of-curl/curl": ("COPYING",),
}
#: The same for LAME, whose source is in this repository.
_LAME = Path(__file__).resolve().parents[2] / "cpp/third_party/lame"
_LAME_FILES = ("COPYING", "LICENSE", "polymux.patch")
_CARRIED = re.compile(r"polymux\.libs/(lib[\w+.-]+?)-[0-9a-f]{8}(\.so[\d.]*)$")
_NOTICE = """Third-party software in this wheel, besides that in THIRD_PARTY.md:

Linked into its modules, built from unchanged sources by scripts/private-deps of the sdist:
{linked}
Linked into its modules, from cpp/third_party/lame of the sdist:
  LAME 3.100 with polymux.patch

Separate library files, each of which you may replace by another build:
{carried}
FFmpeg and LAME are under the GNU Lesser General Public License. The source of FFmpeg is the source
package of the version above in Debian's archive. The source of LAME is in this version's sdist. To
build this wheel with changed sources, use scripts/package of the sdist.
"""


def main() -> None:
    sources, wheel, folder = map(Path, sys.argv[1:])
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = next(name for name in names if name.endswith(".dist-info/RECORD"))
        notices = _notices(sources, names)
        added = {
            f"{record.rpartition('/')[0]}/licenses/{name}": text for name, text in notices.items()
        }
        target = folder / wheel.name
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
            for item in archive.infolist():
                if item.filename != record:
                    item.compress_type = zipfile.ZIP_DEFLATED
                    new.writestr(item, archive.read(item))
            for name, text in added.items():
                new.writestr(name, text)
            lines = archive.read(record).decode().splitlines()
            lines += [_line(name, text) for name, text in added.items()]
            new.writestr(record, "".join(f"{line}\n" for line in lines))
    print(f"{target}: {target.stat().st_size:,} bytes, {len(added)} notices", file=sys.stderr)


def _notices(sources: Path, names: list[str]) -> dict[str, bytes]:
    """Name below ``licenses/`` to text."""
    found = {}
    for project, files in LINKED.items():
        for file in files:
            found[f"{Path(project).name}/{file}"] = (sources / project / file).read_bytes()
    for file in _LAME_FILES:
        found[f"lame/{file}"] = (_LAME / file).read_bytes()
    carried = {}
    for match in filter(None, map(_CARRIED.match, names)):
        package, version, notice = _debian(match[1] + match[2])
        found[f"{package}/copyright"] = notice
        carried[package] = version
    text = _NOTICE.format(linked=_listed(_linked(sources)), carried=_listed(carried))
    return {"NOTICE.txt": text.encode(), **found}


def _linked(sources: Path) -> dict[str, str]:
    """Project to version."""
    prefix = sources.with_suffix("")
    lines = [
        line
        for name in ("versions", "curl-version")
        for line in (prefix / name).read_text().splitlines()
    ]
    return dict(line.split(" ", 1) for line in lines)


def _debian(library: str) -> tuple[str, str, bytes]:
    """Name, version and notice of the Debian package with a library."""
    owner = subprocess.run(
        ["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True, check=False
    )
    if owner.returncode != 0:
        sys.exit(f"wheel_notices: {library} is in the wheel, but no installed package contains it")
    package = owner.stdout.split(":", 1)[0]
    version = subprocess.run(
        ["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=True
    )
    return package, version.stdout, Path(f"/usr/share/doc/{package}/copyright").read_bytes()


def _listed(versions: dict[str, str]) -> str:
    return "".join(f"  {name} {version}\n" for name, version in versions.items())


def _line(name: str, text: bytes) -> str:
    """A line of RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(text)}"


if __name__ == "__main__":
    main()
