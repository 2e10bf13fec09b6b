"""Pages in a browser: what is on them, what clicks and keys do, and that nothing of a text runs or loads anything."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import structgen as sg
from pages.hostile import HOSTILE, hostile_correction, hostile_trace
from structgen.system.visible import visible
from structgen.traces.steps import TraceCandidate, TraceStep

webdriver = pytest.importorskip("selenium.webdriver")

from selenium.common.exceptions import NoAlertPresentException  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window, which notes every request."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
    if driver is None or chromium is None:
        pytest.skip("no browser is installed here")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-extensions",
        "--window-size=1100,900", "--host-resolver-rules=MAP * ~NOTFOUND",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Any:
    """Write a page, open it, and return the browser."""

    def shown(page: str) -> Any:
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        browser.get_log("performance")
        browser.get_log("browser")
        browser.get(path.as_uri())
        return browser

    return shown


def requests(browser: Any) -> tuple[set[str], set[str]]:
    """The addresses that the browser asked for since the page was opened, and those that the policy stopped."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    failed = [m["params"] for m in messages if m["method"] == "Network.loadingFailed"]
    stopped = {each["requestId"] for each in failed if each.get("blockedReason") == "csp"}
    urls = [(each["requestId"] in stopped, each["request"]["url"]) for each in sent]
    return {url for was_stopped, url in urls if not was_stopped}, {url for was_stopped, url in urls if was_stopped}


def selected(browser: Any, pane: int = 0) -> list[str]:
    script = "return [...document.querySelectorAll(`#text${arguments[0]} [aria-selected=true]`)].map(e => e.id)"
    found: list[str] = browser.execute_script(script, pane)
    return found


def plain_trace(count: int = 40, kind: Any = "free") -> sg.Trace:
    steps = []
    for n in range(count):
        other = TraceCandidate(n + 1, b"no", "", 0.25, 0.0, False)
        chosen = TraceCandidate(n, b"w%d " % n, "", 0.75, 1.0, True)
        seen = (0.1, 0.01, 0.75, 0.8, 0.0, (chosen, other))
        steps.append(TraceStep(n, b"w%d " % n, "", kind, True, 2, f"/item/{n}", *seen))
    return sg.Trace(100, tuple(steps), prompt="A prompt")


# -- what is on it ---------------------------------------------------------------------------------------


def test_what_is_on_the_page(show: Any) -> None:
    page = show(plain_trace().to_html())
    assert page.title == "A text, token by token"
    assert "A prompt" in page.find_element(By.TAG_NAME, "header").text
    boxes = page.find_elements(By.CSS_SELECTOR, "[role=option]")
    assert [box.get_property("textContent") for box in boxes] == [f"w{n} " for n in range(40)]
    details = page.find_element(By.ID, "details0")
    assert "JSON path\n/item/0" in details.text
    assert "2 of 100 ids (2 %)" in details.text
    rows = details.find_elements(By.CSS_SELECTOR, "tbody tr")
    assert [row.find_element(By.CLASS_NAME, "verdict").text for row in rows] == ["✔ chosen", "✘ not allowed"]
    assert [len(row.find_elements(By.TAG_NAME, "s")) for row in rows] == [0, 1]  # crossed out
    assert "75.0 %" in rows[0].text
    assert page.get_log("browser") == []


def test_clicks(show: Any) -> None:
    page = show(plain_trace().to_html())
    assert selected(page) == ["b0-0"]
    page.find_element(By.ID, "b0-17").click()
    assert selected(page) == ["b0-17"]
    assert page.find_element(By.ID, "step").get_property("value") == "18"
    assert page.find_element(By.ID, "at").text == "18 of 40"
    assert "/item/17" in page.find_element(By.ID, "details0").text


