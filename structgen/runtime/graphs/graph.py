"""`Graph`: states and moves of an automaton, for people, and the languages in which it is written down."""

from __future__ import annotations

import html
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...system.visible import data_url

if TYPE_CHECKING:
    from rich.tree import Tree

#: What a node stands for: a state, what a pop comes to, states that are left out.
NodeShape = Literal["state", "pop", "more"]

#: Seconds that Graphviz may take; a picture of a hundred states takes a few tenths.
_PATIENCE = 10.0

_SHAPES: dict[NodeShape, str] = {"state": "circle", "pop": "plaintext", "more": "plaintext"}

#: Characters of a label that a circle has room for; longer ones are in boxes.
_ROUND = 5


@dataclass(frozen=True)
class GraphNode:
    """A state.

    Parameters
    ----------
    name:
        An identifier: a letter and digits.
    label:
        For people.
    shape:
        What it stands for.
    is_accepting:
        Whether a text may end there.
    """

    name: str
    label: str
    shape: NodeShape = "state"
    is_accepting: bool = False


@dataclass(frozen=True)
class GraphEdge:
    """A move.

    Parameters
    ----------
    source, target:
        Names of nodes.
    label:
        The bytes that it reads, as characters, and what it does besides.
    is_return:
        Whether this is where a call comes back to: nothing is read.
    """

    source: str
    target: str
    label: str
    is_return: bool = False


@dataclass(frozen=True)
class Graph:
    """An automaton, as far as it fits. Made by `structgen.Index.graph`.

    Parameters
    ----------
    title:
        What it is of.
    nodes, edges:
        The first node is the start.
    omitted:
        States that are left out, among those that were looked at.
    is_whole:
        Whether all were looked at.
    """

    title: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    omitted: int = 0
    is_whole: bool = True

    def to_dot(self) -> str:
        """For Graphviz: ``dot -Tsvg``."""
        lines = [
            "digraph {", "  rankdir=LR;", f'  label="{_dot(self._caption())}";', '  node [fontname="sans-serif"];',
            '  edge [fontname="monospace", fontsize=11];', '  start [shape=point, label=""];',
        ]  # fmt: skip
        for node in self.nodes:
            shape = _SHAPES[node.shape]
            if shape == "circle" and len(node.label) > _ROUND:
                shape = "box, style=rounded"
            if node.is_accepting:
                shape += ", peripheries=2"
            lines.append(f'  {node.name} [label="{_dot(node.label)}", shape={shape}];')
        if self.nodes:
            lines.append(f"  start -> {self.nodes[0].name};")
        for edge in self.edges:
            style = ", style=dashed" if edge.is_return else ""
            lines.append(f'  {edge.source} -> {edge.target} [label="{_dot(edge.label)}"{style}];')
        return "\n".join([*lines, "}", ""])

    def to_mermaid(self) -> str:
        """For Mermaid, as Markdown has it in fences."""
        lines = ["flowchart LR"]
        for node in self.nodes:
            plain = ("((", "))") if node.shape == "state" else ("[", "]")
            begin, end = ("(((", ")))") if node.is_accepting else plain
            lines.append(f'  {node.name}{begin}"{_mermaid(node.label)}"{end}')
        for edge in self.edges:
            arrow = "-.->" if edge.is_return else "-->"
            lines.append(f'  {edge.source} {arrow}|"{_mermaid(edge.label)}"| {edge.target}')
        return "\n".join([*lines, ""])

    def to_svg(self) -> bytes | None:
        """Drawn by Graphviz; None where its ``dot`` is not installed, or takes longer than ten seconds."""
        dot = shutil.which("dot")
        if dot is None:
            return None
        try:
            done = subprocess.run(
                [dot, "-Tsvg"], input=self.to_dot().encode(), capture_output=True, timeout=_PATIENCE, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout

    def to_text(self) -> str:
        """State by state, in lines."""
        labels = {node.name: node.label for node in self.nodes}
        lines, moves = [self._caption()], self._moves()
        for node in self.nodes:
            lines.append(_line(node))
            lines += [f"    {_move(edge, labels)}" for edge in moves[node.name]]
        return "\n".join(lines)

    def _caption(self) -> str:
        left = f"; {self.omitted:,} states are left out" if self.omitted else ""
        return f"{self.title}{left}" + ("" if self.is_whole else ", and those behind them")

    def _moves(self) -> dict[str, list[GraphEdge]]:
        """By name of a node: the moves from there."""
        found: dict[str, list[GraphEdge]] = {node.name: [] for node in self.nodes}
        for edge in self.edges:
            found[edge.source].append(edge)
        return found

    def __rich__(self) -> Tree:
        """States below the one from which they are reached first."""
        from rich.text import Text
        from rich.tree import Tree

        nodes, moves = {node.name: node for node in self.nodes}, self._moves()
        labels = {node.name: node.label for node in self.nodes}
        top = Tree(Text(self._caption()))
        if not self.nodes:
            return top
        first = self.nodes[0]
        todo = [(first.name, top.add(Text(_line(first), "bold")))]
        seen = {first.name}
        for name, branch in todo:  # which grows
            for edge in moves[name]:
                text = Text(_move(edge, labels), "dim" if edge.is_return else "")
                below = branch.add(text)
                if edge.target not in seen:
                    seen.add(edge.target)
                    if nodes[edge.target].is_accepting:
                        text.append("  (the text may end)", "green")
                    todo.append((edge.target, below))
        return top

    def _repr_html_(self) -> str:
        svg = self.to_svg()
        if svg is None:
            return f"<pre>{html.escape(self.to_mermaid())}</pre>"
        source = data_url(svg)
        alt = html.escape(self.to_text(), quote=True)
        return f'<img style="background:#fff;max-width:100%" src="{source}" alt="{alt}">'


def _line(node: GraphNode) -> str:
    return node.label + ("  (the text may end)" if node.is_accepting else "")


def _move(edge: GraphEdge, labels: dict[str, str]) -> str:
    return f"{edge.label or 'then'} → {labels[edge.target]}"


def _dot(text: str) -> str:
    r"""Inside quotes, where ``\N`` and its like would be replaced, and ``&lt;``."""
    return text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _mermaid(text: str) -> str:
    """Inside quotes, where Markdown and HTML would be read: all but letters, digits and spaces by their numbers."""
    return "".join(c if c.isalnum() or c == " " else f"#{ord(c)};" for c in text)
