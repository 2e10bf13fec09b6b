"""Traces as boxes of a page, and as Rich texts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ..pages.page import Box, BoxChoice, BoxKind, Page, Pane
from ..system.visible import visible
from .steps import TokenKind, TraceCandidate, TraceRollback, TraceStep

if TYPE_CHECKING:
    from rich.console import Group

_MEANINGS: dict[TokenKind, str] = {
    "forced": "nothing else was allowed (double line)",
    "steered": "the model's first choice was not allowed (dashed line)",
    "free": "the model's first choice was allowed (line)",
    "chosen": "one of several; the model's scores weren't seen (dots)",
    "refused": "chosen without the mask, and not allowed (struck out)",
    "unconstrained": "no definition held (grey line)",
}

_STYLES: dict[TokenKind, str] = {
    "forced": "blue underline", "steered": "yellow bold", "free": "green", "chosen": "", "refused": "red",
    "unconstrained": "dim",
}  # fmt: skip

#: Characters of a prompt and a definition that are shown.
_SHOWN = 2_000

_Facts = tuple[tuple[str, str], ...]


def page(panes: tuple[Pane, ...], prompt: str, definition: str) -> Page:
    """The page of a trace."""
    there = {box.kind for pane in panes for box in pane.boxes}
    kinds = tuple(BoxKind(name, meaning) for name, meaning in _MEANINGS.items() if name in there)
    about = (("prompt", _short(prompt)), ("definition", shown_definition(definition)))
    return Page("A text, token by token", tuple((name, text) for name, text in about if text), kinds, panes)


def shown_definition(text: str) -> str:
    """The beginning of a definition, in lines, as a page shows it."""
    return "\n".join(map(visible, (text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…").split("\n")))


def pane(title: str, facts: _Facts, steps: Sequence[TraceStep], dropped: Collection[int], size: int) -> Pane:
    """A text in boxes."""
    return Pane(title, facts, tuple(_box(step, n in dropped, size) for n, step in enumerate(steps)))


def summary(
    steps: Sequence[TraceStep], rollbacks: Sequence[TraceRollback], omitted: int, size: int
) -> tuple[tuple[str, str], ...]:
    """What is to be said of the whole."""
    count = len(steps)
    forced = sum(step.kind == "forced" for step in steps)
    steered = sum(step.kind == "steered" for step in steps)
    unasked = sum(not step.asked for step in steps)
    more = sum(step.asked and step.kind == "forced" for step in steps)
    lost = [step.entropy_lost for step in steps if step.entropy_lost is not None]
    constrained = [step.allowed / size for step in steps if step.kind != "unconstrained" and size]
    facts = [("tokens", f"{count:,}" + (f", and {omitted:,} that were not recorded" if omitted else ""))]
    if constrained:
        facts += [
            ("forced", _part(forced, count)),
            ("steered", _part(steered, count)),
            ("calls of the model saved", f"{unasked:,}" + (f" ({more:,} more could be)" if more else "")),
            ("vocabulary open, on average", _percent(sum(constrained) / len(constrained))),
        ]
    if lost:
        facts.append(("entropy lost to the mask", f"{sum(lost):.1f} bits"))
    if rollbacks:
        facts.append(("tokens taken back", f"{sum(each.tokens for each in rollbacks):,}"))
    facts.append(("time", _time(sum(step.seconds for step in steps))))
    return tuple(facts)


def in_terminal(facts: _Facts, steps: Sequence[TraceStep], dropped: Collection[int]) -> Group:
    """The text in colours, with the facts below it."""
    from rich.console import Group
    from rich.text import Text

    parts = [
        (named(step.data, step.name, step.token_id), "red strike" if n in dropped else _STYLES[step.kind])
        for n, step in enumerate(steps)
    ]
    return Group(Text.assemble(*parts), Text("; ".join(f"{name}: {value}" for name, value in facts), "dim"))


def named(data: bytes | None, name: str, token_id: int) -> str:
    """A token as it is to be seen: its text, its name, or its number."""
    return visible(data) if data else f"⟨{visible(name) or token_id}⟩"


def _box(step: TraceStep, dropped: bool, size: int) -> Box:
    return Box(
        text=named(step.data, step.name, step.token_id),
        kind=step.kind,
        facts=tuple(_facts(step, dropped, size)),
        choices=tuple(_choice(each, step) for each in step.candidates),
        dropped=dropped,
    )


def _facts(step: TraceStep, dropped: bool, size: int) -> list[tuple[str, str]]:
    facts = [("token", f"{named(step.data, step.name, step.token_id)} (id {step.token_id:,})")]
    what = _MEANINGS[step.kind].partition(" (")[0]
    facts.append(("kind", f"{step.kind}: {what}" + ("" if step.asked else "; the model was not asked")))
    if dropped:
        facts.append(("taken back", "later"))
    if step.path is not None:
        facts.append(("JSON path", visible(step.path) or "the whole value"))
    if step.kind != "unconstrained" and size:
        facts.append(("vocabulary open", f"{step.allowed:,} of {size:,} ids ({_percent(step.allowed / size)})"))
    if step.kept is not None and step.kind != "unconstrained":
        facts.append(("probability kept", _percent(step.kept)))
    if step.entropy_before is not None and step.entropy_after is not None:
        lost = step.entropy_before - step.entropy_after
        facts.append(("entropy", f"{step.entropy_before:.2f} → {step.entropy_after:.2f} bits, {lost:.2f} lost"))
    facts.append(("time", f"{_time(step.seconds)}, the mask {_time(step.mask_seconds)}"))
    return facts


def _choice(candidate: TraceCandidate, step: TraceStep) -> BoxChoice:
    is_chosen = candidate.token_id == step.token_id
    verdict = "chosen" if is_chosen else "allowed" if candidate.allowed else "not allowed"
    text = named(candidate.data, candidate.name, candidate.token_id)
    return BoxChoice(text, verdict, candidate.before, candidate.after)


def _short(text: str) -> str:
    return visible(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _part(count: int, of: int) -> str:
    return f"{count:,} ({_percent(count / of)})" if of else "0"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
