"""URLs that must not be fetched: every trick address, in every form that some parser reads.

No URL names an address on the Internet. The public side is a documentation address (RFC 5737) that
exists only in the test's network namespace.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PUBLIC = "203.0.113.7"
#: Addresses that listen in the namespace, to which polymux must never connect.
DECOYS = (
    "127.0.0.1", "10.0.0.1", "192.168.0.1", "100.64.0.1", "100.100.100.200", "168.63.129.16",
    "169.254.169.254", "::1", "fd00:ec2::254",
)  # fmt: skip
PORTS = (22, 80, 443, 6379, 8080)

SCHEMES = (
    "file", "FILE", "ftp", "ftps", "gopher", "gophers", "dict", "tftp", "ldap", "smb", "scp",
    "sftp", "imap", "pop3", "smtp", "mqtt", "telnet", "rtsp", "rtmp", "rtp", "mms", "srt", "ws",
    "wss", "tcp", "udp", "unix", "ipfs", "jar", "netdoc", "php", "view-source:http",
)  # fmt: skip


def _wide(text: str) -> str:
    """Full-width digits with an ideographic full stop."""
    return "".join(chr(ord(char) + 0xFEE0) if char.isdigit() else char for char in text).replace(
        ".", "\u3002"
    )


def _circled(text: str) -> str:
    return "".join(
        char if not char.isdigit() else "\u24ea" if char == "0" else chr(0x245F + int(char))
        for char in text
    )


def _spellings_of_ipv4(text: str) -> Iterator[str]:
    """One IPv4 address as inet_aton, browsers and IPv6 write it."""
    address = ipaddress.IPv4Address(text)
    number = int(address)
    parts = [int(part) for part in text.split(".")]
    mixed = ".".join(map(str, parts[:3]))
    yield text
    yield f"{text}."
    yield str(number)
    yield hex(number)
    yield f"0X{number:08x}"
    yield f"0{number:o}"
    yield ".".join(f"0x{part:x}" for part in parts)
    yield ".".join(f"0{part:o}" for part in parts)
    if parts[0] == 127:  # For other addresses, the octal reading is a real address.
        yield ".".join(f"{part:03}" for part in parts)
    yield f"{parts[0]}.{number & 0xFFFFFF}"
    yield f"{parts[0]}.{parts[1]}.{number & 0xFFFF}"
    yield f"{mixed}.{parts[3]:#x}"
    yield f"{number}."
    yield _wide(text)
    yield _circled(text)
    yield text.replace(".", "\uff0e")
    yield text.replace(".", "%2e")
    yield "".join(f"%{ord(char):02x}" for char in text)
    yield f"[::ffff:{text}]"
    yield f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]"
    yield f"[::{text}]"
    yield f"[64:ff9b::{text}]"
    yield f"[64:ff9b:1::{text}]"
    yield f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::]"
    yield f"[2001:0:{number >> 16:x}:{number & 0xFFFF:x}::]"
    inverted = number ^ 0xFFFFFFFF
    yield f"[2001::{inverted >> 16:x}:{inverted & 0xFFFF:x}]"


def hosts() -> Iterator[str]:
    """Every form of a forbidden host."""
    for decoy in DECOYS:
        if ":" in decoy:
            yield f"[{decoy}]"
            yield f"[{ipaddress.IPv6Address(decoy).exploded}]"
            yield f"[{decoy.upper()}]"
            yield f"[{decoy}%25lo]"
            yield f"[{decoy}%lo]"
        else:
            yield from _spellings_of_ipv4(decoy)
    yield from ("0", "0.0.0.0", "0.1.2.3", "127.1", "127.255.255.254", "127.0.1", "0x7f.1")
    yield from ("[::]", "[fe80::1]", "[fe80::1%25lo]", "[fc00::1]", "[fec0::1]", "[ff02::1]")
    for network in (
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16",
        "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "224.0.0.0/4",
    ):  # fmt: skip
        addresses = ipaddress.IPv4Network(network)
        yield from (str(addresses[n]) for n in (0, addresses.num_addresses // 2, -1))
    yield from (
        "localhost", "LOCALHOST", "localhost.", "a.localhost", "localhost.localdomain",
        "ip6-localhost", "ip6-loopback", "metadata", "metadata.google.internal", "printer.local",
        "\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3", "\u24dbocalhost", "local%68ost",
        "loc\u00adalhost", "localho\u017ft",
    )  # fmt: skip


def _in_forms(host: str) -> Iterator[str]:
    yield f"http://{host}/"
    yield f"https://{host}/latest/meta-data/"
    yield f"HTTP://{host}:80"


def _differentials() -> Iterator[str]:
    """URLs with two hosts, of which different parsers see different ones."""
    for inner in ("127.0.0.1", "169.254.169.254", "[::1]"):
        for form in (
            "http://{p}@{i}/", "http://{p}:80@{i}/", "http://{i}#@{p}/", "http://{i}?@{p}/",
            "http://{p}\\@{i}/", "http://{i}\\@{p}/", "http://{p}%40{i}/", "http://{p}%2f@{i}/",
            "http://{p}#\n@{i}/", "http://{p} @{i}/", "http://{p}\t@{i}/", "http://{p}:@{i}/",
            "http://:@{i}/", "http://@{i}/", "http://user:secret@{i}/", "http://{i}:80@{p}/",
            "http://{p},{i}/", "http://{p};{i}/", "http://{p}&@{i}#@{i}/", "http://{p}%00{i}/",
            "http://{p}%0d%0a@{i}/", "http://{p}%09{i}/", "http://{p}\r\n@{i}/",
            "http://{p}\u2028@{i}/", "http://{p}\uff20{i}/", "http://[{p}]@{i}/",
            "http:\\\\{i}\\", "http:/\\{i}/", "http:\\/{i}/", "http://\\{i}/", "http://{i}\\a",
        ):  # fmt: skip
            yield form.format(p=PUBLIC, i=inner)


def _slashes() -> Iterator[str]:
    for inner in ("127.0.0.1", "10.0.0.1"):
        for form in (
            "http:{i}", "http:{i}/", "http:/{i}/", "http:///{i}/", "http:////{i}/", "//{i}/",
            "///{i}/", "{i}", "{i}:80", "{i}/", "//{i}:6379/", ":{i}", "://{i}/", "http//{i}/",
            "http ://{i}/", "ht\ttp://{i}/", "\thttp://{i}/", " http://{i}/", "http://{i} /",
            "http://{i}\n/", "\x00http://{i}/", "http://{i}\x00/", "http://\u00ad{i}/",
            "\ufeffhttp://{i}/", "http\u00ad://{i}/", "http://{i}\u200b/", "url:http://{i}/",
        ):  # fmt: skip
            yield form.format(i=inner)


def _ports() -> Iterator[str]:
    for port in (0, 1, 22, 25, 6379, 8080, 65536, 99999999999, "0x50", "080a", "-80", "+80", ""):
        yield f"http://{PUBLIC}:{port}/"
        yield f"http://127.0.0.1:{port}/"
    yield f"http://{PUBLIC}:0018110/"
    yield f"http://{PUBLIC}:80:80/"


def _other_schemes() -> Iterator[str]:
    for scheme in SCHEMES:
        yield f"{scheme}://127.0.0.1/"
        yield f"{scheme}://{PUBLIC}/"
    yield from (
        "file:///etc/passwd", "file://localhost/etc/passwd", "file:/etc/passwd", "file:etc/passwd",
        "/etc/passwd", "concat:a|b", "subfile,,start,0,end,9,,:/etc/passwd", "pipe:0", "data:,a",
        "crypto:a", "cache:http://127.0.0.1/", "javascript:0", "ytsearch5:x", ":ytfav", "video.mp4",
        "--exec=touch canary", "-o/x", "--config-locations=x", "-a list", "@file", "", "null",
    )  # fmt: skip


def _big_and_broken() -> Iterator[str]:
    yield "http://" + "@" * 100_000
    yield "http://127.0.0.1/" + "%2e" * 100_000
    yield "http://127.0.0.1/%"
    yield "http://127.0.0.1/%zz"
    yield "http://" + "a" * 64 + ".example/"
    yield "http://" + "a." * 200 + "example/"
    yield "http://a..example/"
    yield "http://.example/"
    yield "http://256.256.256.256/"
    yield "http://1.2.3.4.5/"
    yield "http://[::1/"
    yield "http://::1/"
    yield "http://[127.0.0.1]/"
    yield "http://[localhost]/"
    yield "http://[]/"


def urls() -> list[str]:
    found = [form for host in hosts() for form in _in_forms(host)]
    for more in (_differentials, _slashes, _ports, _other_schemes, _big_and_broken):
        found += more()
    return list(dict.fromkeys(found))


def proxies() -> list[str]:
    """Proxies that look like `PUBLIC`, port 80, but mean another host to some parser."""
    found: list[str] = []
    for inner in ("127.0.0.1", "169.254.169.254", "[::1]"):
        for form in (
            "http://{i}:80", "http://{i}:80/", "socks5://{i}:8080", "socks5h://{p}:80",
            "https://{p}:80", "http://{p}:8080", "http://{p}", "http://{p}:80@{i}:80",
            "http://{p}:80@{i}", "http://{i}:80#@{p}:80", "http://{i}:80?@{p}:80",
            "http://{i}:80/@{p}:80", "http://{i}:80\\@{p}:80", "http://{i}\\@{p}:80",
            "http://{p}:80\\@{i}:80", "http://{i}%2f@{p}:80\t", "http://{i}\n@{p}:80",
            "http://{i}:80\r\n#@{p}:80", "http://{p}:80,{i}:80", "http://{p}:80;http://{i}:80",
            "http://{p}:80 {i}:80", "http://{i}:80\x00@{p}:80", "http://{p}%00{i}:80",
            "http://{p}:80\x00{i}", "http://@@{i}:80", "http:{i}:80", "//{p}:80", "{p}:80",
            "file:///etc/passwd", "unix://{p}:80", "socks4://{p}:80", "http://{p}:+80",
            "http://{p}:8_0", "http://{p}:\uff18\uff10",
        ):  # fmt: skip
            found += [form.format(p=PUBLIC, i=inner)]
    return list(dict.fromkeys(found))


#: Internal addresses in their usual form, one of each class.
PLAIN = (
    "http://127.0.0.1/", "http://[::1]/", "http://10.0.0.1/", "http://192.168.0.1/",
    "http://100.64.0.1/", "http://169.254.169.254/", "http://[fd00:ec2::254]/", "http://[fe80::1]/",
)  # fmt: skip
#: The URLs of runs without ``--long``: PLAIN, other spellings, and other schemes.
SAMPLE = (
    *PLAIN, "http://0/", "http://2130706433/", "http://0x7f.0x0.0x0.0x1/", "http://0177.00.00.01/",
    "http://\uff11\uff12\uff17\u3002\uff10\u3002\uff10\u3002\uff11/", "http://127%2e0%2e0%2e1/",
    "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::127.0.0.1]/", "http://localhost/",
    "http://metadata.google.internal/", f"http://{PUBLIC}:6379/", f"http://{PUBLIC}@127.0.0.1/",
    f"http://{PUBLIC}\\@127.0.0.1/", "http:/127.0.0.1/", "file:///etc/passwd", "ftp://127.0.0.1/",
    "concat:a|b", "--exec=touch canary", "",
)  # fmt: skip
