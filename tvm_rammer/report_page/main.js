/* Puts the page together, and connects pointer and keys. */

const data = JSON.parse(byId("data").textContent);
const loops = loopsOf(data);
let model = decodeLanes(data, new Set());
const chart = new Chart(data, model);
const root = document.documentElement;

function setScheme(scheme) {
  root.dataset.scheme = scheme;
  chart.recolour();
}

const dark = matchMedia("(prefers-color-scheme: dark)");
setScheme(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => {
  setScheme(dark.matches ? "dark" : "light");
  chart.draw();
});
byId("scheme").addEventListener("click", () => {
  setScheme(root.dataset.scheme === "dark" ? "light" : "dark");
  chart.draw();
});
let schemeOnScreen = "light";
window.addEventListener("beforeprint", () => {
  schemeOnScreen = root.dataset.scheme;
  setScheme("light");
  chart.drawNow();
});
window.addEventListener("afterprint", () => {
  setScheme(schemeOnScreen);
  chart.draw();
});

const f = data.facts;
byId("lanes").hidden = byId("kernels").hidden = !model.lanes.length;
byId("model").textContent = data.model;
byId("subtitle").textContent = [f.device, f.target, plural(f.veus, "vEU"), "policy " + f.policy].join(" · ");
byId("note").textContent = data.note;
byId("note").hidden = !data.note;
showFacts(data);
showContenders(data);
showStock(data);
const kernels = kernelTable(data);
kernels.onRow = (kernel) => {
  chart.kernel = kernel ? data.kernels.indexOf(kernel) : -1;
  chart.draw();
};
kernels.draw();
showLegend();
byId("footer").textContent =
  "Written by " + Object.entries(f.versions).map((pair) => pair.join(" ")).join(", ") +
  ". Times of runs are without launches; the chart has them as the cost model does (" + micros(f.launch_us) + " µs each).";

function showLegend() {
  const legend = byId("legend");
  const add = (text, background) => {
    const item = make("span"), mark = make("i");
    mark.style.background = background;
    item.append(mark, text);
    legend.append(item);
  };
  add("wait", "repeating-linear-gradient(135deg, var(--wait) 0 3px, var(--wait-line) 3px 4px)");
  const shares = model.panels.filter((p) => p.makespan > 0).map((p) => percent(p.inRTasks / p.makespan) + " " + p.name);
  add("critical path" + (shares.length ? ", in rTasks for " + shares.join(", ") : ""), "var(--path)");
  add("launch", "var(--launch)");
  const lanes = data.lanes;
  if (lanes.boxes < lanes.spans)
    legend.append(
      "Of " + grouped(lanes.spans, 0) + " runs and waits short neighbours are joined to " + grouped(lanes.boxes, 0) + " boxes.");
}

const canvas = chart.canvas;
canvas.setAttribute("aria-label", "Lanes of " + plural(f.veus, "vEU") + ": " + model.panels.map((p) => p.name).join(" and "));

canvas.addEventListener("wheel", (event) => {
  const whole = chart.to - chart.from > 0.999 * chart.total;
  if (whole && event.deltaY > 0) return; // the page scrolls on
  event.preventDefault();
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const shift = ((event.deltaX || event.deltaY) / chart.plot) * (chart.to - chart.from);
    chart.show(chart.from + shift, chart.to + shift);
  } else if (drag) return;
  else chart.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) * 0.003), chart.timeAt(event.offsetX));
  chart.choose(chart.boxAt(event.offsetX, event.offsetY));
}, { passive: false });

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  drag = { x: event.offsetX, from: chart.from, to: chart.to };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) {
    chart.pointer = [event.offsetX, event.offsetY];
    chart.choose(chart.boxAt(event.offsetX, event.offsetY));
    return;
  }
  const shift = ((drag.x - event.offsetX) / chart.plot) * (drag.to - drag.from);
  canvas.classList.add("dragged");
  chart.tip.hidden = true;
  chart.show(drag.from + shift, drag.to + shift);
});
for (const name of ["pointerup", "pointercancel"])
  canvas.addEventListener(name, () => {
    drag = null;
    canvas.classList.remove("dragged");
  });
canvas.addEventListener("pointerleave", () => chart.choose(null));
canvas.addEventListener("dblclick", (event) => {
  const box = chart.boxAt(event.offsetX, event.offsetY);
  if (!box) return;
  chart.choose(box);
  if (openLoop()) return;
  const panel = model.panels[box[0]], start = panel.start[box[1]][box[2]], end = panel.end[box[1]][box[2]];
  chart.show(start - 0.2 * (end - start), end + 0.2 * (end - start));
});
canvas.addEventListener("blur", () => chart.choose(null));

