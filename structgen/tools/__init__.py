"""Tool calls: the tools of a request, in the style of a model, as the format of a structural tag.

Comes in: tools and a choice among them, as callers write them, and a style, by name or read off a chat template. Goes
out: a format, plain JSON, of what a reply may be. Nothing is compiled here.

Read `style` first, then `styles`, the registry. `tools` reads what callers write; `calls` puts the two together.
"""

from .calls import behind_reasoning, tool_call_format, tool_calls
from .style import ToolStyle
from .styles import detect_tool_style, reasoning_after, register_tool_style, tool_style, tool_styles

__all__ = [
    "ToolStyle", "behind_reasoning", "detect_tool_style", "reasoning_after", "register_tool_style",
    "tool_call_format", "tool_calls", "tool_style", "tool_styles",
]  # fmt: skip
