"""The page on tool calls has every style, as the registry describes it."""

from __future__ import annotations

from pathlib import Path

from structgen.tools import ToolStyle
from structgen.tools.styles import SHIPPED

PAGE = Path(__file__).resolve().parents[2] / "docs/guide/tool_calls.md"


def listing() -> str:
    """Every style with its models and its texts; a line break is written as ↵."""
    return "\n\n".join("\n".join(lines(style)) for style in sorted(SHIPPED, key=lambda style: style.name))


def lines(style: ToolStyle) -> list[str]:
    rows = [f"{style.name}: {style.models}"]
    if style.reasoning:
        rows.append(f"  reasoning  {'…'.join(style.reasoning)}{style.reasoning_suffix}")
    if style.thinks != ("optional" if style.reasoning or style.messages else "never"):
        rows.append(f"  thinks     {style.thinks}")
    if style.text_alone:
        rows.append(f"  text alone {'…'.join(style.text_alone)}")
    if style.response:
        rows.append(f"  text       {'…'.join(style.response)}")
    rows += [f"  message    {begin}…{' or '.join(style.message_ends)}" for begin in style.messages]
    if style.section:
        begin, end = style.section
        between = f"…{style.separator}…" if style.separator else "…"
        rows.append(f"  calls      {begin}{between}{end}")
    rows += [f"  {'call' if i == 0 else 'or  '}       {call}" for i, call in enumerate(style.calls)]
    if "$id" in "".join(style.calls):
        rows.append(f"  $id        {style.id}")
    if style.arguments != "json":
        rows.append(f"  $arguments {style.arguments}")
    if style.end:
        rows.append(f"  end        {style.end}")
    return [row.replace("\n", "↵") for row in rows]


def test_the_page_has_every_style() -> None:
    assert f"```text\n{listing()}\n```" in PAGE.read_text(encoding="utf-8")
