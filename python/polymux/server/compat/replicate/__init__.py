"""The Replicate API under ``/replicate/v1``: operations as models, jobs as predictions.

Each prediction is a job of the service. The contract checks its input, and the same API keys,
scopes, quotas and limits apply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux.server.compat.replicate.errors import BASE, PREFIX, ReplicateNotFound
from polymux.server.compat.replicate.files import FileDownload, FileItem, Files
from polymux.server.compat.replicate.inputs import Inputs
from polymux.server.compat.replicate.models import (
    ModelItem,
    ModelList,
    VersionItem,
    VersionList,
)
from polymux.server.compat.replicate.predictions import (
    ModelPredictions,
    PredictionCancel,
    PredictionItem,
    Predictions,
    PredictionStream,
)
from polymux.server.compat.replicate.webhooks import Webhooks, WebhookSecret

if TYPE_CHECKING:
    from polymux.server.routes.endpoint import Endpoint
    from polymux.server.state import ServerState

__all__ = ["PREFIX", "ReplicateNotFound", "routes"]


def routes(state: ServerState) -> list[tuple[str, Endpoint]]:
    inputs, webhooks = Inputs(state), Webhooks(state)
    model, prediction, file = "{owner}/{name}", f"{BASE}/predictions/{{id}}", f"{BASE}/files/{{id}}"
    return [
        (f"{BASE}/predictions", Predictions(state, inputs, webhooks)),
        (prediction, PredictionItem(state)),
        (f"{prediction}/cancel", PredictionCancel(state)),
        (f"{prediction}/stream", PredictionStream(state)),
        (f"{BASE}/models", ModelList(state)),
        (f"{BASE}/models/{model}", ModelItem(state)),
        (f"{BASE}/models/{model}/predictions", ModelPredictions(state, inputs, webhooks)),
        (f"{BASE}/models/{model}/versions", VersionList(state)),
        (f"{BASE}/models/{model}/versions/{{id}}", VersionItem(state)),
        (f"{BASE}/files", Files(state)),
        (file, FileItem(state)),
        (f"{file}/download", FileDownload(state)),
        (f"{BASE}/webhooks/default/secret", WebhookSecret(state, webhooks)),
    ]
