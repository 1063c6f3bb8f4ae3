"use strict";
// Code and formulas that scroll sideways are stops of the Tab key, and only then; tables.js does
// the same for tables.
(() => {
  const boxes = new ResizeObserver((entries) => {
    for (const { target: box } of entries) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  });
  for (const box of document.querySelectorAll("pre, div.math")) boxes.observe(box);
})();
