"use strict";
// Texts come by textContent alone; boxes are there from the beginning, and a step touches two of them.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("step");
  const at = document.getElementById("at");
  const FRAMES = 3;
  const panes = data.map((boxes, p) => ({
    boxes, p, text: document.getElementById(`text${p}`), details: document.getElementById(`details${p}`), box: null, frame: 0,
  })).filter((pane) => pane.boxes.length);

  const make = (name, text, parent) => {
    const element = document.createElement(name);
    if (text !== "") element.textContent = text;
    parent.append(element);
    return element;
  };

  const percent = (share) => share === null ? "" : `${(100 * share).toPrecision(3)} %`;

  function addProbability(share, name, row) {
    const cell = make("td", "", row);
    if (share === null) return;
    const meter = make("meter", "", cell);
    meter.value = share;
    meter.setAttribute("aria-label", name);
    cell.append(percent(share));
  }

  function addChoices(choices, parent) {
    const table = make("table", "", parent);
    make("caption", "Candidates", table);
    const known = choices.some((choice) => choice[2] !== null);
    const head = make("tr", "", make("thead", "", table));
    for (const name of known ? ["token", "model", "after the mask", ""] : ["candidate", ""]) {
      make("th", name, head).scope = "col";
    }
    const body = make("tbody", "", table);
    for (const [text, verdict, before, after] of choices) {
      const row = make("tr", "", body);
      const name = make("th", "", row);
      name.scope = "row";
      make(verdict === "not allowed" ? "s" : verdict === "chosen" ? "strong" : "span", text, name);
      if (known) {
        addProbability(before, "probability before the mask", row);
        addProbability(after, "probability after the mask", row);
      }
      make("td", verdict === "chosen" ? "✔ chosen" : verdict === "allowed" ? "○ allowed" : "✘ not allowed", row)
        .className = "verdict";
    }
  }

  // Groups that were not laid out yet get their heights when they come into view, and the box moves.
  function reveal(pane, frames) {
    const box = pane.box.getBoundingClientRect();
    const text = pane.text.getBoundingClientRect();
    if (box.top < text.top || box.bottom > text.bottom) {
      pane.text.scrollTop += box.top - text.top - pane.text.clientHeight / 2;
    }
    if (frames) pane.frame = requestAnimationFrame(() => reveal(pane, frames - 1));
  }

  function show(pane, number) {
    const n = Math.min(number, pane.boxes.length) - 1;
    const box = document.getElementById(`b${pane.p}-${n}`);
    if (box === pane.box) return;
    if (pane.box) pane.box.setAttribute("aria-selected", "false");
    pane.box = box;
    box.setAttribute("aria-selected", "true");
    pane.text.setAttribute("aria-activedescendant", box.id);
    cancelAnimationFrame(pane.frame);
    reveal(pane, FRAMES);
    const [facts, choices] = pane.boxes[n];
    const news = document.createDocumentFragment();
    make("h3", `Step ${n + 1}`, news);
    const list = make("dl", "", news);
    for (const [name, value] of facts) {
      make("dt", name, list);
      make("dd", value, list);
    }
    if (choices.length) addChoices(choices, news);
    pane.details.replaceChildren(news);
  }

  function go(number) {
    const n = Math.max(1, Math.min(number, Number(slider.max)));
    slider.value = n;
    at.value = `${n} of ${slider.max}`;
    slider.setAttribute("aria-valuetext", `step ${n} of ${slider.max}`);
    for (const pane of panes) show(pane, n);
  }

  const PAGE = 20;  // boxes
  const MOVES = {
    ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE, Home: -Infinity, End: Infinity,
  };
  for (const pane of panes) {
    pane.text.addEventListener("click", (event) => {
      const box = event.target.closest(".box");
      if (box) go(Number(box.id.split("-")[1]) + 1);
    });
    pane.text.addEventListener("keydown", (event) => {
      const by = MOVES[event.key];
      if (by === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      go(Number(slider.value) + by);
    });
  }
  slider.addEventListener("input", () => go(Number(slider.value)));
  go(1);
})();
