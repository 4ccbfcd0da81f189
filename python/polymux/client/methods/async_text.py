"""Text operations, asynchronous. Made by scripts/generate from contract/; change it there."""

from __future__ import annotations

from polymux.client.methods._caller import AsyncCaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from polymux.client.multipart import Upload
    from polymux.client.options import Timeout
    from polymux.client.responses import OcrText


class AsyncTextOperations(AsyncCaller):
    """Text operations, asynchronous."""

    async def read_text(
        self,
        image: Upload,
        *,
        lang: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
    ) -> OcrText:
        """Reads the text in a picture.

        See `Client.read_text` for the arguments, the result and the errors.
        """
        answer: OcrText = await self._call(
            "read_text",
            {
                "file": image,
                "lang": lang,
            },
            model=None,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
        )
        return answer
