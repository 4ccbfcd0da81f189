"""wheel_notices.py DEPS ZIG WHEEL FOLDER: writes the wheel into FOLDER, with notices and an SBOM.

DEPS is the folder to which scripts/private-deps installed the libraries that are linked into the
wheel's modules; their sources are in DEPS.work. ZIG is the folder of the package ziglang.
"""

import base64
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Part:
    """A project that is part of the wheel's modules.

    Attributes:
        name: Its name, and that of its folder of notices.
        license: An SPDX expression.
        folder: Where its source is: in DEPS.work, in this repository, or in ZIG.
        notices: Files that its license requires to be passed on.
    """

    name: str
    license: str
    folder: str
    notices: tuple[str, ...]


#: Debian's source packages, unpacked by scripts/private-deps.
LINKED = (
    Part("ffmpeg", "LGPL-2.1-or-later", "ffmpeg", ("LICENSE.md", "COPYING.LGPLv2.1", "CREDITS")),
    Part("libvpx", "BSD-3-Clause", "libvpx", ("LICENSE", "PATENTS")),
    Part("zlib", "Zlib", "of-curl/zlib", ("LICENSE",)),
    Part("openssl", "Apache-2.0", "of-curl/openssl", ("LICENSE.txt",)),
    Part("nghttp2", "MIT", "of-curl/nghttp2", ("COPYING",)),
    Part(
        "libidn2", "(LGPL-3.0-or-later OR GPL-2.0-or-later) AND Unicode-DFS-2016",
        "of-curl/libidn2", ("COPYING", "COPYING.LESSERv3", "COPYINGv2", "COPYING.unicode"),
    ),
    Part("curl", "curl", "of-curl/curl", ("COPYING",)),
)  # fmt: skip
#: Of this repository. The build backend adds the notices of llhttp, pocketfft and simdjson.
_CARRIED = (
    Part("lame", "LGPL-2.0-or-later", "lame", ("COPYING", "LICENSE", "polymux.patch")),
    Part("llhttp", "MIT", "llhttp", ()),
    Part("simdjson", "MIT", "simdjson", ()),
    Part("pocketfft", "BSD-3-Clause", "pocketfft", ()),
)
_CARRIED_VERSIONS = {
    "lame": "3.100",
    "llhttp": "9.4.3",
    "simdjson": "3.12.3",
    "pocketfft": "1.15.3",
}
#: zig's clang compiles the modules, with its C++ library.
RUNTIME = (
    Part("zig", "MIT", "", ("LICENSE",)),
    Part("libcxx", "Apache-2.0 WITH LLVM-exception", "lib/libcxx", ("LICENSE.TXT",)),
    Part("libcxxabi", "Apache-2.0 WITH LLVM-exception", "lib/libcxxabi", ("LICENSE.TXT",)),
    Part("libunwind", "Apache-2.0 WITH LLVM-exception", "lib/libunwind", ("LICENSE.TXT",)),
)
_NOTICE = """Third-party software in this wheel, besides that in THIRD_PARTY.md. The
modules contain it.

Built from the source packages of Debian or Ubuntu, by scripts/private-deps of the sdist:
{linked}
From cpp/third_party of the sdist (LAME with polymux.patch), and headers of pybind11:
{carried}
From zig {zig}, the compiler:
  compiler_rt, libcxx, libcxxabi, libunwind

FFmpeg, LAME and libidn2 are under the GNU Lesser General Public License. Their sources are the
source packages of the versions above in Debian's archive, and LAME's is in this version's sdist. To
build this wheel with changed sources, use scripts/package of the sdist.
"""


