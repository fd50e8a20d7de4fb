/* The figures above the lanes, and the tables below them. */

const FIRST_ROWS = 40;

function showFacts(data) {
  const f = data.facts, list = byId("facts");
  const add = (label, [number, unit], aside) => {
    const box = make("div"), value = make("dd", number + (unit ? " " : ""));
    if (unit) value.append(make("span", unit, "unit"));
    box.append(make("dt", label), value, make("dd", aside, "aside"));
    list.append(box);
  };
  if (f.measured_us !== null) add("Measured", duration(f.measured_us), "median of the faster runs");
  const ratio = f.measured_us === null || !f.planned_us ? "" : "measured is " + grouped(f.measured_us / f.planned_us, 2) + " times that";
  add("Predicted", duration(f.planned_us), ratio || plural(f.programs, "rProgram"));
  add("Lower bound", duration(f.bound_us), "of every plan of these kernels");
  add("vEUs", [grouped(f.veus, 0), ""], percent(f.busy) + " busy" + (f.measured_us === null ? ", predicted" : ""));
  add("rOperators", [grouped(f.roperators, 0), ""], operatorsAside(f));
  add("rTasks", [grouped(f.rtasks, 0), ""], plural(f.waits, "wait") + " between them");
  add("Launches", [grouped(f.launches, 0), ""], "operator by operator: " + grouped(f.stock_launches, 0));
}

function operatorsAside(f) {
  if (f.views) return plural(f.views, "copy", "copies") + " left out: their data is made in place";
  return f.operators ? plural(f.operators, "operator") + " before fusion" : "operators after fusion";
}

/* A table from columns { title, key, text, cell, first }; a click on a title sorts by it. */
class Table {
  constructor(element, columns, rows, most = Infinity) {
    Object.assign(this, { element, columns, rows, most, by: -1, descending: true, onRow: null, chosen: null });
    this.order = rows.slice();
  }

  draw() {
    const head = make("tr");
    this.columns.forEach((column, n) => {
      const cell = make("th", undefined, column.text ? "text" : ""), button = make("button", column.title);
      button.type = "button";
      button.addEventListener("click", () => this.sort(n));
      if (column.help) button.title = column.help;
      if (n === this.by) cell.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      cell.scope = "col";
      cell.append(button);
      head.append(cell);
    });
    const thead = make("thead"), tbody = make("tbody");
    thead.append(head);
    for (const row of this.order.slice(0, this.most)) tbody.append(this.row(row));
    this.element.replaceChildren(thead, tbody);
  }

  row(row) {
    const line = make("tr", undefined, row === this.chosen ? "chosen" : "");
    for (const column of this.columns) {
      const cell = make("td", undefined, (column.text ? "text " : "") + (column.muted ? "muted" : ""));
      cell.append(column.cell(row));
      line.append(cell);
    }
    if (this.onRow) {
      line.tabIndex = 0;
      line.setAttribute("aria-selected", row === this.chosen);
      line.addEventListener("click", () => this.choose(row));
      line.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        this.choose(row);
        this.element.querySelector("tr.chosen")?.focus();
      });
    }
    return line;
  }

  choose(row) {
    this.chosen = row === this.chosen ? null : row;
    this.onRow(this.chosen);
    this.draw();
  }

  sort(n) {
    const key = this.columns[n].key;
    this.descending = n === this.by ? !this.descending : !this.columns[n].text;
    this.by = n;
    const sign = this.descending ? -1 : 1;
    this.order.sort((p, q) => {
      const a = key(p), b = key(q);
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
    });
    this.draw();
    this.element.querySelectorAll("th button")[n].focus();
  }
}

