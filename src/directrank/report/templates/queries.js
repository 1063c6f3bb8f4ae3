"use strict";
(() => {
  const form = document.getElementById("controls");
  const of = (id) => document.getElementById(id);
  const digits = (value) => value.toFixed(3).replace("-", "\u2212");
  const number = (field) => Number(form[field].value);
  const BINS = 41;

  const list = (side, other) => {
    const query = DATA.queries[number("query")];
    const model = number(side);
    const before = query.orders[number(other)];
    of(`${side}-name`).textContent = `${DATA.models[model]}: NDCG@10 ${digits(query.values[model])}`;
    of(side).replaceChildren(...query.orders[model].map((movie, place) => {
      const item = document.createElement("li");
      const [title, year] = query.movies[movie];
      const relevant = query.relevant.includes(movie);
      if (relevant) item.className = "relevant";
      item.append(`${relevant ? "● " : ""}${title}`);
      const note = document.createElement("small");
      const there = before.indexOf(movie) + 1;
      note.textContent = `${year ? ` (${year})` : ""}${there === place + 1 ? "" : `, no. ${there} on the other side`}`;
      item.append(note);
      return item;
    }));
  };

  const spread = () => {
    const [left, right] = [DATA.values[number("left")], DATA.values[number("right")]];
    const gaps = right.map((value, query) => value - left[query]);
    const differing = gaps.filter((gap) => gap !== 0);
    const counts = new Array(BINS).fill(0);
    for (const gap of differing) counts[Math.min(BINS - 1, Math.floor(((gap + 1) / 2) * BINS))] += 1;
    const most = Math.max(...counts, 1);
    const svg = of("spread");
    const part = (tag, attributes) => {
      const element = document.createElementNS(svg.namespaceURI, tag);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      return element;
    };
    svg.replaceChildren(
      ...counts.map((count, bin) => part("rect", { x: (100 * bin) / BINS, width: 90 / BINS, y: 100 - (96 * count) / most, height: (96 * count) / most })),
      part("line", { class: "zero", x1: 50, x2: 50, y1: 0, y2: 100 }),
    );
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
    of("spread-said").textContent = `NDCG@10 of the right model less that of the left one, over the ${differing.length} of ${gaps.length} test queries on which they differ. The right one is better on ${gaps.filter((gap) => gap > 0).length} and worse on ${gaps.filter((gap) => gap < 0).length}; the mean difference over all is ${digits(mean)}.`;
  };

  const show = () => {
    const query = DATA.queries[number("query")];
    list("left", "right");
    list("right", "left");
    spread();
    of("said").textContent = `“${query.text}” has ${query.movies.length} movies, of which ${query.relevant.length} answer it.`;
    history.replaceState(null, "", `#${new URLSearchParams({ left: form.left.selectedOptions[0].text, right: form.right.selectedOptions[0].text, query: query.text })}`);
  };

  DATA.models.forEach((name, place) => {
    form.left.append(new Option(name, place));
    form.right.append(new Option(name, place));
  });
  DATA.queries.forEach(({ text }, place) => form.query.append(new Option(text, place)));
  const asked = new URLSearchParams(location.hash.slice(1));
  const find = (field, fallback, names) => {
    const place = names.indexOf(asked.get(field));
    form[field].value = place < 0 ? fallback : place;
  };
  find("left", 0, DATA.models);
  find("right", 1, DATA.models);
  find("query", DATA.first, DATA.queries.map(({ text }) => text));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", show);
  show();
})();
