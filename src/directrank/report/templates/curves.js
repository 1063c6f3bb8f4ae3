"use strict";
(() => {
  const form = document.getElementById("controls");
  const NAMES = { alpha: "α, steepness", alpha_b: "α of the backward pass", tau: "τ, temperature", sigma: "σ", margin: "margin" };
  const chosen = () => DATA.losses.find((one) => one.name === form.loss.value);

  const draw = (id, curves, withZero) => {
    const svg = document.getElementById(id);
    const [left, right] = [DATA.scores[0], DATA.scores.at(-1)];
    const x = (score) => (100 * (score - left)) / (right - left);
    const part = (tag, attributes) => {
      const element = document.createElementNS(svg.namespaceURI, tag);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      return element;
    };
    const parts = DATA.others.map((score) => part("line", { class: "other", x1: x(score), x2: x(score), y1: 0, y2: 100 }));
    for (const [values, name] of curves) {
      const low = Math.min(...values, withZero ? 0 : Infinity);
      const high = Math.max(...values, withZero ? 0 : -Infinity);
      const y = (value) => 96 - (92 * (value - low)) / (high - low || 1);
      if (withZero) parts.push(part("line", { class: "zero", x1: 0, x2: 100, y1: y(0), y2: y(0) }));
      const points = values.map((value, place) => `${x(DATA.scores[place]).toFixed(2)},${y(value).toFixed(2)}`);
      parts.push(part("polyline", { class: name, points: points.join(" ") }));
    }
    svg.replaceChildren(...parts);
  };

  const show = () => {
    const { name, setting, values, loss, gradient } = chosen();
    const place = Number(form.value.value);
    document.getElementById("setting").textContent = NAMES[setting];
    form.value.ariaValueText = `${setting} = ${values[place]}`;
    const range = (numbers) => `${Math.min(...numbers).toPrecision(3)} to ${Math.max(...numbers).toPrecision(3)}`.replaceAll("-", "\u2212");
    document.getElementById("said").textContent = `${name}(${setting}=${values[place]}): the loss goes from ${range(loss[place])}, its derivative from ${range(gradient[place])}.`;
    draw("loss", [[DATA.metric, "exact"], [loss[place], "own"]], false);
    draw("gradient", [[gradient[place], "own"]], true);
    history.replaceState(null, "", `#${new URLSearchParams({ loss: name, [setting]: values[place] })}`);
  };

  const start = () => {
    const { setting, values } = chosen();
    form.value.max = values.length - 1;
    const wanted = Number(new URLSearchParams(location.hash.slice(1)).get(setting));
    form.value.value = values.includes(wanted) ? values.indexOf(wanted) : Math.floor(values.length / 2);
    show();
  };

  for (const { name } of DATA.losses) form.loss.append(new Option(name, name));
  const asked = new URLSearchParams(location.hash.slice(1)).get("loss");
  if (DATA.losses.some((one) => one.name === asked)) form.loss.value = asked;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.loss.addEventListener("change", start);
  form.value.addEventListener("input", show);
  start();
})();
