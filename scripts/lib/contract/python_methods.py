"""The typed methods of every operation: a synchronous and an asynchronous class."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from contract import docstrings, python_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract.model import Contract, Field, Operation, Variant

FOLDER = "python/polymux/client/methods"
#: Modules of the names in signatures, in the order of the import block.
HOMES = {
    "collections.abc": ("Callable", "Mapping", "Sequence"),
    "typing": ("Any", "Literal"),
    "polymux.client.multipart": ("Upload",),
    "polymux.client.options": ("Timeout",),
    "polymux.client.chat_stream": ("AsyncChatStream", "ChatStream"),
    "polymux.media.media_file": ("MediaFile",),
    "polymux.client.methods.types": (),
    "polymux.client.responses": (
        "AnswerMessage", "ChatCompletion", "OcrText", "Prediction", "Song", "SongList",
        "TextResponse",
    ),

}  # fmt: skip


def files(contract: Contract) -> dict[str, str]:
    """Map paths, relative to the repository root, to contents."""
    made = {f"{FOLDER}/types.py": python_types.types_file(contract)}
    made[f"{FOLDER}/results.py"] = _results_file(contract)
    made[f"{FOLDER}/synchronous.py"] = _module(contract, asynchronous=False)
    made[f"{FOLDER}/asynchronous.py"] = _module(contract, asynchronous=True)
    return made


def _results_file(contract: Contract) -> str:
    results = "".join(f'    "{one.name}": "{one.result}",\n' for one in contract.operations)
    paths = "".join(f'    "{one.name}": "{one.path}",\n' for one in contract.operations)
    jobs = "".join(f'        "{one.name}",\n' for one in contract.operations if one.job)
    aliases = {alias: one.name for one in contract.operations for alias in one.aliases}
    others = "".join(f'    "{alias}": "{name}",\n' for alias, name in aliases.items())
    head = python_types.HEAD.format(title="The result of each operation.")
    return (
        f"{head}\n"
        f"#: Name of the class in `polymux` of an operation's result.\nRESULTS = {{\n{results}}}\n"
        f"#: Path of each operation, after ``/api/v1/``.\nPATHS = {{\n{paths}}}\n"
        f"#: Other names of methods.\nALIASES = {{\n{others}}}\n"
        "#: Operations that a server runs as a job, which clients can read, watch and cancel.\n"
        f"JOBS = frozenset(\n    {{\n{jobs}    }}\n)\n"
    )


def _module(contract: Contract, *, asynchronous: bool) -> str:
    methods = [_Method(one, asynchronous=asynchronous) for one in contract.operations]
    kind = "Async" if asynchronous else ""
    title = f"All operations as {'coroutine ' if asynchronous else ''}methods."
    signatures = "\n".join(signature for one in methods for signature in one.signatures())
    return (
        f"{python_types.HEAD.format(title=title)}\n"
        f"from __future__ import annotations\n\n"
        f"from polymux.client.methods._caller import {kind}Caller, overload\n\n"
        # typing.TYPE_CHECKING would load typing, which takes longer than a client.
        "TYPE_CHECKING = bool()\n"
        f"{_imports(contract, signatures)}\n\n"
        f"class {kind}Operations({kind}Caller):\n"
        f'    """{title}"""\n\n' + "\n".join(one.text() for one in methods)
    )


def _imports(contract: Contract, signatures: str) -> str:
    words = set(re.findall(r"[A-Za-z_]\w*", signatures))
    own = {
        name for family in contract.families for name in python_types.type_names(contract, family)
    }
    lines = ["if TYPE_CHECKING:\n"]
    for home, names in HOMES.items():
        used = sorted(words & (own if home.endswith(".types") else set(names)))
        if used:
            if home.startswith("polymux") and not any("polymux" in line for line in lines):
                lines.append("\n")
            lines.append(f"    from {home} import {', '.join(used)}\n")
    return "".join(lines)


class _Method:
    """Writes one operation's method."""

    def __init__(self, operation: Operation, *, asynchronous: bool) -> None:
        self.operation = operation
        self.asynchronous = asynchronous

    def signatures(self) -> list[str]:
        """Return the signatures: the overloads, if any, then the implementation's."""
        one = self.operation
        result = one.result
        if one.stream_result:
            iterator = f"{'Async' if self.asynchronous else ''}ChatStream"
            return [
                self._signature(one.variants[0], result, stream="Literal[False] = False"),
                self._signature(one.variants[0], iterator, stream="Literal[True]"),
                self._signature(one.variants[0], f"{result} | {iterator}", stream="bool = False"),
            ]
        if len(one.variants) == 1:
            return [self._signature(one.variants[0], result)]
        overloads = [self._signature(variant, result) for variant in one.variants]
        whole = self._signature(None, result)
        # The fields of an installed model depend on the server.
        installed = whole.replace("        model: str | None = None,", "        model: str,")
        return [*overloads, installed, whole]

    def _signature(self, variant: Variant | None, result: str, stream: str = "") -> str:
        lines = ["    async def " if self.asynchronous else "    def "]
        lines[0] += f"{self.operation.name}(\n        self,\n"
        lines += list(self._first())
        lines.append("        *,\n")
        lines += list(self._model(variant))
        for one, choices in self._rest(variant):
            if one.name == "stream" and stream:
                lines.append(f"        stream: {stream},\n")
                continue
            needed = one.required and self.operation.name != "chat"
            kind = python_types.of_field(one, choices)
            lines.append(
                f"        {one.python_name}: {kind}{'' if needed else ' | None = None'},\n"
            )
        lines.append("        extra_body: Mapping[str, Any] | None = None,\n")
        lines += [f"        {name}: {kind},\n" for name, kind in self._of_the_call().items()]
        return "".join(lines) + f"    ) -> {result}:"

    def _of_the_call(self) -> dict[str, str]:
        """Map the parameters that are not sent to their type and default."""
        found = {"timeout": "float | Timeout | None = None"}
        if any("file" in one.type for one in self.operation.all_fields()):
            found["on_upload"] = "Callable[[int, int | None], object] | None = None"
        if self.operation.job:
            found["on_progress"] = "Callable[[Prediction], object] | None = None"
        if self.operation.result == "Prediction":
            found["wait"] = "bool = True"
        return found

    def _first(self) -> Iterator[str]:
        fields = self.operation.variants[0].fields
        first = next(one for one in fields if one.name == self.operation.first)
        kind = python_types.of_field(first)
        if first.name == "messages":
            kind = f"str | {kind}"
        optional = "" if first.required else " | None = None"
        yield f"        {first.python_name}: {kind}{optional},\n"

    def _model(self, variant: Variant | None) -> Iterator[str]:
        if not self.operation.selects_model:
            return
        several = len(self.operation.variants) > 1
        if variant is None or not several:
            yield "        model: str | None = None,\n"
        elif variant is self.operation.variants[0] or variant.chosen_by:
            yield f'        model: Literal["{variant.model}"] | None = None,\n'
        else:
            yield f'        model: Literal["{variant.model}"],\n'

    def _rest(self, variant: Variant | None) -> Iterator[tuple[Field, str]]:
        if variant is not None:
            for one in variant.fields:
                if one.name != self.operation.first:
                    yield one, python_types.named_choices(self.operation, variant, one)
            return
        for one in self.operation.all_fields():
            if one.name == self.operation.first:
                continue
            names = [
                python_types.named_choices(self.operation, other, same)
                for other in self.operation.variants
                for same in other.fields
                if same.name == one.name
            ]
            yield one, " | ".join(dict.fromkeys(filter(None, names)))

    def _value(self, one: Field) -> str:
        streams = one.name == "stream" and self.operation.stream_result
        return f"{one.python_name} or None" if streams else one.python_name

    def _docstring(self) -> str:
        if self.asynchronous:
            return docstrings.of_asynchronous_method(self.operation)
        return docstrings.of_method(self.operation, self._of_the_call())

    def text(self) -> str:
        *overloads, implementation = self.signatures()
        head = "".join(f"    @overload\n{one} ...\n\n" for one in overloads)
        fields = self.operation.all_fields()
        values = "".join(f'                "{one.name}": {self._value(one)},\n' for one in fields)
        wait = "await " if self.asynchronous else ""
        model = "model" if self.operation.selects_model else "None"
        call = "".join(f"            {name}={name},\n" for name in self._of_the_call())
        result = implementation.rsplit("-> ", 1)[1].rstrip(":")
        name = self.operation.name
        aliases = "".join(
            f'\n    {alias} = {name}\n    """Alias of `{name}`."""\n'
            for alias in self.operation.aliases
        )
        return (
            f"{head}{implementation}\n"
            f"{self._docstring()}"
            f"        answer: {result} = {wait}self._call(\n"
            f'            "{self.operation.name}",\n            {{\n{values}            }},\n'
            f"            model={model},\n            extra_body=extra_body,\n{call}        )\n"
            "        return answer\n"
            f"{aliases}"
        )
