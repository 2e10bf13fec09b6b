"""The notebooks: they run, and their committed outputs are those that they have.

``jupyter nbconvert --to notebook --execute --inplace docs/notebooks/*.ipynb`` writes the outputs anew; the picture of
an automaton needs Graphviz.
"""

from __future__ import annotations

import ast
import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORRECTING = ROOT / "examples/correcting.ipynb"
MASK = ROOT / "docs/notebooks/what_a_mask_is.ipynb"

#: Bytes of a notebook at most, with its outputs.
LARGEST = 200_000


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    """The cells of a notebook that are ``"code"`` or ``"markdown"``."""
    return [each for each in json.loads(path.read_text("utf-8"))["cells"] if each["cell_type"] == kind]


def run(path: Path) -> list[tuple[str, object]]:
    """Run the cells in order; for each its printed text, and the value of its last expression."""
    names: dict[str, object] = {"__name__": "__main__"}
    shown = []
    for cell in cells(path, "code"):
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        value = None
        with redirect_stdout(StringIO()) as printed:
            exec(compile(ast.Module(body, []), path.name, "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
        shown.append((printed.getvalue(), value))
    return shown


def recorded(cell: dict[str, Any]) -> tuple[str, str, bool]:
    """The committed outputs of a cell: its printed text, the repr of its value, and whether that is shown as HTML."""
    printed, value, is_page = "", "None", False
    for output in cell["outputs"]:
        printed += "".join(output.get("text", ""))
        if data := output.get("data"):
            value, is_page = "".join(data["text/plain"]), "text/html" in data
    return printed, value, is_page


def test_corrections_show_themselves() -> None:
    for package in ("torch", "transformers", "tokenizers"):
        pytest.importorskip(package)
    pages = [value._repr_html_() for _, value in run(CORRECTING) if hasattr(value, "_repr_html_")]
    assert len(pages) == 2
    assert all("was dropped (struck out)" in page for page in pages)
    assert "adimn" in pages[0]


def test_what_a_mask_is_shows_its_outputs() -> None:
    pytest.importorskip("mistral_common")
    pages = 0
    for (printed, value), cell in zip(run(MASK), cells(MASK, "code"), strict=True):
        text, shown, is_page = recorded(cell)
        assert printed == text
        assert hasattr(value, "_repr_html_") is is_page
        assert is_page or repr(value) == shown
        pages += is_page
    assert pages == 2


@pytest.mark.parametrize("path", [CORRECTING, MASK], ids=lambda path: path.name)
def test_a_notebook_is_small_and_its_links_lead_somewhere(path: Path) -> None:
    assert path.stat().st_size <= LARGEST
    text = "".join("".join(cell["source"]) for cell in cells(path, "markdown"))
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    assert links
    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []
