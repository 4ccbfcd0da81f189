"""Model repositories of Hugging Face and compatible servers: their file lists and needed files.

https://huggingface.co/docs/hub/api: ``/api/models/REPOSITORY/revision/REVISION`` returns the
commit. ``/api/models/REPOSITORY/tree/COMMIT?recursive=1`` returns the files, with the SHA-256 of
large files (git LFS, https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md) and the git SHA-1
of small files. ``/REPOSITORY/resolve/COMMIT/PATH`` is a file. If the model registry has no hash,
the repository's hash is shown, trusted on first use, and stored. Later downloads must match it.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from polymux._util.text import shown
from polymux.errors import InvalidRequestError
from polymux.models import diffusion_folders
from polymux.models.errors import ModelError
from polymux.models.registry import File, Part, Source, is_plain_path

if TYPE_CHECKING:
    from polymux.fetch.fetcher import Fetched, FetchPolicy
    from polymux.models.registry import Model, Wanted

#: Server of the repositories, unless ``POLYMUX_MODELS_URL`` is set.
ADDRESS = "https://huggingface.co"
_LIST_BYTES = 16 << 20
_MAX_PAGES = 20
_MAX_SHOWN_NAMES = 20
_LARGEST_BYTES = 1 << 50
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")
_NEXT = re.compile(r"<([^>]*)>\s*;\s*rel=\"?next\"?")
_TOP_FILES = re.compile(r"(model_index|config|preprocessor_config)\.json|LICENSE(\.md|\.txt)?")
#: HTTP statuses of repositories without public access.
_CLOSED = (401, 403)


class Entry(NamedTuple):
    """A file of a repository. Either `sha256` or `git_oid` is set."""

    path: str
    bytes: int
    sha256: str
    git_oid: str


class Tree(NamedTuple):
    """The files of a repository at a commit."""

    repository: str
    commit: str
    entries: dict[str, Entry]


def base_url() -> str:
    """Return the URL of the repository server, without a trailing slash.

    Raises:
        InvalidRequestError: ``POLYMUX_MODELS_URL`` is not a valid URL.
    """
    named = os.environ.get("POLYMUX_MODELS_URL", "") or ADDRESS
    parts = urlsplit(named)
    if parts.scheme not in ("https", "http") or not parts.netloc or "@" in parts.netloc:
        raise InvalidRequestError(
            "POLYMUX_MODELS_URL: invalid URL. Use a URL such as https://models.example, without "
            "user name and password"
        )
    return named.rstrip("/")


def address(source: Source) -> str:
    revision, path = quote(source.revision, safe=""), quote(source.path)
    return f"{base_url()}/{source.repository}/resolve/{revision}/{path}"


def policy_of(policy: FetchPolicy | None) -> FetchPolicy:
    """Also allow the host of ``POLYMUX_MODELS_URL``, because the user has configured it."""
    from polymux.fetch.fetcher import FetchPolicy

    policy = policy or FetchPolicy()
    if not os.environ.get("POLYMUX_MODELS_URL"):
        return policy
    return replace(policy, allowed_hosts=(*policy.allowed_hosts, urlsplit(base_url()).netloc))


def resolved(model: Model, policy: FetchPolicy | None = None) -> Model:
    """Return the model with all files, sizes and hashes from its repositories.

    Raises:
        ModelError: A repository does not exist, requires an account, returns invalid data, has only
            pickles, or has another file than the registry.
        TransportError: The server cannot be reached.
        URLRefusedError: The URL was rejected by SSRF protection.
    """
    if not model.wanted:
        return model
    keys = dict.fromkeys((one.repository, one.revision) for one in model.wanted)
    listed = {key: tree_of(*key, policy) for key in keys}
    files = [_current(one, listed) for one in model.files]
    names = {one.name for one in files}
    for one in model.wanted:
        for file in _files_of(one, listed[one.repository, one.revision]):
            if file.name not in names:
                names.add(file.name)
                files.append(file)
    return replace(model, files=tuple(files), wanted=(), about_bytes=None)


def _current(file: File, trees: dict[tuple[str, str], Tree]) -> File:
    """Return a file of the registry; if the list has it too, at the list's commit."""
    part = file.parts[0]
    source = part.source
    tree = trees.get((source.repository, source.revision))
    if tree is None:
        return file
    entry = tree.entries.get(source.path)
    if entry is None or entry.sha256 not in ("", source.sha256):
        raise ModelError(
            f"{source} has changed and does not match the model registry. It was not downloaded"
        )
    part = replace(part, source=replace(source, revision=tree.commit))
    return replace(file, parts=(part,))


