"""Finds possible faults in Python code, with the exact positions of `ast`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from faults.fault import Site

if TYPE_CHECKING:
    from collections.abc import Sequence

COMPARISONS: dict[type[ast.cmpop], tuple[str, list[str]]] = {
    ast.Lt: ("<", [">=", "<="]),
    ast.LtE: ("<=", [">", "<"]),
    ast.Gt: (">", ["<=", ">="]),
    ast.GtE: (">=", ["<", ">"]),
    ast.Eq: ("==", ["!="]),
    ast.NotEq: ("!=", ["=="]),
    ast.Is: ("is", ["is not"]),
    ast.IsNot: ("is not", ["is"]),
    ast.In: ("in", ["not in"]),
    ast.NotIn: ("not in", ["in"]),
}
#: No test can detect a timeout that is one second longer, or a text that is wider.
UNSEEN_NUMBER = re.compile(r"(_s|_ms|timeout|interval|indent|width|stacklevel)$", re.IGNORECASE)
LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
MESSAGE_CALLS = {"print", "warn", "warnings.warn", "log"}
#: Larger numbers are limits and sizes that are rarely met exactly.
LARGEST_NUMBER = 999


def sites(text: str) -> list[Site]:
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    return finder.sites


class _Finder(ast.NodeVisitor):
    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.sites: list[Site] = []

    # Code without faults.

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        is_text = node.name in {"__repr__", "__str__"} or node.name.startswith("_repr_")
        if is_text or any("overload" in ast.unparse(each) for each in node.decorator_list):
            return
        self._visit_all([*node.args.defaults, *node.args.kw_defaults, *node.body])

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if "TypeAlias" not in ast.unparse(node.annotation):
            self._visit_value(ast.unparse(node.target), node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._visit_value(ast.unparse(node.targets[0]), node.value)

    def visit_keyword(self, node: ast.keyword) -> None:
        self._visit_value(node.arg or "", node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Skip errors: they consist mostly of their message."""

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip f-strings: before Python 3.12 `ast` does not have their positions."""

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if ast.unparse(node.value).rpartition(".")[2] not in {"Literal", "Annotated"}:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if not _is_message(node):
            self.generic_visit(node)

    # Code with faults.

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if not isinstance(call, ast.Call) or _is_message(call):
            return
        self._add_whole(node, ["pass"], "dropped call")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for index, operator in enumerate(node.ops):
            before, after = COMPARISONS[type(operator)]
            self._add_between(operands[index : index + 2], before, after, "comparison")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        before, after = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for index in range(len(node.values) - 1):
            self._add_between(node.values[index : index + 2], before, [after], "and, or")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(
            isinstance(each, ast.JoinedStr | ast.List | ast.Tuple)
            or (isinstance(each, ast.Constant) and isinstance(each.value, str | bytes))
            for each in ast.walk(node)
        )
        if isinstance(node.op, ast.Add | ast.Sub) and not texts:
            before, after = ("+", "-") if isinstance(node.op, ast.Add) else ("-", "+")
            self._add_between([node.left, node.right], before, [after], "plus, minus")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            column = self._column(node.lineno, node.col_offset)
            line = self.lines[node.lineno - 1]
            # `not(x)` and an operand on the next line are not found.
            if line.startswith("not ", column):
                self.sites.append(Site(node.lineno, column, "not ", "", "removed not"))
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
            self._add_whole(node.value, [str(not node.value.value)], "returned constant")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if type(value) is int and value <= LARGEST_NUMBER and self._text(node).isdecimal():
            others = [value + 1, value - 1] if value else [1]
            self._add_whole(node, [str(other) for other in others], "number")

    def _visit_all(self, nodes: Sequence[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def _visit_value(self, name: str, value: ast.expr | None) -> None:
        is_number = isinstance(value, ast.Constant | ast.BinOp)
        if not (is_number and UNSEEN_NUMBER.search(name)):
            self._visit_all([value])

    def _column(self, line: int, offset: int) -> int:
        """Convert a column of `ast`, which counts bytes."""
        return len(self.lines[line - 1].encode()[:offset].decode())

    def _text(self, node: ast.expr | ast.stmt) -> str:
        """Return the node's text if it is on one line, otherwise an empty text."""
        if node.end_col_offset is None or node.lineno != node.end_lineno:
            return ""
        line = self.lines[node.lineno - 1].encode()
        return line[node.col_offset : node.end_col_offset].decode()

    def _add_whole(self, node: ast.expr | ast.stmt, others: list[str], kind: str) -> None:
        if before := self._text(node):
            column = self._column(node.lineno, node.col_offset)
            self.sites += [Site(node.lineno, column, before, other, kind) for other in others]

    def _add_between(
        self, operands: list[ast.expr], before: str, others: list[str], kind: str
    ) -> None:
        left, right = operands
        if left.end_lineno != right.lineno or left.end_col_offset is None:
            return
        start = self._column(right.lineno, left.end_col_offset)
        end = self._column(right.lineno, right.col_offset)
        gap = self.lines[right.lineno - 1][start:end]
        if match := re.fullmatch(rf"[\s)]*({re.escape(before)})[\s(]*", gap):
            column = start + match.start(1)
            self.sites += [Site(right.lineno, column, before, other, kind) for other in others]


def _is_message(call: ast.Call) -> bool:
    """Whether the call logs, warns or prints."""
    name = ast.unparse(call.func)
    owner, _, method = name.rpartition(".")
    return name in MESSAGE_CALLS or (method in LOG_METHODS and "log" in owner.lower())
