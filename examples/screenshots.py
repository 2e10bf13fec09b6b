"""``make screenshots``: the pictures of pages that the README shows, light and dark, made by a browser.

Chromium and chromedriver are looked for on the path; the index's page wants Graphviz's ``dot``.
"""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import structgen as sg

ROOT = Path(__file__).resolve().parents[1]

#: Where the pictures are, pixels of a page's width, and colours of a picture.
IMAGES, WIDTH, COLOURS = ROOT / "docs" / "images", 960, 64

_SQL = 'start: "SELECT" NAME "FROM" NAME ["WHERE" NAME ">" /[0-9]+/] ";"\nNAME: /[a-z]+/\n%ignore " "'
_VERSION = r"v[0-9]+(\.[0-9]+){1,2}(-(alpha|beta|rc)[0-9]?)?|latest"


def trace_page(path: Path) -> str:
    """A trace; selected is the first token that the mask steered."""
    trace: sg.Trace = runpy.run_path(str(ROOT / "examples" / "trace.py"))["written"]()
    trace.save_html(path)
    return next(f"b0-{number}" for number, step in enumerate(trace.steps) if step.kind == "steered")


def index_page(path: Path) -> str:
    """The automaton of a regex."""
    index = path.with_suffix(".sgx")
    sg.compile(sg.Regex(_VERSION), sg.Vocabulary.bytewise()).save(index)
    subprocess.run([sys.executable, "-m", "structgen.cli", "view", str(index), "-o", str(path)], check=True)
    return ""


def correction_page(path: Path) -> str:
    """A mistake in a query, mended; selected is what was dropped."""
    query, grammar = "SELECT name FROM users WHRE age > 30;", sg.Grammar(_SQL, lexer="basic")
    sg.correct(lambda _: query, grammar, "Users over 30, in SQL: ").save_html(path)
    return "b0-1"


PAGES: dict[str, Callable[[Path], str]] = {"trace": trace_page, "index": index_page, "correction": correction_page}


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def picture(driver: Any, page: Path, selected: str, scheme: str) -> bytes:
    """A PNG of a whole page, in few colours."""
    from PIL import Image

    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    driver.set_window_size(WIDTH, 400)
    driver.get(page.as_uri())
    if selected:
        driver.find_element("id", selected).click()
    height = driver.execute_script("return document.documentElement.scrollHeight")
    driver.set_window_size(WIDTH, height + driver.execute_script("return window.outerHeight - window.innerHeight"))
    driver.execute_script("scrollTo(0, 0)")
    image = Image.open(BytesIO(driver.get_screenshot_as_png())).convert("RGB").quantize(COLOURS)
    data = BytesIO()
    image.save(data, "PNG", optimize=True)
    return data.getvalue()


def main() -> None:
    """Make them all."""
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, browser() as driver:
        for name, made in PAGES.items():
            page = Path(folder) / f"{name}.html"
            selected = made(page)
            for scheme in ("light", "dark"):
                data = picture(driver, page, selected, scheme)
                (IMAGES / f"{name}-{scheme}.png").write_bytes(data)
                print(f"docs/images/{name}-{scheme}.png, {len(data):,} bytes")


if __name__ == "__main__":
    main()
