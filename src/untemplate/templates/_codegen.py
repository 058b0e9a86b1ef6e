"""Generates the Python code of a template: Jinja's own code with calls to the meter.

* Every block of statements begins with a call of ``tick`` with the size of the block, so that every round of a loop,
  macro or recursion is counted.
* Buffers count the text written to them. Slices, ``~``, comparisons, keys of dicts and output expressions call the
  meter in generated code; operators, calls, filters and tests call it in ``_sandbox.py``.
* Every branch (``_branches.py``) is marked in ``meter.ran`` when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import thread_time
from typing import Any, cast

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context

from ..errors import TemplateLimitError
from ._limits import COMPILE_LIMIT
from ._meter import Meter, grown

__all__ = ["Generator", "MeteredContext", "count"]


class _Buffer(list[str]):
    """Output of a macro or a ``set`` block."""

    __slots__ = ("left",)

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.left: int = meter.size

    def append(self, piece: str) -> None:
        self.left -= len(piece)
        if self.left < 0:
            raise grown("one value is too large")
        super().append(piece)

    def extend(self, pieces: Iterable[str]) -> None:
        for piece in pieces:
            self.append(piece)


class MeteredContext(Context):
    """The variables of one rendering, and its meter."""

    meter: Meter

    def derived(self, locals: dict[str, Any] | None = None) -> Context:
        derived = super().derived(locals)
        cast("MeteredContext", derived).meter = self.meter
        return derived

    def buffer(self) -> _Buffer:
        return _Buffer(self.meter)

    def joined(self, join: Callable[[Iterable[Any]], str], values: tuple[Any, ...]) -> str:
        self.meter.joined(values)
        return join(values)


_NESTED = (nodes.For, nodes.If, nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.With, nodes.AssignBlock)
_BODIES = frozenset(("body", "else_", "elif_"))


def count(statements: Iterable[nodes.Node]) -> int:
    """The nodes that run once whenever these statements do; a body of its own has a tick of its own."""
    count = 0
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        count += 1
        waiting += node.iter_child_nodes(exclude=_BODIES if isinstance(node, _NESTED) else None)
    return count


def _constant(node: nodes.Node) -> bool:
    if isinstance(node, (nodes.List, nodes.Tuple)):
        return all(_constant(item) for item in node.items)
    return isinstance(node, (nodes.Const, nodes.TemplateData))


class Generator(CodeGenerator):
    """Jinja's code generator, whose code calls ``context.meter``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.undeclared: set[str] = set()
        self.branches: dict[int, int] = {}
        """Index of each branch (`branches_of`)."""
        self.deadline: float = thread_time() + COMPILE_LIMIT

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        if thread_time() > self.deadline:
            raise TemplateLimitError("the template takes too long to compile")
        return super().visit(node, *args, **kwargs)

    def enter_frame(self, frame: Frame) -> None:
        super().enter_frame(frame)
        for action, name in frame.symbols.loads.values():
            if action == "resolve" and name is not None and name not in self.environment.globals:
                self.undeclared.add(name)

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        branch = self.branches.get(id(nodes))
        statements = list(nodes)
        if branch is not None:
            self.writeline(f"context.meter.ran[{branch}] = 1")
        self.writeline(f"context.meter.tick({count(statements) + 1})")
        super().blockvisit(statements, frame)

    def buffer(self, frame: Frame) -> None:
        frame.buffer = self.temporary_identifier()
        self.writeline(f"{frame.buffer} = context.buffer()")

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if frame.eval_ctx.volatile:
            self.write("(escape if context.eval_ctx.autoescape else str)(context.meter.flat(")
        elif frame.eval_ctx.autoescape:
            self.write("escape(context.meter.flat(")
        else:
            self.write("context.meter.text(")

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write("))" if frame.eval_ctx.volatile or frame.eval_ctx.autoescape else ")")

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        if frame.eval_ctx.volatile:
            join = "(markup_join if context.eval_ctx.volatile else str_join)"
        else:
            join = "markup_join" if frame.eval_ctx.autoescape else "str_join"
        self.write(f"context.joined({join}, (")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        """Measure one side: a comparison goes no deeper than the smaller side. Count the length of the other."""
        self.write("(")
        self._asked("flat", node.expr, frame)
        for operand in node.ops:
            self.write(f" {_OPERATORS[operand.op]} ")
            self._asked("seen", operand.expr, frame)
        self.write(")")

    def _asked(self, method: str, node: nodes.Expr, frame: Frame) -> None:
        asked = not _constant(node)
        self.write(f"context.meter.{method}(" if asked else "")
        self.visit(node, frame)
        self.write(")" if asked else "")

    def visit_CondExpr(self, node: nodes.CondExpr, frame: Frame) -> None:
        frame = frame.soft()
        self.write("(")
        first = self.branches.get(id(node))
        self._side(node.expr1, first, frame)
        self.write(" if ")
        self.visit(node.test, frame)
        self.write(" else ")
        if node.expr2 is None:
            self.write("cond_expr_undefined('the condition is false and there is no else')")
        else:
            self._side(node.expr2, None if first is None else first + 1, frame)
        self.write(")")

    def _side(self, node: nodes.Expr, branch: int | None, frame: Frame) -> None:
        """Write one side of a conditional expression, and note that it runs."""
        self.write("(" if branch is None else f"(context.meter.reach({branch}) and ")
        self.visit(node, frame)
        self.write(")")

    @contextmanager
    def _filter_test_common(self, node: nodes.Filter | nodes.Test, frame: Frame, is_filter: bool) -> Iterator[None]:
        """A filter or test that nobody knows fails where it is used, so that the rest of the template can be used."""
        with super()._filter_test_common(node, frame.soft(), is_filter):
            yield

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        sliced = isinstance(node.arg, nodes.Slice)
        self.write("context.meter.made(" if sliced else "")
        super().visit_Getitem(node, frame)
        self.write(")" if sliced else "")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        self.write("{")
        for item in node.items:
            self._asked("flat", item.key, frame)
            self.write(": ")
            self.visit(item.value, frame)
            self.write(", ")
        self.write("}")


_OPERATORS = {
    "eq": "==", "ne": "!=", "gt": ">", "gteq": ">=", "lt": "<", "lteq": "<=", "in": "in", "notin": "not in",
}  # fmt: skip
