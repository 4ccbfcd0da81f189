"""The apt sources of this machine, read from apt's own configuration.

Scripts use these sources instead of fixed host names. As a program, it prints the URL of the
archive with this release's packages.
"""

from pathlib import Path

APT = Path("/etc/apt")
Entry = dict[str, str]


def read_deb822(text: str) -> list[Entry]:
    """The stanzas of a .sources file, without comments."""
    stanzas = []
    for block in text.split("\n\n"):
        entry: Entry = {}
        for line in block.splitlines():
            if not line.startswith("#") and ":" in line and not line[0].isspace():
                key, _, value = line.partition(":")
                entry[key.strip()] = value.strip()
        if entry:
            stanzas.append(entry)
    return stanzas


def read_one_line(text: str) -> list[Entry]:
    """Entries of a .list file: deb [options] uri suite component..."""
    entries = []
    for line in text.splitlines():
        words = line.split("#")[0].replace("[", " [ ").replace("]", " ] ").split()
        if not words or words[0] not in ("deb", "deb-src"):
            continue
        entry: Entry = {"Types": words[0]}
        if words[1] == "[":
            end = words.index("]")
            options = dict(word.split("=", 1) for word in words[2:end] if "=" in word)
            if "signed-by" in options:
                entry["Signed-By"] = options["signed-by"]
            words[1 : end + 1] = []
        entry |= {"URIs": words[1], "Suites": words[2], "Components": " ".join(words[3:])}
        entries.append(entry)
    return entries


def codename() -> str:
    """The code name of this machine's release, such as "bookworm"."""
    lines = Path("/etc/os-release").read_text().splitlines()
    release = dict(line.split("=", 1) for line in lines if "=" in line)
    return release.get("VERSION_CODENAME", "").strip('"')


def distribution_entries() -> list[Entry]:
    """Entries of the distribution's own archive with security updates, and no third party's."""
    files = [APT / "sources.list", *sorted((APT / "sources.list.d").glob("*"))]
    entries: list[Entry] = []
    for path in files:
        if path.suffix in (".list", ".sources") and path.is_file():
            read = read_deb822 if path.suffix == ".sources" else read_one_line
            entries += read(path.read_text())
    own = codename()
    return [
        entry
        for entry in entries
        if own
        and entry.get("Enabled", "yes") != "no"
        and any(suite.startswith(own) for suite in entry.get("Suites", "").split())
    ]


def source_list(suite: str = "") -> str:
    """A .sources file for source packages of this release, or of `suite` in the same archive."""
    own = codename()
    stanzas: list[str] = []
    for entry in distribution_entries():
        suites = [name for name in entry["Suites"].split() if name.startswith(own)]
        names = " ".join((suite or own) + name.removeprefix(own) for name in suites)
        stanza = {"Types": "deb-src", "URIs": entry["URIs"], "Suites": names}
        stanza |= {key: entry[key] for key in ("Components", "Signed-By") if entry.get(key)}
        text = "".join(f"{key}: {value}\n" for key, value in stanza.items())
        if text not in stanzas:
            stanzas.append(text)
    return "\n".join(stanzas)


def archive() -> str:
    """The URL of the archive with this release's packages; an empty text if it is missing."""
    own = codename()
    main = [entry for entry in distribution_entries() if own in entry["Suites"].split()]
    return main[0]["URIs"].split()[0] if main else ""


if __name__ == "__main__":
    print(archive())
