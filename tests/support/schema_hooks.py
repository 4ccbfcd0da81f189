"""Hooks for schemathesis: an additional check, and rules that the schema cannot express.

The command line loads this module. ``POLYMUX_NEVER_TOLD`` has lines that no answer may contain, and
``POLYMUX_ONLY_STATUSES`` the allowed statuses if not all are. Without ``POLYMUX_EVERY_REQUEST``,
only the first enumerated request of each kind is sent.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import schemathesis
from hypothesis.configuration import set_hypothesis_home_dir
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.generation.meta import CoveragePhaseData
from schemathesis.openapi.checks import RejectedPositiveData

if TYPE_CHECKING:
    from collections.abc import Iterator

# Hypothesis's character tables take seconds to make and are the same for each run.
set_hypothesis_home_dir(os.environ["POLYMUX_HYPOTHESIS"])
_NEVER = [one for one in os.environ.get("POLYMUX_NEVER_TOLD", "").splitlines() if one]
_ONLY = os.environ.get("POLYMUX_ONLY_STATUSES", "").split()
_EVERY = bool(os.environ.get("POLYMUX_EVERY_REQUEST"))
_OF_DEFECTS = re.compile(r"Traceback|object at 0x|\b0x[0-9a-f]{6}|[\x00-\x08\x0b-\x1f\x7f]")
_MAX_CHARACTERS = 2048
_SOON_MADE = 256


@schemathesis.check
def answer_is_safe(ctx: Any, response: Any, case: Any) -> None:
    """Check that errors are short and plain, and that answers contain no paths or keys."""
    text = response.content.decode("utf-8", "replace")
    for one in _NEVER:
        assert one not in text, "an answer tells what it must not"
        assert all(one not in value for values in response.headers.values() for value in values)
    if _ONLY:
        assert str(response.status_code) in _ONLY
    kind = "".join(response.headers.get("content-type", []))
    if response.status_code >= 400 and case.operation.label != "GET /media/{name}":
        assert kind == "application/json", kind
        error = json.loads(text)["error"]
        assert len(error.encode()) <= _MAX_CHARACTERS
        assert not _OF_DEFECTS.search(error), error


@schemathesis.hook
def before_load_schema(context: Any, raw_schema: dict[str, Any]) -> None:
    """Remove the limit of long form texts, because hypothesis needs many seconds to reach it."""
    if not _EVERY:
        _without_limits(raw_schema)


def _without_limits(value: Any) -> None:
    if isinstance(value, dict):
        if "pattern" in value and value.get("maxLength", 0) > _SOON_MADE:
            del value["maxLength"]
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        _without_limits(one)


_kinds: set[tuple[object, ...]] = set()


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Skip a request that differs from an earlier one only in the value, and not in its kind."""
    data = None if case.meta is None else case.meta.phase.data
    if _EVERY or not isinstance(data, CoveragePhaseData):
        return True
    kind = (
        case.operation.label, case.method, case.media_type, data.scenario, data.description,
        data.parameter, data.parameter_location,
    )  # fmt: skip
    is_new = kind not in _kinds
    _kinds.add(kind)
    return is_new


#: Messages of errors for requests that match the schema but break a rule it cannot express.
_BEYOND_SCHEMAS = (
    "duplicate field",  # two parts of a form with one name
    "invalid in JSON or out of range",  # in members that are passed on
    "is far outside of every accepted range",
    "is out of range",
    "must be an integer of at most 64 bits",
    "must be a finite number",
    "must be less than",  # start comes before end
    "end: out of range",
    "invalid cursor",
    "this is no picture of a kind",
    "unsupported image format",
    "name: invalid (got",  # A blank name is invalid, and so are control characters.
)


@schemathesis.hook
def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
    """Ignore failures with a known reason."""
    if isinstance(failure, RejectedPositiveData):
        return not _is_rightly_refused(case, response)
    if isinstance(failure, AcceptedNegativeData):
        # An empty text counts as missing. In a form, 1, on and yes are true.
        texts = _TEXTS if _is_form(case) else {""}
        return not any(one in texts for one in _texts(case.body))
    return True


_TEXTS = {"", "0", "1", "t", "f", "on", "off", "yes", "no", "true", "false"}


def _is_rightly_refused(case: Any, response: Any) -> bool:
    # The document cannot say which body belongs to which model.
    if len(case.operation.definition.raw.get("x-polymux-variants", [])) > 1:
        return True
    if response.status_code in (413, 415, 422):
        return _is_form(case)  # Random bytes are neither an image nor a song.
    text = response.content.decode("utf-8", "replace")
    if any(words in text for words in _BEYOND_SCHEMAS):
        return True
    return _is_form(case) and any(words in text for words in _RULES_OF_FORMS)


#: schemathesis's examples of forms ignore `allOf`, and the document describes some rules in text.
_RULES_OF_FORMS = (" can be used", " is required", ": requires ")


def _is_form(case: Any) -> bool:
    return case.media_type == "multipart/form-data"


def _texts(value: Any) -> Iterator[str]:
    for one in value.values() if isinstance(value, dict) else ():
        yield str(one).lower()
