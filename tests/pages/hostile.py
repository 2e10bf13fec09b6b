"""Values of which every text wants to be more than text."""

from __future__ import annotations

from structgen.correction.values import Correction, CorrectionEvent, Piece
from structgen.traces.steps import TraceCandidate, TraceRollback, TraceStep
from structgen.traces.trace import Trace

#: Each sets a title, opens a dialog, loads something, or turns its surroundings around, if it can.
HOSTILE = [
    "</script><script>alert(1);document.title='run'</script>",
    "<img src=x onerror=\"alert(2);document.title='run'\">",
    "<!--<script>",
    "]]><svg/onload=alert(3)>",
    "\"'><script>alert(4)</script>",
    "' onclick='alert(5)' x='",
    "{{ 7 * 7 }}{% include 'page.js' %}",
    "${alert(6)}`;alert(7)//",
    "\u2028alert(8)\u2029",
    "\u202eevil\u2066\u200f\u061c",
    "javascript:alert(9)",
    "[bold red]markup[/]",
    "\x00\x07\x1b[31m\x7f",
    "\ud800lone",
    "<link rel=stylesheet href=http://127.0.0.1:9/x><iframe src=http://127.0.0.1:9/>",
    "&lt;script&gt;alert(10)&lt;/script&gt;&#60;",
]


def hostile_trace() -> Trace:
    """Texts, names, paths, prompts: all of them."""
    steps = []
    for number, text in enumerate(HOSTILE):
        data = text.encode("utf-8", "surrogatepass")
        candidates = (
            TraceCandidate(number, data, text, 0.25, 1.0, True),
            TraceCandidate(99, data + b"\xff", text, 0.75, 0.0, False),
        )
        steps.append(TraceStep(number, data, text, "steered", True, 3, text, 0.5, 0.25, 0.25, 0.8, 0.0, candidates))
    steps.append(TraceStep(50, None, HOSTILE[0], "forced", False, 1))
    everything = "".join(HOSTILE)
    other = Trace(9, (TraceStep(1, everything.encode("utf-8", "surrogatepass"), "", "unconstrained", True, 9),))
    return Trace(9, tuple(steps), (TraceRollback(3, 1),), 2, everything, everything, other)


def hostile_correction() -> Correction:
    """The same for a text that was corrected."""
    pieces = [Piece("model", "a")]
    events = []
    for number, text in enumerate(HOSTILE, 1):
        pieces += [Piece("dropped", text)]
        events.append(CorrectionEvent(number, 1, 1, text, (text, text + "x"), text, "nearest", number, 1.0))
    pieces += [Piece("nearest", HOSTILE[0]), Piece("forced", HOSTILE[1])]
    return Correction(
        "".join(p.text for p in pieces if p.source != "dropped"), True, "model", tuple(events), tuple(pieces), ("x",)
    )
