"""The native media module, loaded on first use."""

from typing import TYPE_CHECKING

from polymux._native import attribute_loader
from polymux._util.text import printable, shortened
from polymux.errors import MissingDependencyError

_BUILD_PACKAGES = "libavformat-dev, libavcodec-dev, libavutil-dev and libswresample-dev"


def _missing(error: ImportError) -> MissingDependencyError:
    if isinstance(error, ModuleNotFoundError) and error.name == "polymux._native._media":
        return MissingDependencyError(
            "missing dependency: polymux was built without media support or for another Python "
            "version. Install the FFmpeg development packages (on Debian and Ubuntu "
            f"{_BUILD_PACKAGES}), then reinstall polymux"
        )
    return MissingDependencyError(
        f"media module of polymux: cannot be loaded ({shortened(printable(str(error)))}). "
        "Install the FFmpeg libraries that it was built with, or reinstall polymux after "
        f"installing {_BUILD_PACKAGES}"
    )


if TYPE_CHECKING:
    from polymux._native._media import *  # noqa: F403 - the names of the stub
else:
    __getattr__ = attribute_loader("polymux._native._media", globals(), _missing)
