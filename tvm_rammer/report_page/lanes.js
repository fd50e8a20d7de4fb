/* The chart of lanes: panels above each other on one axis of time; only what is visible is drawn. */

const LEFT = 62, RIGHT = 10, HEAD = 30, GAP = 16, AXIS = 24, STRIP = 7, LEAST_US = 0.02;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

class Chart {
  constructor(data, model) {
    Object.assign(this, { data, model, canvas: byId("canvas"), tip: byId("tip") });
    this.context = this.canvas.getContext("2d");
    this.total = Math.max(1e-3, ...model.panels.map((panel) => panel.total));
    this.from = 0;
    this.to = this.total;
    this.chosen = null; // [panel, lane, box]
    this.kernel = -1;
    this.matches = null;
    this.showPath = true;
    const room = model.panels.length > 1 ? 300 : 640;
    this.pitch = Math.max(3, Math.min(34, room / Math.max(1, model.lanes.length)));
    this.panelHeight = HEAD + this.pitch * model.lanes.length;
    this.height = model.panels.length * (this.panelHeight + GAP) - GAP + AXIS + STRIP + 4;
    this.drawn = 0;
  }

  resize() {
    const scale = window.devicePixelRatio || 1;
    this.width = this.canvas.parentElement.clientWidth;
    this.canvas.style.height = this.height + "px";
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.draw();
  }

  recolour() {
    this.colours = schemeColours();
    this.waits = hatch(this.context, this.colours);
  }

  get plot() {
    return Math.max(1, this.width - LEFT - RIGHT);
  }

  x(time) {
    return LEFT + ((time - this.from) / (this.to - this.from)) * this.plot;
  }

  timeAt(x) {
    return this.from + ((x - LEFT) / this.plot) * (this.to - this.from);
  }

  top(panel, lane) {
    return panel * (this.panelHeight + GAP) + HEAD + lane * this.pitch;
  }

  show(from, to) {
    const length = Math.min(this.total, Math.max(LEAST_US, to - from));
    this.from = Math.min(Math.max(0, from), this.total - length);
    this.to = this.from + length;
    this.draw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    const c = this.context;
    c.clearRect(0, 0, this.width, this.height);
    c.textBaseline = "middle";
    this.drawn = 0;
    this.drawGrid();
    this.model.panels.forEach((panel, e) => this.drawPanel(panel, e));
    if (this.chosen) this.drawChosen();
    this.drawStrip();
  }

  drawGrid() {
    const c = this.context, raw = ((this.to - this.from) * 90) / this.plot, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
    const bottom = this.top(this.model.panels.length - 1, this.model.lanes.length);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    c.font = "11.5px " + FONT;
    c.textAlign = "center";
    for (let n = Math.ceil(this.from / step); n * step <= this.to; n++) {
      const x = this.x(n * step);
      c.fillStyle = this.colours.line;
      c.fillRect(Math.round(x), HEAD - 4, 1, bottom - HEAD + 8);
      c.fillStyle = this.colours.muted;
      if (x < this.width - RIGHT - 40) c.fillText(grouped(n * step, digits), Math.max(x, LEFT + 4), bottom + 15);
    }
    c.textAlign = "right";
    c.fillText("µs", this.width - RIGHT, bottom + 15);
  }

  drawPanel(panel, e) {
    const c = this.context, right = this.width - RIGHT;
    c.textAlign = "left";
    c.fillStyle = this.colours.ink;
    c.font = "600 13px " + FONT;
    c.fillText(panel.title, 0, this.top(e, 0) - HEAD / 2 - 1);
    this.drawPrograms(panel, e);
    for (let v = 0; v < this.model.lanes.length; v++) {
      const y = this.top(e, v), height = this.pitch > 6 ? this.pitch - 2 : this.pitch - 0.5;
      c.fillStyle = this.colours.row;
      c.fillRect(LEFT, y, right - LEFT, height);
      if (this.pitch >= 12 || v % Math.ceil(14 / this.pitch) === 0) {
        c.fillStyle = this.colours.muted;
        c.font = "11.5px " + FONT;
        c.textAlign = "right";
        c.fillText("vEU " + v, LEFT - 9, y + height / 2 + 0.5);
      }
    }
    c.save();
    c.beginPath();
    c.rect(LEFT, 0, right - LEFT, this.height);
    c.clip();
    this.drawLaunches(panel, e);
    for (let v = 0; v < this.model.lanes.length; v++) this.drawLane(panel, e, v);
    if (this.showPath) this.drawPath(panel, e);
    c.restore();
  }

