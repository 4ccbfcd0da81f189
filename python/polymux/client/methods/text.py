"""Text operations. Made by scripts/generate from contract/; change it there."""

from __future__ import annotations

from polymux.client.methods._caller import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from polymux.client.multipart import Upload
    from polymux.client.options import Timeout
    from polymux.client.responses import OcrText


class TextOperations(Caller):
    """Text operations."""

    def read_text(
        self,
        image: Upload,
        *,
        lang: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
    ) -> OcrText:
        """Reads the text in a picture.

        Args:
            image: The picture; a TIFF may have several pages.
            lang: Languages of the text, joined by plus: `eng`, `deu+fra`.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_upload: Called with the bytes of the body sent so far and its length, None when not
                known; at most every 50 ms, and at the end. What it raises ends the request.

        Returns:
            The text, line by line.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
        """
        answer: OcrText = self._call(
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
