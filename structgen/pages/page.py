"""`Page`: what is shown, as plain values, and `render`, which makes HTML of it."""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from ..system.types import JsonValue
from ..system.visible import data_url

if TYPE_CHECKING:
    from jinja2 import Template

_FOLDER = Path(__file__).parent / "templates"

#: Boxes are laid out in groups, of which a browser leaves out those that are not on the screen: so many at least, to
#: the next end of a line, and so many at most.
_FEWEST, _MOST = 100, 200


@dataclass(frozen=True)
class BoxKind:
    """A kind of boxes.

    Parameters
    ----------
    name:
        A word, the class that its style has.
    meaning:
        A line of the legend.
    """

    name: str
    meaning: str


@dataclass(frozen=True)
class BoxChoice:
    """What could have stood in a box's place.

    Parameters
    ----------
    text:
        As it is to be seen.
    verdict:
        ``"chosen"``, ``"allowed"``, ``"not allowed"``.
    before, after:
        Its probabilities before and after the mask; None where they are not known.
    """

    text: str
    verdict: str
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True)
class Box:
    """A piece of a text.

    Parameters
    ----------
    text:
        As it is to be seen.
    kind:
        The name of a `BoxKind`.
    facts:
        What is told when it is selected: names and values.
    choices:
        What could have stood there.
    dropped:
        Whether it was taken back.
    """

    text: str
    kind: str
    facts: tuple[tuple[str, str], ...] = ()
    choices: tuple[BoxChoice, ...] = ()
    dropped: bool = False


@dataclass(frozen=True)
class Pane:
    """A text in boxes, with what is to be said of the whole."""

    title: str
    facts: tuple[tuple[str, str], ...]
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Picture:
    """A picture that is no script: SVG, and its text for those who don't see it."""

    svg: bytes
    text: str


@dataclass(frozen=True)
class Page:
    """One page.

    Parameters
    ----------
    title:
        The heading.
    facts:
        Names and values below it.
    kinds:
        The legend.
    panes:
        Texts, side by side. The slider moves in all of them.
    picture:
        What is shown in their place.
    text:
        Plain text behind all.
    """

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    kinds: tuple[BoxKind, ...] = ()
    panes: tuple[Pane, ...] = ()
    picture: Picture | None = None
    text: str = ""


def render(page: Page) -> str:
    """The page as HTML, in one piece that loads nothing."""
    style, script = _asset("page.css"), _asset("page.js") if page.panes else ""
    return _template().render(
        page=page,
        style=_raw(style),
        script=_raw(script),
        policy=_policy(style, script),
        groups=[list(_groups(pane.boxes)) for pane in page.panes],
        steps=max((len(pane.boxes) for pane in page.panes), default=0),
        data=_raw(script_json([[_details(box) for box in pane.boxes] for pane in page.panes])),
        picture="" if page.picture is None else data_url(page.picture.svg),
    )


def in_notebook(page: Page, height: int = 560) -> str:
    """The page in a frame of its own, which has no access to the notebook."""
    content = html.escape(render(page), quote=True)
    style = f"width:100%;height:{height}px;border:0"
    return f'<iframe sandbox="allow-scripts" srcdoc="{content}" style="{style}"></iframe>'


def script_json(value: JsonValue) -> str:
    """JSON for a ``script`` element: ASCII, without what could end the element or begin a comment in it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _details(box: Box) -> JsonValue:
    """What the script shows of a box when it is selected."""
    choices = [[each.text, each.verdict, each.before, each.after] for each in box.choices]
    return [box.facts, choices]


def _groups(boxes: Sequence[Box]) -> Iterator[list[tuple[int, Box]]]:
    group: list[tuple[int, Box]] = []
    for number, box in enumerate(boxes):
        group.append((number, box))
        if len(group) >= _MOST or (len(group) >= _FEWEST and box.text.endswith("\n")):
            yield group
            group = []
    if group:
        yield group


def _policy(style: str, script: str) -> str:
    """Nothing but this style, this script, and pictures that are in the page itself."""
    sources = " ".join(
        f"{name} 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}';"
        for name, text in (("style-src", style), ("script-src", script))
        if text
    )
    return f"default-src 'none'; {sources} img-src data:; base-uri 'none'; form-action 'none'"


def _raw(text: str) -> str:
    """Text of this package's own, which is not escaped again."""
    from markupsafe import Markup

    return Markup(text)


@cache
def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("page.html")