function kernelTable(data) {
  const measured = data.facts.measured_us !== null;
  const number = (title, key, write, help) => ({ title, key: (k) => k[key], cell: (k) => write(k[key]), help });
  const columns = [
    { title: "Function", text: true, key: (k) => k.function, cell: functionCell },
    { title: "Tiling", text: true, muted: true, key: (k) => k.tiling, cell: (k) => k.tiling + (k.tuned ? " (tuned)" : "") },
    number("Calls", "calls", (n) => grouped(n, 0), "rOperators that use it"),
    number("rTasks", "rtasks", (n) => grouped(n, 0), "of one call"),
    number("Bound µs", "bound_us", micros, "The least work of all kernels that were considered, or the bytes that must move"),
    number("Predicted µs", "planned_us", micros),
  ];
  if (measured) {
    columns.push(number("Measured µs", "measured_us", micros));
    const ratio = (k) => (k.planned_us ? k.measured_us / k.planned_us : null);
    columns.push({ title: "Ratio", key: ratio, cell: (k) => (ratio(k) ? grouped(ratio(k), 2) : "–"), help: "Measured over predicted" });
  }
  columns.push({ title: "Share of the run", key: (k) => k.share, cell: shareCell });
  const table = new Table(byId("kernels").querySelector("table"), columns, data.kernels, FIRST_ROWS);
  table.by = columns.length - 1;
  const more = byId("more");
  more.hidden = data.kernels.length <= FIRST_ROWS;
  more.textContent = "Show all " + grouped(data.kernels.length, 0) + " kernels";
  more.addEventListener("click", () => {
    table.most = Infinity;
    more.hidden = true;
    table.draw();
  });
  const out = data.kernels_in_all - data.kernels.length;
  byId("kernels-text").textContent =
    "Times are vEU time: all rTasks of all calls, one after another. Choose a row to see where its rTasks are." +
    (out ? " The " + plural(out, "kernel") + " that take least are left out." : "");
  return table;
}

function functionCell(kernel) {
  const cell = make("span", undefined, "function"), swatch = make("i");
  swatch.style.background = kernel.colour;
  cell.append(swatch, breakable(kernel.function));
  return cell;
}

/* A name that may go on in the next line after each underscore. */
function breakable(name) {
  const text = make("span");
  name.split(/(?<=_)/).forEach((part, n) => text.append(...(n ? [make("wbr")] : []), part));
  return text;
}

function shareCell(kernel) {
  const cell = document.createDocumentFragment(), bar = make("span", undefined, "share"), part = make("span");
  part.style.width = 100 * kernel.share + "%";
  bar.append(part);
  cell.append(percent(kernel.share), bar);
  return cell;
}

function showStock(data) {
  const text = byId("stock-text"), out = data.stock_in_all - data.stock.length;
  text.className = "small";
  text.textContent = data.stock.length
    ? "These calls are launched by TVM, one by one." + (out ? " " + grouped(out, 0) + " more are not listed." : "")
    : "Nothing: all operators run in rPrograms.";
  if (!data.stock.length) return;
  const columns = [
    { title: "Call", text: true, key: (r) => r[0], cell: (r) => r[0] },
    { title: "Why", text: true, key: (r) => r[1], cell: (r) => r[1] },
    { title: "Calls", key: (r) => r[2], cell: (r) => grouped(r[2], 0) },
  ];
  new Table(byId("stock").querySelector("table"), columns, data.stock).draw();
}

function showContenders(data) {
  if (!data.contenders) return;
  byId("contenders").hidden = false;
  const ms = (value) => (value === null ? "–" : grouped(value, 3));
  const columns = [
    { title: "Contender", text: true, key: (r) => r[0], cell: (r) => (r[0] === "rammer" ? "tvm_rammer" : r[0]) },
    { title: "Median ms", key: (r) => r[1], cell: (r) => ms(r[1]) },
    { title: "90th percentile ms", key: (r) => r[2], cell: (r) => ms(r[2]) },
    { title: "Times ours", key: (r) => r[3], cell: ratioCell, help: "Above 1: ours is faster" },
    { title: "", text: true, muted: true, key: (r) => r[4], cell: (r) => r[4] },
  ];
  new Table(byId("contenders").querySelector("table"), columns, data.contenders).draw();
}

function ratioCell(row) {
  if (row[3] === null || row[0] === "rammer") return row[0] === "rammer" ? "1" : "–";
  return make("span", grouped(row[3], 2), row[3] >= 1.05 ? "faster" : row[3] <= 0.95 ? "slower" : "");
}