def test_keys(show: Any) -> None:
    page = show(plain_trace().to_html())
    text = page.find_element(By.ID, "text0")
    for key, expected in [
        (Keys.ARROW_RIGHT, 1), (Keys.ARROW_DOWN, 2), (Keys.ARROW_LEFT, 1), (Keys.ARROW_UP, 0), (Keys.ARROW_LEFT, 0),
        (Keys.END, 39), (Keys.ARROW_RIGHT, 39), (Keys.PAGE_UP, 19), (Keys.HOME, 0), (Keys.PAGE_DOWN, 20),
    ]:  # fmt: skip
        text.send_keys(key)
        assert selected(page) == [f"b0-{expected}"]
        assert text.get_attribute("aria-activedescendant") == f"b0-{expected}"


def test_the_slider(show: Any) -> None:
    page = show(plain_trace().to_html())
    slider = page.find_element(By.ID, "step")
    for key, expected in [(Keys.ARROW_RIGHT, 1), (Keys.END, 39), (Keys.ARROW_LEFT, 38), (Keys.HOME, 0)]:
        slider.send_keys(key)
        assert selected(page) == [f"b0-{expected}"]
        assert slider.get_attribute("aria-valuetext") == f"step {expected + 1} of 40"


def test_two_texts_side_by_side(show: Any) -> None:
    trace = plain_trace(10)
    page = show(sg.Trace(100, trace.steps, unconstrained=plain_trace(25, "unconstrained")).to_html())
    panes = page.find_elements(By.CLASS_NAME, "pane")
    assert len(panes) == 2
    assert abs(panes[0].rect["y"] - panes[1].rect["y"]) < 1  # beside one another
    page.find_element(By.ID, "b1-20").click()
    assert (selected(page, 0), selected(page, 1)) == (["b0-9"], ["b1-20"])
    page.find_element(By.ID, "b0-3").click()
    assert (selected(page, 0), selected(page, 1)) == (["b0-3"], ["b1-3"])