def tree_of(repository: str, revision: str, policy: FetchPolicy | None = None) -> Tree:
    """Return the file list of a repository.

    Raises:
        ModelError: The repository does not exist, requires an account, or returns invalid data.
        TransportError: The server cannot be reached.
        URLRefusedError: The URL was rejected by SSRF protection.
    """
    policy = policy_of(policy)
    place = f"{base_url()}/api/models/{repository}"
    about, _ = _asked(repository, f"{place}/revision/{quote(revision, safe='')}", policy)
    commit = about.get("sha") if isinstance(about, dict) else None
    if not isinstance(commit, str) or not _SHA1.fullmatch(commit):
        raise ModelError(
            f"{repository}: the server's response has no commit for revision {revision}"
        )
    if about.get("gated") not in (None, False):
        raise ModelError(closed(repository))
    entries: dict[str, Entry] = {}
    url = f"{place}/tree/{commit}?recursive=1"
    for _ in range(_MAX_PAGES):
        plain, fetched = _asked(repository, url, policy)
        for one in plain if isinstance(plain, list) else [None]:
            entry = _entry(repository, one)
            if entry is not None and entries.setdefault(entry.path, entry) is not entry:
                raise ModelError(f"{repository}: invalid file list: duplicate {shown(entry.path)}")
        following = _NEXT.search(fetched.header("link") or "")
        if following is None:
            return Tree(repository, commit, entries)
        url = following[1]
        if not url.startswith(f"{base_url()}/"):
            raise ModelError(f"{repository}: invalid file list: the next page is on another server")
    raise ModelError(f"{repository}: file list too long (allowed {_MAX_PAGES} pages)")


def _asked(repository: str, url: str, policy: FetchPolicy) -> tuple[Any, Fetched]:
    from polymux.fetch.fetcher import FetchLimits, fetch

    fetched = fetch(url, policy=policy, limits=FetchLimits(body_bytes=_LIST_BYTES))
    if not fetched.ok:
        raise ModelError(refused(repository, fetched.status))
    try:
        return json.loads(fetched.data or b""), fetched
    except (ValueError, RecursionError):
        raise ModelError(f"{repository}: invalid JSON in the server's response") from None


def refused(repository: str, status: int) -> str:
    """Return the message for an HTTP status that is not a success."""
    if status in _CLOSED:
        return closed(repository)
    if status == 404:
        return f"{repository}: repository, revision or file not found"
    if status == 429:
        return f"{repository}: rate limited. Try again later"
    return f"{repository}: the server returned status {status}"


def closed(repository: str) -> str:
    """Return the message for a repository that requires an account."""
    return (
        f"{repository} does not exist, or requires an account that has accepted its terms, which "
        "polymux does not support. Download the model yourself, then run 'polymux models add NAME "
        "DIR'"
    )


def _entry(repository: str, plain: Any) -> Entry | None:
    """Parse an entry of the list; None if it is not a file."""
    path = plain.get("path") if isinstance(plain, dict) else None
    if not isinstance(path, str):
        raise ModelError(f"{repository}: invalid file list")
    parts = path.split("/")
    if any(one in ("", ".", "..") for one in parts) or "\\" in path or not path.isprintable():
        raise ModelError(f"{repository}: invalid path {shown(path)} in the file list")
    if plain.get("type") != "file":
        return None
    large = plain.get("lfs")
    details = large if isinstance(large, dict) else plain
    size, oid = details.get("size"), details.get("oid")
    form = _SHA256 if details is large else _SHA1
    right = isinstance(oid, str) and form.fullmatch(oid) is not None
    if not right or not isinstance(size, int) or not 0 <= size < _LARGEST_BYTES:
        raise ModelError(f"{repository}: missing size or hash of {path} in the file list")
    return Entry(path, size, *((oid, "") if details is large else ("", oid)))