def main() -> None:
    deps, zig, wheel, folder = map(Path, sys.argv[1:])
    versions = _versions(deps, zig)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        unknown = [name for name in names if re.search(r"\.libs/|\.so\.", name)]
        if unknown:
            sys.exit(f"wheel_notices: libraries without notices: {unknown}. Link them statically")
        record = next(name for name in names if name.endswith(".dist-info/RECORD"))
        information = record.rpartition("/")[0]
        added = {
            f"{information}/licenses/{name}": text for name, text in _notices(deps, zig).items()
        }
        added[f"{information}/licenses/NOTICE.txt"] = _notice(versions).encode()
        added[f"{information}/sboms/polymux.cdx.json"] = _bill(versions, information).encode()
        target = folder / wheel.name
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
            for item in archive.infolist():
                if item.filename != record:
                    item.compress_type = zipfile.ZIP_DEFLATED
                    new.writestr(item, archive.read(item))
            for name, text in added.items():
                new.writestr(_entry(name), text)
            lines = archive.read(record).decode().splitlines()
            lines += [_line(name, text) for name, text in added.items()]
            new.writestr(_entry(record), "".join(f"{line}\n" for line in lines))
    print(f"{target}: {target.stat().st_size:,} bytes, {len(added)} notices", file=sys.stderr)


def _notices(deps: Path, zig: Path) -> dict[str, bytes]:
    """Name below ``licenses/`` to text."""
    places = (
        (LINKED, deps.with_name(f"{deps.name}.work")),
        (_CARRIED, ROOT / "cpp/third_party"),
        (RUNTIME, zig),
    )
    found = {
        f"{part.name}/{file}": (place / part.folder / file).read_bytes()
        for parts, place in places
        for part in parts
        for file in part.notices
    }
    pybind11 = importlib.metadata.distribution("pybind11")
    (notice,) = (file for file in pybind11.files or () if file.name == "LICENSE")
    return {**found, "pybind11/LICENSE": notice.read_binary()}


def _versions(deps: Path, zig: Path) -> dict[str, str]:
    lines = [
        line.split(" ", 1)
        for name in ("versions", "curl-version")
        for line in (deps / name).read_text().splitlines()
    ]
    compiler = subprocess.run([zig / "zig", "version"], check=True, capture_output=True, text=True)
    found = {name.lower(): version for name, version in lines} | _CARRIED_VERSIONS
    found["pybind11"] = importlib.metadata.version("pybind11")
    return found | dict.fromkeys((part.name for part in RUNTIME), compiler.stdout.strip())


def _notice(versions: dict[str, str]) -> str:
    def listed(*names: str) -> str:
        return "".join(f"  {name} {versions[name]}\n" for name in names)

    return _NOTICE.format(
        linked=listed(*(part.name for part in LINKED)),
        carried=listed(*(part.name for part in _CARRIED), "pybind11"),
        zig=versions["zig"],
    )


def _bill(versions: dict[str, str], information: str) -> str:
    """A list of all parts in the format CycloneDX, as PEP 770 describes."""
    name, _, version = information.removesuffix(".dist-info").partition("-")
    places = {part.name: "pkg:deb/debian/{}@{}?arch=source" for part in LINKED}
    places["pybind11"] = "pkg:pypi/{}@{}"
    parts = [*LINKED, *_CARRIED, Part("pybind11", "BSD-3-Clause", "", ()), *RUNTIME]
    components = [
        {
            "type": "library",
            "name": part.name,
            "version": versions[part.name],
            "licenses": [{"expression": part.license}],
            "purl": places.get(part.name, "pkg:generic/{}@{}").format(
                part.name, quote(versions[part.name], safe="~")
            ),
        }
        for part in parts
    ]
    made_s = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(made_s)),
            "component": {"type": "library", "name": name, "version": version,
                          "purl": f"pkg:pypi/{name}@{version}"},
        },
        "components": components,
    }  # fmt: skip
    return json.dumps(bill, indent=1) + "\n"


def _entry(name: str) -> zipfile.ZipInfo:
    """A file of the archive. Its time is that of the other files, so that builds are equal."""
    made_s = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    entry = zipfile.ZipInfo(name, max(time.gmtime(made_s)[:6], (1980, 1, 1, 0, 0, 0)))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _line(name: str, text: bytes) -> str:
    """A line of RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(text)}"


if __name__ == "__main__":
    main()
