"""wheel_notices.py SOURCES WHEEL FOLDER: writes the wheel into FOLDER, with all notices.

SOURCES is where scripts/private-deps has unpacked what is linked into the wheel's modules. Of the
libraries that auditwheel has put beside them the notices are what their Debian packages say.
"""

import base64
import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

#: Project to the texts that its licence asks to be passed on.
LINKED = {
    "ffmpeg": ("LICENSE.md", "COPYING.LGPLv2.1", "CREDITS"),
    "lame": ("COPYING", "LICENSE"),
    "libvpx": ("LICENSE", "PATENTS"),
    "of-curl/curl": ("COPYING",),
}
_CARRIED = re.compile(r"polymux\.libs/(lib[\w+.-]+?)-[0-9a-f]{8}(\.so[\d.]*)$")
_SAID = """What this wheel holds of others, beside what THIRD_PARTY.md names:

linked into its modules, built from source without change by scripts/private-deps of its sdist
{linked}
beside them as files, each of which may be replaced by another build of it
{carried}
FFmpeg and LAME are under the GNU Lesser General Public Licence. Their sources are the source
packages of the versions above in Debian's archive; the sdist of this version of polymux, and
scripts/package in it, make the same wheel with changed ones.
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
    carried = {}
    for match in filter(None, map(_CARRIED.match, names)):
        package, version, notice = _debian(match[1] + match[2])
        found[f"{package}/copyright"] = notice
        carried[package] = version
    said = _SAID.format(linked=_listed(_linked(sources)), carried=_listed(carried))
    return {"NOTICE.txt": said.encode(), **found}


def _linked(sources: Path) -> dict[str, str]:
    """Project to its version."""
    prefix = sources.with_suffix("")
    lines = [
        line
        for name in ("versions", "curl-version")
        for line in (prefix / name).read_text().splitlines()
    ]
    return dict(line.split(" ", 1) for line in lines)


def _debian(library: str) -> tuple[str, str, bytes]:
    """The package of a library of this machine, its version, and its notice."""
    owner = subprocess.run(
        ["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True, check=False
    )
    if owner.returncode != 0:
        sys.exit(f"wheel_notices: {library} is in the wheel, and no package of this machine has it")
    package = owner.stdout.split(":", 1)[0]
    version = subprocess.run(
        ["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=True
    )
    return package, version.stdout, Path(f"/usr/share/doc/{package}/copyright").read_bytes()


def _listed(versions: dict[str, str]) -> str:
    return "".join(f"  {name} {version}\n" for name, version in versions.items())


def _line(name: str, text: bytes) -> str:
    """As RECORD has it."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(text)}"


if __name__ == "__main__":
    main()
