"use strict";
// Menus that choose from a list or a table: an entry is shown if its data-… has what each menu says.
(() => {
  const SEVERAL = "|";
  for (const form of document.querySelectorAll(".choices")) {
    const items = [...document.querySelectorAll(form.dataset.items)];
    const status = form.querySelector("[role=status]");
    const has = (item, menu) => !menu.value || item.dataset[menu.name].split(SEVERAL).includes(menu.value);
    const apply = () => {
      const menus = [...form.elements];
      for (const item of items) item.classList.toggle("not-chosen", !menus.every((menu) => has(item, menu)));
      const left = items.filter((item) => !item.classList.contains("not-chosen")).length;
      status.textContent = `${left} of ${items.length}`;
    };
    form.addEventListener("change", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    apply();
  }
})();
