"""release.py COMMAND ...: steps of the release workflow (docs/development/releasing.md).

check TAG: fails unless TAG, such as v0.2.0, fits the version and the changelog.
notes TAG: prints the changelog's section of this version, for the release page.
metadata TAG URL: adds the URLs of the repository at URL to pyproject.toml, and makes the links of
  README.md absolute, because package indexes show it without the other files.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    match sys.argv[1:]:
        case ["check", tag]:
            check(tag)
        case ["notes", tag]:
            print(notes(tag))
        case ["metadata", tag, url]:
            add_urls(url)
            make_links_absolute(tag, url)
        case _:
            sys.exit(__doc__)


def check(tag: str) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if tag != f"v{version}":
        sys.exit(
            f"{tag}: wrong tag (pyproject.toml has version {version}). "
            "Tag the commit that sets the version"
        )
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        sys.exit(
            f"pyproject.toml: not a version of a release (got {version}, allowed: such as 0.2.0 "
            "or 0.2.0rc1)"
        )
    if not notes(tag):
        sys.exit(f"CHANGELOG.md: the section of {version} is empty")


def notes(tag: str) -> str:
    version = tag.removeprefix("v")
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## \[{re.escape(version)}\].*\n((?:(?!## ).*\n?)*)", text, re.MULTILINE)
    if not found:
        sys.exit(
            f"CHANGELOG.md: section [{version}] not found. Rename [Unreleased] and start a new one"
        )
    return found[1].strip()


def add_urls(url: str) -> None:
    path = ROOT / "pyproject.toml"
    text = path.read_text()
    if "\n[project.urls]\n" in text:
        sys.exit("pyproject.toml: [project.urls] already exists")
    urls = {
        "Homepage": url,
        "Documentation": f"{url}/blob/main/docs/index.md",
        "Source": url,
        "Issues": f"{url}/issues",
        "Changelog": f"{url}/blob/main/CHANGELOG.md",
    }
    table = "".join(f'{name} = "{one}"\n' for name, one in urls.items())
    path.write_text(
        text.replace("\n[project.scripts]\n", f"\n[project.urls]\n{table}\n[project.scripts]\n", 1)
    )


def make_links_absolute(tag: str, url: str) -> None:
    path = ROOT / "README.md"

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}[{link[2]}]({url}/{kind}/{tag}/{link[3]})"

    path.write_text(re.sub(r"(!?)\[([^]]*)\]\((?!https?:|#)([^)]+)\)", absolute, path.read_text()))


if __name__ == "__main__":
    main()
