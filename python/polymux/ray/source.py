"""The orders of a batch as a source of Ray Data. Only who works with Ray imports this."""

from __future__ import annotations

from functools import partial
from typing import Any

from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from polymux.ray.batch_queue import blocks_of


class _Orders(Datasource):
    """One task that reads the orders from their actor, one block after another."""

    def __init__(self, feed: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._feed = feed

    def estimate_inmemory_data_size(self) -> int | None:
        """Nobody knows."""
        return None

    def get_read_tasks(
        self,
        parallelism: int,  # noqa: ARG002 - as Ray calls it
        per_task_row_limit: int | None = None,  # noqa: ARG002
        data_context: Any = None,  # noqa: ARG002
    ) -> list[Any]:
        """The one task."""
        unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [ReadTask(partial(blocks_of, self._feed), unknown)]


def source_of(feed: Any) -> Any:
    """The orders of a feed.

    Args:
        feed: The actor.
    """
    return _Orders(feed)
