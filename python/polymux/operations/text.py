"""Text operations. Made by scripts/generate from contract/; change it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux.operations._caller import Caller

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from polymux._multipart import Upload
    from polymux.responses import OcrText


class TextOperations(Caller):
    """Text operations."""

    def read_text(
        self,
        image: Upload,
        *,
        lang: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> OcrText:
        """Reads the text in a picture.

        Args:
            image: The picture; a TIFF may have several pages.
            lang: Languages of the text, joined by plus: `eng`, `deu+fra`.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.

        Returns:
            The text, line by line.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
        """
        answer: OcrText = self._call(
            "read_text",
            {
                "file": image,
                "lang": lang,
            },
            model=None,
            extra_body=extra_body,
        )
        return answer