  drawPrograms(panel, e) {
    const c = this.context, y = this.top(e, 0) - HEAD / 2 - 1;
    c.font = "12px " + FONT;
    c.fillStyle = this.colours.muted;
    panel.begins.forEach((begin, p) => {
      const from = Math.max(LEFT + 6, this.x(begin) + 2), right = this.width - RIGHT;
      const to = p + 1 < panel.begins.length ? Math.min(right, this.x(panel.begins[p + 1])) : right;
      if (this.x(panel.ends[p]) < LEFT) return;
      const name = this.model.programs[p].name, time = duration(panel.ends[p] - begin).join(" ");
      const texts = [name + ": " + time + ", vEUs busy for " + percent(panel.busy[p]), name + ": " + time, name];
      const text = texts.find((t) => c.measureText(t).width < to - from - 6);
      if (text) c.fillText(text, from + (p === 0 && from < LEFT + 20 ? 12 : 0), y);
    });
  }

  drawLaunches(panel, e) {
    const c = this.context, launch = this.data.facts.launch_us;
    c.fillStyle = this.colours.launch;
    for (const begin of panel.begins) {
      const x = this.x(begin - launch);
      c.fillRect(x, this.top(e, 0) - 4, Math.max(1, this.x(begin) - x), this.pitch * this.model.lanes.length + 4);
    }
  }

  drawLane(panel, e, v) {
    const lane = this.model.lanes[v], starts = panel.start[v], ends = panel.end[v], c = this.context;
    const y = this.top(e, v), height = this.pitch > 6 ? this.pitch - 2 : this.pitch - 0.5;
    let pixel = -1;
    for (let n = firstAfter(ends, this.from); n < starts.length && starts[n] < this.to; n++) {
      const x0 = Math.max(this.x(starts[n]), LEFT - 2), x1 = Math.min(this.x(ends[n]), this.width);
      if (x1 < pixel) continue; // within a pixel that is drawn
      pixel = Math.floor(x1) + (x1 - x0 < 1 ? 1 : 0);
      this.drawn++;
      this.drawBox(lane, v, n, x0, Math.max(x1 - x0, 0.7), y, height, c);
    }
  }

  drawBox(lane, v, n, x, width, y, height, c) {
    if (lane.kind[n] === LOOP) return this.drawLoop(lane.a[n], x, width, y, height, c);
    const operator = this.data.operators[lane.operator[n]];
    const faded = this.kernel >= 0 || this.matches;
    if (lane.kind[n] === WAIT || !operator) {
      c.globalAlpha = faded ? 0.35 : 1;
      c.fillStyle = width > 3 ? this.waits : this.colours["wait-line"];
      c.fillRect(x, y, width, height);
      c.globalAlpha = 1;
      return;
    }
    const kernel = this.data.kernels[operator[1]], colour = kernel ? kernel.colour : "#8a8f99";
    const here = (this.kernel < 0 || operator[1] === this.kernel) && (!this.matches || this.matches.has(lane.operator[n]));
    c.globalAlpha = faded && !here ? 0.16 : 1;
    c.fillStyle = colour;
    c.fillRect(x, y, width > 3 ? width - 1 : width, height);
    if (width > 26 && height >= 12 && lane.kind[n] === RUN && c.globalAlpha === 1) {
      c.fillStyle = textOn(colour);
      c.font = "11.5px " + FONT;
      c.textAlign = "left";
      const text = fitted(c, operator[0], width - 11);
      if (text) c.fillText(text, x + 5, y + height / 2 + 0.5);
    }
    c.globalAlpha = 1;
  }

  drawLoop(steps, x, width, y, height, c) {
    c.fillStyle = this.colours.loop;
    c.fillRect(x, y, width > 3 ? width - 1 : width, height);
    if (height < 12) return;
    c.fillStyle = this.colours.ink;
    c.font = "11.5px " + FONT;
    c.textAlign = "left";
    const text = fitted(c, "loop of " + plural(steps, "step"), width - 11);
    if (text) c.fillText(text, x + 5, y + height / 2 + 0.5);
  }

  drawPath(panel, e) {
    const c = this.context, thick = this.pitch >= 12 ? 3 : 1.5, inset = this.pitch > 6 ? 2 : 0.5;
    c.fillStyle = c.strokeStyle = this.colours.path;
    c.lineWidth = 1.25;
    let before = null, pixel = -1;
    for (const [v, n] of panel.path) {
      const x0 = this.x(panel.start[v][n]), x1 = this.x(panel.end[v][n]), y = this.top(e, v) + this.pitch - inset - thick;
      if (x1 >= LEFT && x0 <= this.width && (x1 >= pixel + 0.5 || (before && before[1] !== v))) {
        const cause = panel.causes.get(v + ":" + n);
        const from = cause ? Math.max(x0, this.x(panel.end[cause[0]][cause[1]])) : x0;
        c.fillRect(from, y, Math.max(x1 - from, 1), thick);
        if (before && before[1] !== v) {
          c.beginPath();
          c.moveTo(from, before[0] + thick / 2);
          c.lineTo(from, y + thick / 2);
          c.stroke();
        }
        pixel = x1;
      }
      before = [y, v];
    }
  }

