"""The server: the polymux API over HTTP.

``polymux serve`` runs it. `create_app` returns it as a FastAPI application, `router` as a router
for your own application. Requires the extra ``server``.

Example:
    >>> from polymux.server import create_app
    >>> create_app().title
    'polymux'
"""

from __future__ import annotations

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from polymux.server.app import create_app, lifespan, router

__all__ = ["create_app", "lifespan", "router"]


def __getattr__(name: str) -> object:
    """Import the application when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from polymux.errors import MissingDependencyError

    try:
        from polymux.server import app

        if name != "lifespan":
            import fastapi  # noqa: F401 - both need it, but import it only when called
    except ImportError as error:
        if error.name is None or error.name.startswith("polymux"):
            raise
        raise MissingDependencyError(
            f"missing package {error.name}. Install it with pip install 'polymux[server]'"
        ) from error
    return getattr(app, name)
