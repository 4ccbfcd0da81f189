"""model_manifest.py FOLDER...: updates the files in the manifests of small models.

Run it after each change of a model in models/. It reads `polymux-model.json` in the folder, keeps
its other fields, and writes the names, sizes and SHA-256 of the files that the engine loads.
Without a manifest, it creates one.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from polymux.models import manifest as manifests
from polymux.models.families import layout_of
from polymux.models.folder import kept_of
from polymux.models.manifest import Manifest


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        path = folder / manifests.FILE_NAME
        layout = layout_of(folder)
        known = manifests.read(path) or Manifest(
            name=folder.resolve().name, family=layout.family, license="MIT",
            source="polymux-mini-models", paths=layout.paths, options={}, files=(),
            license_source="the licenses in the model's folder", added_at=0,
        )  # fmt: skip
        path.write_bytes(replace(known, paths=layout.paths, files=kept_of(layout)).encoded())
        print(path)


if __name__ == "__main__":
    main()