const COMMANDS = {
  ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowDown: () => changeLane(1), ArrowUp: () => changeLane(-1),
  "+": () => chart.zoom(0.6, middle()), "=": () => chart.zoom(0.6, middle()), "-": () => chart.zoom(1 / 0.6, middle()),
  "0": () => chart.show(0, chart.total), Enter: openLoop, c: nextOnPath, C: nextOnPath, Escape: () => chart.choose(null),
};
canvas.addEventListener("keydown", (event) => {
  const command = COMMANDS[event.key];
  if (!command || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  chart.pointer = null;
  command();
});

/* Which loops show their steps; all others are one block. */
let open = new Set();
function showOpen(numbers) {
  open = new Set(numbers);
  model = chart.model = decodeLanes(data, open);
  chart.choose(null);
  byId("loops").textContent = open.size < loops.length ? "Open loops" : "Close loops";
}
byId("loops").hidden = !loops.length;
byId("loops").addEventListener("click", () => showOpen(open.size < loops.length ? loops : []));

/* Opens the chosen box, if it is a loop; says whether it is. */
function openLoop() {
  const [e, v, n] = chart.chosen ?? [0, 0, 0];
  if (!chart.chosen || model.lanes[v].kind[n] !== LOOP) return false;
  const p = model.lanes[v].program[n];
  showOpen([...open, p]);
  chart.show(model.panels[e].begins[p], model.panels[e].ends[p]);
  return true;
}

function middle() {
  if (!chart.chosen) return (chart.from + chart.to) / 2;
  const [e, v, n] = chart.chosen, panel = model.panels[e];
  return (panel.start[v][n] + panel.end[v][n]) / 2;
}

function step(by) {
  const [e, v, n] = chart.chosen ?? [0, 0, firstAfter(model.panels[0].end[0], chart.from) - by];
  if (n + by >= 0 && n + by < model.lanes[v].kind.length) chart.choose([e, v, n + by], true);
}

function changeLane(by) {
  if (!chart.chosen) return step(1);
  const [e, v] = chart.chosen, time = middle(), count = model.lanes.length;
  for (let row = e * count + v + by; row >= 0 && row < model.panels.length * count; row += by) {
    const lane = row % count, panel = model.panels[Math.floor(row / count)];
    const n = Math.min(firstAfter(panel.end[lane], time), panel.end[lane].length - 1);
    if (n >= 0) return chart.choose([Math.floor(row / count), lane, n], true);
  }
}

function nextOnPath() {
  const e = chart.chosen ? chart.chosen[0] : 0, panel = model.panels[e];
  const runs = panel.path.filter(([v, n]) => model.lanes[v].kind[n] !== WAIT);
  const after = chart.chosen ? panel.end[chart.chosen[1]][chart.chosen[2]] - 1e-6 : -1;
  const next = runs.find(([v, n]) => panel.start[v][n] >= after) ?? runs[0];
  if (next) chart.choose([e, ...next], true);
}

byId("in").addEventListener("click", () => chart.zoom(0.6));
byId("out").addEventListener("click", () => chart.zoom(1 / 0.6));
byId("fit").addEventListener("click", () => chart.show(0, chart.total));
byId("path").addEventListener("change", (event) => {
  chart.showPath = event.target.checked;
  chart.draw();
});

const find = byId("find");
let places = [], place = -1;
find.addEventListener("input", () => {
  const wanted = find.value.trim().toLowerCase();
  if (wanted && open.size < loops.length) showOpen(loops);
  chart.matches = wanted
    ? new Set(data.operators.flatMap(([name], number) => (name.toLowerCase().includes(wanted) ? [number] : []))) : null;
  places = [];
  model.lanes.forEach((lane, v) => lane.kind.forEach((kind, n) => {
    if (chart.matches?.has(lane.operator[n]) && kind !== WAIT) places.push([0, v, n]);
  }));
  places.sort((p, q) => model.panels[0].start[p[1]][p[2]] - model.panels[0].start[q[1]][q[2]]);
  place = -1;
  byId("found").textContent = wanted ? plural(chart.matches.size, "operator") : "";
  chart.draw();
});
find.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !places.length) return;
  place = (place + (event.shiftKey ? places.length - 1 : 1)) % places.length;
  chart.pointer = null;
  chart.choose(places[place], true);
});

new ResizeObserver(() => chart.resize()).observe(byId("stage"));
chart.resize();
chart.drawNow();
root.dataset.drawn = chart.drawn;