  drawChosen() {
    const c = this.context, [, v, n] = this.chosen;
    c.save();
    c.beginPath();
    c.rect(LEFT - 2, 0, this.plot + 4, this.height);
    c.clip();
    this.model.panels.forEach((panel, e) => {
      const x0 = this.x(panel.start[v][n]), x1 = this.x(panel.end[v][n]);
      c.strokeStyle = this.colours.ink;
      c.lineWidth = 2;
      c.strokeRect(x0 - 0.5, this.top(e, v) - 0.5, Math.max(2, x1 - x0), Math.max(2, this.pitch - 1));
      this.drawArrows(panel, e, v, n);
    });
    c.restore();
  }

  /* From the signals that the waits before a box waited for. */
  drawArrows(panel, e, v, n) {
    const lane = this.model.lanes[v], c = this.context;
    for (const w of lane.kind[n] === WAIT ? [n] : waitedBefore(lane, n)) {
      const cause = panel.causes.get(v + ":" + w);
      if (!cause) continue;
      const x0 = this.x(panel.end[cause[0]][cause[1]]), y0 = this.top(e, cause[0]) + this.pitch / 2;
      const x1 = this.x(panel.end[v][w]), y1 = this.top(e, v) + this.pitch / 2;
      c.strokeStyle = c.fillStyle = this.colours.ink;
      c.lineWidth = 1.5;
      c.beginPath();
      c.moveTo(x0, y0);
      c.bezierCurveTo(x0 + 14, y0, x1 - 14, y1, x1, y1);
      c.stroke();
      c.beginPath();
      c.arc(x0, y0, 2.5, 0, 7);
      c.arc(x1, y1, 2.5, 0, 7);
      c.fill();
    }
  }

  /* Which part of the whole is visible. */
  drawStrip() {
    const c = this.context, y = this.height - STRIP, part = this.plot / this.total;
    if (this.to - this.from > 0.999 * this.total) return;
    c.fillStyle = this.colours.row;
    c.fillRect(LEFT, y, this.plot, STRIP - 2);
    c.fillStyle = this.colours.accent;
    c.fillRect(LEFT + this.from * part, y, Math.max(4, (this.to - this.from) * part), STRIP - 2);
  }

  /* The box under a point, as [panel, lane, box]. */
  boxAt(x, y) {
    if (x < LEFT || x > this.width - RIGHT) return null;
    const e = Math.floor(y / (this.panelHeight + GAP)), panel = this.model.panels[e];
    const v = Math.floor((y - this.top(e, 0)) / this.pitch);
    if (!panel || v < 0 || v >= this.model.lanes.length) return null;
    const time = this.timeAt(x), near = (2 * (this.to - this.from)) / this.plot;
    let n = firstAfter(panel.end[v], time);
    if (panel.start[v][n] <= time) return [e, v, n];
    n = firstAfter(panel.end[v], time - near);
    return panel.start[v][n] <= time + near ? [e, v, n] : null;
  }

  choose(chosen, reveal = false) {
    this.chosen = chosen;
    this.tip.hidden = !chosen;
    if (chosen) {
      if (reveal) this.reveal();
      this.tell();
    }
    this.draw();
  }

  reveal() {
    const [e, v, n] = this.chosen, panel = this.model.panels[e], start = panel.start[v][n], end = panel.end[v][n];
    const length = this.to - this.from;
    if (end - start > length) this.show(start - 0.1 * (end - start), end + 0.1 * (end - start));
    else if (start < this.from || end > this.to) this.show((start + end - length) / 2, (start + end + length) / 2);
  }

  tell() {
    const [e, v, n] = this.chosen, { title, rows } = describe(this.data, this.model, e, v, n), list = make("div");
    for (const [label, text] of rows) list.append(make("i", label), make("span", text));
    this.tip.replaceChildren(make("b", title), list);
    const panel = this.model.panels[e], box = this.tip.getBoundingClientRect();
    const middle = this.x((Math.max(panel.start[v][n], this.from) + Math.min(panel.end[v][n], this.to)) / 2);
    const left = this.pointer ? this.pointer[0] + 14 : middle - box.width / 2;
    this.tip.style.left = Math.max(0, Math.min(this.width - box.width, left)) + "px";
    this.tip.style.top = (this.pointer ? this.pointer[1] + 18 : this.top(e, v) + this.pitch + 6) + "px";
  }
}
