"""The media engine on a cluster."""

from __future__ import annotations

from polymux.ray.backend import ClusterBackend
from polymux.runtime.build import MediaWork


class ClusterMedia(MediaWork, ClusterBackend):
    """Opens strangers' files on whatever machine has room: they travel there and back."""
