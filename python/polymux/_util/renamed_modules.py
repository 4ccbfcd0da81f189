"""Import paths of 0.1 that the documentation named: they work, with a warning, until 0.3."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_NEW_NAMES = {
    "polymux.fetching": "polymux.fetch",
    "polymux.request": "polymux.client.request",
    "polymux.upstreams.replicate_server": "polymux.upstreams.replicate.client",
    "polymux.upstreams.server": "polymux.upstreams.client",
}


def spec_of(name: str) -> "ModuleSpec | None":
    """The spec of a renamed module by its old name; None for all others."""
    if name not in _NEW_NAMES:
        return None
    from importlib.machinery import ModuleSpec

    return ModuleSpec(name, _Alias())  # type: ignore[arg-type]


class _Alias:
    """Fills a module of the old name with what is in the new one."""

    def create_module(self, spec: "ModuleSpec") -> None:
        """Leaves it to importlib."""

    def exec_module(self, module: "ModuleType") -> None:
        """Copies the names, and warns where the import stands."""
        import warnings
        from importlib import import_module

        from polymux._util.deprecation import notice

        new = _NEW_NAMES[module.__name__]
        warnings.warn(notice(module.__name__, new), DeprecationWarning, stacklevel=2)
        found = vars(import_module(new))
        vars(module).update({name: one for name, one in found.items() if name[:2] != "__"})
