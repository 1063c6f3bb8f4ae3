"use strict";
// Tables that can be sorted, filtered and scrolled with the keyboard. To be loaded at the end of a
// page or with `defer`, together with tables.css; the page says all without it.
//
// Every table with a head of one row gets a button in each head cell: it sorts up, then down, then
// as the page has it. A long table gets a filter. What is sorted and filtered are rows or, in a
// table with several bodies, bodies, by the first row of each. `data-value` of a cell is what it
// is sorted by, where that is not its text.
(() => {
  const FEWEST_TO_SORT = 3;
  const FEWEST_TO_FILTER = 30;

  const itemsOf = (table) => (table.tBodies.length > 1 ? [...table.tBodies] : [...table.tBodies[0].rows]);
  const firstRow = (item) => (item.rows ? item.rows[0] : item);
  const nameOf = (table) => table.caption?.textContent.trim() ?? "";
  const boxOf = (table) => (table.matches("div > table:only-child") ? table.parentElement : null);

  // The number that a text begins with: "< 0.0001", "−0.31 ± 0.02", "1 200", but no date or power.
  const numberOf = (text) => {
    const found = text
      .replace(/(?<=\d)[\s,](?=\d{3}(?!\d))/g, "")
      .match(/^[<>≥≤~≈\s]*([+−–-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?![\p{L}\p{N}.−-])/iu);
    return found ? Number(found[1].replace(/^[−–]/, "-")) : NaN;
  };

  // By number where most cells have one; cells without, and empty ones, come last either way.
  const sorted = (items, column, direction) => {
    const keyed = items.map((item) => {
      const cell = firstRow(item).cells[column];
      const text = cell.dataset.value ?? cell.textContent.trim();
      return { item, text, number: numberOf(text), empty: !/[\p{L}\p{N}]/u.test(text) };
    });
    const filled = keyed.filter((key) => !key.empty);
    const numeric = 2 * filled.filter((key) => !Number.isNaN(key.number)).length > filled.length;
    const last = (key) => (numeric ? Number.isNaN(key.number) : key.empty);
    const compare = (a, b) => (numeric ? a.number - b.number : a.text.localeCompare(b.text, "en", { numeric: true }));
    return keyed
      .sort((a, b) => last(a) - last(b) || (last(a) ? 0 : direction * compare(a, b)))
      .map((key) => key.item);
  };

  const makeSortable = (table, items) => {
    const head = table.tHead.rows[0];
    const parent = items[0].parentElement;
    const show = (order) => parent.append(...order);
    for (const cell of head.querySelectorAll("th")) {
      if (!cell.textContent.trim() || cell.querySelector("a, button")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "table-sort";
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => {
        const before = cell.getAttribute("aria-sort");
        for (const other of head.cells) other.removeAttribute("aria-sort");
        if (before === "descending") return show(items);
        cell.setAttribute("aria-sort", before ? "descending" : "ascending");
        show(sorted(items, cell.cellIndex, before ? -1 : 1));
      });
    }
  };

  // Whether a text has every word of a query, as the beginning of one of its own at least; words
  // are letters and digits, so that "neural_ndcg" is two. Also for the page's other scripts.
  const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}@.]+/gu, " ").trim();
  window.hasWords = (text, query) => {
    const said = ` ${plain(text)}`;
    return plain(query).split(" ").every((word) => said.includes(` ${word}`));
  };

  const makeFilterable = (table, items) => {
    const label = document.createElement("label");
    const field = document.createElement("input");
    const status = document.createElement("span");
    label.className = "table-filter";
    label.append("Show the rows with these words ", field, " ", status);
    Object.assign(field, { type: "search", autocomplete: "off", spellcheck: false });
    if (nameOf(table)) field.ariaDescription = nameOf(table);
    status.setAttribute("role", "status");
    (boxOf(table) ?? table).before(label);

    const apply = () => {
      for (const item of items) item.hidden = !hasWords(firstRow(item).textContent, field.value);
      const shown = items.filter((item) => !item.hidden).length;
      status.textContent = field.value.trim() ? `${shown} of ${items.length}` : "";
    };
    field.addEventListener("input", apply);
    // A link to a row that is filtered out shows it.
    addEventListener("hashchange", () => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (!target || !table.contains(target) || !target.closest("[hidden]")) return;
      field.value = "";
      apply();
      target.scrollIntoView();
    });
  };

  // A box that scrolls sideways is a stop of the Tab key, with a name, and only then.
  const boxes = new ResizeObserver((entries) => {
    for (const { target: box } of entries) {
      const scrolls = box.scrollWidth > box.clientWidth;
      const attributes = { tabindex: "0", role: "group", "aria-label": nameOf(box.firstElementChild) || "Table" };
      for (const [name, value] of Object.entries(attributes)) {
        if (scrolls) box.setAttribute(name, value);
        else box.removeAttribute(name);
      }
    }
  });

  for (const table of document.querySelectorAll("table")) {
    if (boxOf(table)) boxes.observe(boxOf(table));
    if (table.tHead?.rows.length !== 1 || !table.tBodies.length) continue;
    const items = itemsOf(table);
    const columns = table.tHead.rows[0].cells.length;
    if (!items.every((item) => firstRow(item)?.cells.length === columns)) continue;
    if (items.length >= FEWEST_TO_SORT) makeSortable(table, items);
    if (items.length >= FEWEST_TO_FILTER) makeFilterable(table, items);
  }
})();
