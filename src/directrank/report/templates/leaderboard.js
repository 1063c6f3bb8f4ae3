"use strict";
// Filters, places and the comparison of two methods. What is chosen is in the address.
(() => {
  const form = document.getElementById("filters");
  const body = document.querySelector("tbody");
  const panel = document.getElementById("pair");
  const said = document.getElementById("said");
  const FIELDS = ["collection", "metric", "scorer", "family", "name"];
  // Half widths below the best mean at which the axis of intervals ends.
  const SPAN = 5;
  const MINUS = "\u2212";
  let ticked = [];

  const number = (value, digits = 3) => value.toFixed(digits).replace("-", MINUS);
  const signed = (value) => (value > 0 ? "+" : "") + number(value, 4);
  const chance = (p) => (p < 0.0001 ? "< 0.0001" : `= ${p.toFixed(4)}`);
  const label = (method) => (method.scorer === "trees" || method.scorer === "untrained" ? method.name : `${method.name}, ${method.scorer}`);
  const collection = () => COLLECTIONS.find((each) => each.name === form.collection.value);
  const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

  const text = (tag, content, name = "") => {
    const element = document.createElement(tag);
    element.textContent = content;
    element.className = name;
    return element;
  };

  const toAddress = () => {
    const chosen = new URLSearchParams();
    for (const field of FIELDS) if (form[field].value) chosen.set(field, form[field].value);
    const methods = collection().methods;
    if (ticked.length) chosen.set("compare", ticked.map((one) => label(methods[one])).join("|"));
    history.replaceState(null, "", `#${chosen}`);
  };

  const fromAddress = () => {
    const chosen = new URLSearchParams(location.hash.slice(1));
    for (const field of FIELDS) {
      const value = chosen.get(field) ?? (field === "metric" ? "NDCG@10" : field === "collection" ? COLLECTIONS.at(-1).name : "");
      form[field].value = value;
      if (form[field].selectedIndex === -1) form[field].selectedIndex = 0;
    }
    const names = (chosen.get("compare") ?? "").split("|");
    const methods = collection().methods;
    ticked = methods.flatMap((method, place) => (names.includes(label(method)) ? [place] : [])).slice(0, 2);
  };

  // A line for the interval, a dot for the mean, and the band of what is not ranked.
  const bar = ([mean, half], scale, best, distance) => {
    const at = (value) => `${(100 * (value - scale[0])) / (scale[1] - scale[0])}%`;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("aria-hidden", "true");
    const part = (tag, attributes) => {
      const element = document.createElementNS(svg.namespaceURI, tag);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      svg.append(element);
    };
    if (distance) {
      const width = `${(100 * distance) / (scale[1] - scale[0])}%`;
      part("rect", { class: "band", x: at(best - distance), width, y: 0, height: "100%" });
    }
    if (mean < scale[0]) part("path", { class: "dot", d: "M9 6 2 12 9 18Z" });
    part("line", { x1: at(mean - half), x2: at(mean + half), y1: "50%", y2: "50%" });
    part("circle", { class: "dot", cx: at(mean), cy: "50%", r: 3.5 });
    return svg;
  };

  const tick = (place, on) => {
    ticked = on ? [...ticked, place].slice(-2) : ticked.filter((one) => one !== place);
    for (const box of body.querySelectorAll("input")) box.checked = ticked.includes(Number(box.value));
    compare();
    toAddress();
  };

  const compare = () => {
    panel.hidden = ticked.length !== 2;
    if (panel.hidden) return;
    const { methods, pairs, verdicts, distance } = collection();
    const found = pairs.find(([a, b]) => ticked.includes(a) && ticked.includes(b));
    let [first, second, difference, half, p, equivalent, verdict, tied] = found;
    if (difference < 0) [first, second, difference] = [second, first, -difference];
    const differs = !tied;
    const names = `${label(methods[first])} and ${label(methods[second])}`;
    const conclusion = differs
      ? `${label(methods[first])} is better than ${label(methods[second])}.`
      : p < 0.05
        ? `${names} differ by no more than methods that hardly differ (${number(distance, 4)}): they are tied.`
        : verdicts[verdict] === "equivalent"
          ? `${names} are equivalent: the difference is shown to be smaller than the margin.`
          : `These queries and trainings do not tell ${names} apart.`;
    panel.replaceChildren(
      text("p", conclusion, ""),
      text("p", `Difference in NDCG@10: ${signed(difference)} [${signed(difference - half)}, ${signed(difference + half)}], an interval of this pair alone; p ${chance(p)} for a difference and p ${chance(equivalent)} for equivalence, both corrected over all pairs.`),
    );
  };

  // Not every collection has every scorer: what a filter would leave empty cannot be chosen.
  const offer = (filter, values) => {
    for (const option of filter.options) option.disabled = option.value !== "" && !values.has(option.value);
    if (filter.selectedOptions[0].disabled) filter.value = "";
  };

  const show = () => {
    const { methods, distance, queries, origin } = collection();
    for (const name of ["scorer", "family"]) offer(form[name], new Set(methods.map((one) => one[name])));
    const metric = form.metric.value;
    document.getElementById("metric-head").textContent = metric;
    const wanted = words(form.name.value);
    const kept = methods
      .map((method, place) => ({ ...method, place, value: method.values[metric] }))
      .filter((one) => !form.scorer.value || one.scorer === form.scorer.value)
      .filter((one) => !form.family.value || one.family === form.family.value)
      .filter((one) => wanted.every((word) => label(one).toLowerCase().includes(word)))
      .sort((a, b) => b.value[0] - a.value[0]);
    const [best, half] = kept.length ? kept[0].value : [0, 0];
    // Some methods fail: the axis ends where the others can still be seen.
    const least = Math.min(...kept.map(({ value }) => value[0] - value[1]));
    const scale = [Math.max(least, best - SPAN * half), Math.max(...kept.map(({ value }) => value[0] + value[1]))];
    const isPrimary = metric === "NDCG@10";
    const among = methods.filter((one) => one.best).length;
    said.textContent = `${kept.length} of ${methods.length} methods, ${queries.toLocaleString("en")} test queries (${origin}). ${among} of all methods may be the best: which of them is first below is chance.`;
    const rows = [];
    for (const one of kept) {
      const row = document.createElement("tr");
      const box = document.createElement("input");
      Object.assign(box, { type: "checkbox", value: one.place, checked: ticked.includes(one.place), ariaLabel: `Compare ${label(one)}` });
      box.addEventListener("change", () => tick(one.place, box.checked));
      const cell = document.createElement("td");
      cell.append(box);
      const [from, to] = one.places;
      const name = text("td", one.name);
      name.append(" ", text("small", `${one.scorer}${one.best ? "; may be the best" : ""}`));
      const bars = document.createElement("td");
      bars.className = "bars";
      bars.append(bar(one.value, scale, best, isPrimary ? distance : 0));
      row.append(cell, text("td", from === to ? from : `${from}–${to}`, "place"), name, text("td", `${number(one.value[0])} ± ${number(one.value[1])}`, "value"), bars);
      rows.push(row);
    }
    body.replaceChildren(...rows);
    compare();
    toAddress();
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    if (event.target.name === "collection") ticked = [];
    show();
  });
  addEventListener("hashchange", () => { fromAddress(); show(); });
  fromAddress();
  show();
})();
