"""The models section of `polymux doctor`: assigned models, roles and the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.models.families import FAMILIES
from polymux.models.folder import ModelsFolder
from polymux.models.roles import ROLES, assign_models, loras_of, possible
from polymux.models.torch_device import device

if TYPE_CHECKING:
    from collections.abc import Mapping


def generation(
    wanted: Mapping[str, Any] | None = None,
    folder: ModelsFolder | None = None,
    *,
    problem: str = "",
) -> dict[str, Any]:
    """Return the state of generation without loading a model.

    Args:
        wanted: Models by role from the settings. Default: the default models.
        folder: Directory of models. Default: the user's.
        problem: Why the engine's packages cannot be imported. Default: they can.

    Returns:
        ``ok`` (whether at least one operation is available), ``installed`` (whether the engine's
            packages are and can be imported), ``problem`` (None without one), ``remedy``,
            ``device`` (fields of `Device`), ``operations``, ``roles`` (name to ``title``,
            ``model``, ``instead_of``, ``is_small`` and ``problem``) and ``loras``.
    """
    folder = folder or ModelsFolder()
    found = assign_models(wanted or {}, folder)
    about = FAMILIES["diffusion"]
    installed = about.is_installed and not problem
    operations = possible(found.models)
    roles = {
        role: {
            "title": one.title,
            "model": found.models.get(role, {}).get("name"),
            "instead_of": found.models.get(role, {}).get("instead_of"),
            "is_small": found.models.get(role, {}).get("is_small", False),
            "problem": found.problems.get(role),
        }
        for role, one in ROLES.items()
    }
    return {
        "ok": installed and bool(operations),
        "installed": installed,
        "problem": problem or None,
        "remedy": about.remedy,
        "device": device()._asdict() if installed else None,
        "operations": [f"{name} {variant}".strip() for name, variant in operations],
        "roles": roles,
        "loras": sorted(loras_of(folder)),
    }


def lines(found: dict[str, Any]) -> list[str]:
    """Return the lines of `polymux doctor` for the result of `generation`."""
    if found["problem"]:
        words = f"images, video and music: {found['problem']}. Run: {found['remedy']}"
        return [f"broken   engine diffusion: {words}"]
    if not found["installed"]:
        return [f"absent   engine diffusion: images, video and music (run: {found['remedy']})"]
    can = ", ".join(found["operations"])
    report = [
        f"ok       engine diffusion: {can}"
        if found["ok"]
        else "absent   engine diffusion: no models for images, video or music are installed",
        f"         {_device(found['device'])}",
    ]
    for role, one in found["roles"].items():
        if one["model"] is not None:
            instead = f" instead of {one['instead_of']}" if one["instead_of"] else ""
            small = " (small model)" if one["is_small"] else ""
            report.append(f"         {role}: {one['model']}{instead}{small}")
    lacking = [role for role, one in found["roles"].items() if one["model"] is None]
    report += [f"         {role}: {found['roles'][role]['problem']}" for role in lacking]
    return report


def _device(found: dict[str, Any]) -> str:
    if found["cuda"]:
        return f"torch {found['torch']} on {', '.join(found['names'])}, in {found['dtype']}"
    return f"torch {found['torch']} on the CPU, in {found['dtype']}: {found['why']}"
