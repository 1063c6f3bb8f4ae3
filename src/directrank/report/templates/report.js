// The page can be read without this script: it adds folding, search and the place in the contents.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);
  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  document.documentElement.classList.add("scripted");

  // The button of a row opens the details in the row below it.
  for (const button of all("button.open")) {
    const details = document.getElementById(button.getAttribute("aria-controls"));
    button.hidden = false;
    button.addEventListener("click", () => { details.open = !details.open; });
    details.addEventListener("toggle", () => button.setAttribute("aria-expanded", details.open));
  }

  // A link to a part that is folded opens it, also when it is followed again.
  const openTarget = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let part = target; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") part.open = true;
    }
    (target.closest("tbody") ?? target).scrollIntoView();
  };
  addEventListener("hashchange", openTarget);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (link?.hash && link.hash === location.hash) openTarget();
  });

  // Search: kinds in this order, and in each the titles that have the words first.
  const KINDS = { claim: "Claims", figure: "Figures", table: "Tables", values: "Values", run: "Runs" };
  const MOST = 12;
  const form = one(".search"), field = one("#search"), found = one(".found"), status = one("[role=status]", form);
  form.hidden = false;
  const entryOf = (element) => {
    const id = element.id || one("details", element).id;
    const title = element.dataset.title ?? one("h3", element).textContent;
    const shown = [...element.children].filter((part) => !part.matches(".made, .more"));
    return { kind: element.dataset.kind, id, title, text: [id, title, ...shown.map((part) => part.textContent)].join(" ") };
  };
  let index = null;
  const search = () => {
    index ??= all("[data-kind]").map(entryOf);
    const query = field.value.trim();
    const hits = query ? index.filter((entry) => hasWords(entry.text, query)) : [];
    found.replaceChildren();
    for (const [kind, heading] of Object.entries(KINDS)) {
      const some = hits.filter((hit) => hit.kind === kind);
      if (!some.length) continue;
      const titled = (hit) => hasWords(hit.title, query);
      const best = [...some.filter(titled), ...some.filter((hit) => !titled(hit))].slice(0, MOST);
      const links = best.map((hit) => make("li", {}, make("a", { href: `#${hit.id}`, textContent: hit.title })));
      if (some.length > MOST) links.push(make("li", { textContent: `and ${some.length - MOST} more` }));
      found.append(make("p", { textContent: `${heading}: ${some.length}` }), make("ul", {}, ...links));
    }
    const none = "Nothing has all of these words.";
    if (query && !hits.length) found.append(make("p", { textContent: none }));
    found.hidden = !query;
    status.textContent = query ? (hits.length ? `${hits.length} found` : none) : "";
  };
  const leave = () => { found.hidden = true; };
  field.addEventListener("input", search);
  field.addEventListener("focus", search);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    one("a", found)?.click();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    field.focus();
    leave();
  });
  form.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !form.contains(event.relatedTarget)) leave();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest(".found a") || !form.contains(event.target)) leave();
  });

  // Contents: folded where they would fill the window; the part in view is marked, its list open.
  const contents = one(".contents"), narrow = matchMedia("(max-width: 64rem)");
  const fold = () => { contents.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  contents.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest("a")) contents.open = false;
  });
  const links = new Map(all("a", contents).map((link) => [link.hash.slice(1), link]));
  let current = null;
  const mark = (link) => {
    current?.removeAttribute("aria-current");
    const before = current?.closest("details"), now = link.closest("details");
    if (before !== now && before && before !== contents) before.open = false;
    now.open ||= now !== contents;
    current = link;
    link.setAttribute("aria-current", "location");
    const nav = contents.parentElement, place = link.getBoundingClientRect(), frame = nav.getBoundingClientRect();
    if (place.top < frame.top || place.bottom > frame.bottom) nav.scrollTop += place.top - frame.top - frame.height / 2;
  };
  const seen = new IntersectionObserver((entries) => {
    const entered = entries.filter((entry) => entry.isIntersecting).at(-1);
    if (entered) mark(links.get(entered.target.id));
  }, { rootMargin: "-20% 0px -75%" });
  for (const id of links.keys()) seen.observe(document.getElementById(id));

  openTarget();
})();
