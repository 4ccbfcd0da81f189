"""The native media module, loaded when something of it is first used."""

from typing import TYPE_CHECKING

from polymux._native import attribute_loader
from polymux._util.text import printable, shortened
from polymux.errors import MissingDependencyError

_BUILD_PACKAGES = (
    "libavformat-dev, libavcodec-dev, libavutil-dev, libswresample-dev and libmp3lame-dev"
)


def _missing(error: ImportError) -> MissingDependencyError:
    if isinstance(error, ModuleNotFoundError) and error.name == "polymux._native._media":
        return MissingDependencyError(
            "this polymux was built without media support (or for another Python): install the "
            f"FFmpeg and LAME development packages (on Debian and Ubuntu {_BUILD_PACKAGES}), "
            "then reinstall polymux"
        )
    return MissingDependencyError(
        f"the media module of polymux cannot be loaded ({shortened(printable(str(error)))}): "
        "install the FFmpeg and LAME libraries it was built against, or reinstall polymux after "
        f"installing {_BUILD_PACKAGES}"
    )


if TYPE_CHECKING:
    from polymux._native._media import *  # noqa: F403 - the names of the stub
else:
    __getattr__ = attribute_loader("polymux._native._media", globals(), _missing)