def _one_file(path: str, tree: Tree) -> Entry:
    """Return the file at a path, or the only one that matches a pattern."""
    found = fnmatch.filter(tree.entries, path)
    if len(found) == 1:
        return tree.entries[found[0]]
    if found:
        raise ModelError(
            f"{tree.repository} has {len(found)} files {path}, but one is expected: "
            f"{_shown_names(found)}"
        )
    suffix = PurePosixPath(path).suffix
    alike = [one for one in tree.entries if one.endswith(suffix)] or list(tree.entries)
    raise ModelError(f"{tree.repository} has no file {path} (it has {_shown_names(alike)})")


def _shown_names(names: list[str]) -> str:
    more = len(names) - _MAX_SHOWN_NAMES
    return ", ".join(names[:_MAX_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def _files_of(wanted: Wanted, tree: Tree) -> list[File]:
    if wanted.name:
        entry = _one_file(wanted.path, tree)
        if not entry.sha256.startswith(wanted.sha256_begins):
            raise ModelError(
                f"{wanted.path} of {tree.repository} is not the expected file: its SHA-256 does "
                f"not start with {wanted.sha256_begins}"
            )
        return [_file(wanted.name, entry, tree)]
    folder = "" if wanted.path == "." else f"{wanted.path}/"
    inside = {
        path.removeprefix(folder): one
        for path, one in tree.entries.items()
        if path.startswith(folder) and "/" not in path.removeprefix(folder)
    }
    if not inside:
        raise ModelError(f"{tree.repository} has no directory {wanted.path}")
    names = diffusion_folders.needed_names(inside, (diffusion_folders.HALF, ""))
    if not folder:
        names = [name for name in inside if _is_of_the_top(name, names, inside)]
    names = [name for name in names if is_plain_path(name)]
    files = [_file(folder + name, inside[name], tree) for name in names]
    needs = "config.json" in inside and diffusion_folders.INDEX not in inside
    if needs and not diffusion_folders.has_weights(names):
        files.append(_pickled(tree, wanted.path, folder, inside))
    return files


def _is_of_the_top(name: str, needed: list[str], inside: dict[str, Entry]) -> bool:
    """Whether a top-level file is needed. Weights are not, if the components have their own."""
    if diffusion_folders.weights_of(name) is not None:
        return name in needed and diffusion_folders.INDEX not in inside
    return _TOP_FILES.fullmatch(name) is not None


def _pickled(tree: Tree, place: str, folder: str, inside: dict[str, Entry]) -> File:
    """Describe the weights of a component that are only available as a pickle, to be converted."""
    found = diffusion_folders.convertible(inside)
    if found is not None:
        made = _file(folder + found[1], inside[found[0]], tree)
        return replace(made, sha256="", bytes=inside[found[0]].bytes, converted=True)
    where = tree.repository if place == "." else f"{place} in {tree.repository}"
    if diffusion_folders.has_pickles(inside):
        raise ModelError(diffusion_folders.pickles(f"the weights of {where}"))
    raise ModelError(f"no weights found for {where}")


def _file(name: str, entry: Entry, tree: Tree) -> File:
    source = Source(
        file=entry.path.rpartition("/")[2],
        sha256=entry.sha256,
        bytes=entry.bytes,
        repository=tree.repository,
        revision=tree.commit,
        path=entry.path,
        git_oid=entry.git_oid,
    )
    return File(name, entry.sha256, entry.bytes, (Part(source, "", entry.sha256, entry.bytes),))