def test_what_a_screen_reader_is_told(show: Any) -> None:
    """By the browser's own tree for screen readers."""
    page = show(hostile_trace().to_html())
    nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    found = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
    roles = {role for role, _ in found}
    assert {"heading", "slider", "listbox", "option", "table", "rowheader", "columnheader", "meter"} <= roles
    for role, name in found:
        if role in ("heading", "slider", "listbox", "option", "region", "meter"):
            assert name.strip(), (role, name)
    names = [name for role, name in found if role == "option"]
    assert ", steered" in names[0]  # not by its colour alone
    assert "taken back" in names[2]
    live = page.find_element(By.ID, "details0").get_attribute("aria-live")
    assert live == "polite"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(show: Any, browser: Any, scheme: str) -> None:
    """Contrast of at least 4.5 to 1 (WCAG 2.2, 1.4.3) for the text of every kind of box, and of the page."""
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    kinds = ["forced", "steered", "free", "chosen", "unconstrained"]
    steps = tuple(TraceStep(1, b"x", "", kind, True, 1) for kind in kinds)  # type: ignore[arg-type]
    page = show(sg.Trace(9, steps, prompt="p").to_html())
    colours = page.execute_script(
        """const under = (e) => { const c = getComputedStyle(e).backgroundColor;
             return c === 'rgba(0, 0, 0, 0)' ? under(e.parentElement) : c; };
           const all = [...document.querySelectorAll('.box, dt, dd, h1, h2, th, .verdict, output')];
           return all.map(e => [getComputedStyle(e).color, under(e)]);"""
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert len(colours) > 20
    assert min(contrast(*pair) for pair in colours) >= 4.5
    grounds = {luminance(ground) for _, ground in colours}
    assert (max(grounds) < 0.3) == (scheme == "dark")


def luminance(colour: str) -> float:
    channels = [int(c) / 255 for c in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


# -- what must not happen --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["trace", "correction", "notebook"])
def test_nothing_of_a_text_runs_or_loads(show: Any, kind: str) -> None:
    pages = {
        "trace": hostile_trace().to_html(),
        "correction": hostile_correction().to_html(),
        "notebook": f"<!DOCTYPE html><meta charset=utf-8><title>notebook</title>{hostile_trace()._repr_html_()}",
    }
    page = show(pages[kind])
    address = page.current_url
    if kind == "notebook":
        page.switch_to.frame(page.find_element(By.TAG_NAME, "iframe"))
    last = int(page.find_element(By.ID, "step").get_attribute("max"))
    for number in range(last):
        page.execute_script(
            "const s = document.getElementById('step'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))",
            number + 1,
        )
        with pytest.raises(NoAlertPresentException):
            page.switch_to.alert  # noqa: B018
    assert page.execute_script("return document.scripts.length") == 2
    assert page.execute_script("return document.images.length") == 0
    page.switch_to.default_content()
    assert page.title in ("A text, token by token", "A corrected text", "notebook")
    asked, stopped = requests(page)
    assert (asked - {"about:srcdoc"}, stopped) == ({address}, set())
    assert page.get_log("browser") == []


def test_the_policy_stops_what_would_run(show: Any) -> None:
    """The second line of defence: were a text markup after all, nothing of it would run or be loaded."""
    broken = hostile_trace().to_html().replace("<main>", f"<main>{HOSTILE[0][9:]}{HOSTILE[1]}{HOSTILE[14]}", 1)
    page = show(broken)
    with pytest.raises(NoAlertPresentException):
        page.switch_to.alert  # noqa: B018
    assert page.title == "A text, token by token"
    asked, stopped = requests(page)
    assert {url for url in asked if not url.startswith("data:")} == {page.current_url}  # pictures of its own errors
    assert "http://127.0.0.1:9/x" in stopped
    assert "Content Security Policy" in " ".join(entry["message"] for entry in page.get_log("browser"))


def test_texts_are_seen_as_they_are(show: Any) -> None:
    page = show(hostile_trace().to_html())
    shown = [b.get_property("textContent") for b in page.find_elements(By.CSS_SELECTOR, "#text0 [role=option]")]
    assert shown[: len(HOSTILE)] == [visible(text.encode("utf-8", "surrogatepass")) for text in HOSTILE]


# -- long texts ------------------------------------------------------------------------------------------


def test_two_thousand_steps(show: Any) -> None:
    """All of them can be gone through; a step touches a bounded number of elements, whatever the length."""
    page = show(plain_trace(2000).to_html())
    changed = page.execute_script(
        """const seen = new Set(); let count = 0;
           const observer = new MutationObserver((list) => { count += list.length; });
           observer.observe(document.body, {subtree: true, childList: true, attributes: true});
           const slider = document.getElementById('step');
           const boxes = document.querySelectorAll('[role=option]').length;
           const begun = performance.now();
           for (let n = 1; n <= 2000; n++) {
             slider.value = n; slider.dispatchEvent(new Event('input'));
             seen.add(document.querySelector('[aria-selected=true]').id);
           }
           const took = performance.now() - begun;
           count += observer.takeRecords().length;
           return [seen.size, count / 2000, boxes, took / 2000,
                   document.querySelectorAll('[role=option]').length];"""
    )
    steps, changes, before, milliseconds, after = changed
    print(f"{milliseconds:.2f} ms of scripts and layout a step, {changes:.1f} changes")
    assert steps == before == after == 2000
    assert changes < 12
    assert selected(page) == ["b0-1999"]
    inside = """
        const frames = (n, then) => n ? requestAnimationFrame(() => frames(n - 1, then)) : then();
        const done = arguments[1];
        frames(5, () => {
          const box = document.getElementById(arguments[0]).getBoundingClientRect();
          const text = document.getElementById('text0').getBoundingClientRect();
          done(box.top >= text.top - 1 && box.bottom <= text.bottom + 1);
        });"""
    for key, box in ((Keys.HOME, "b0-0"), (Keys.END, "b0-1999"), (Keys.PAGE_UP, "b0-1979")):
        page.find_element(By.ID, "text0").send_keys(key)
        assert page.execute_async_script(inside, box)
