/* Colours of the page's present scheme, and how numbers and names are written. */

const byId = (id) => document.getElementById(id);

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

function schemeColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["card", "ink", "muted", "line", "row", "accent", "path", "wait", "wait-line", "launch", "loop"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
}

/* Dark or light text on a colour of the form #rrggbb, whichever has more contrast. */
function textOn(colour) {
  const part = (at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2;
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) > 0.3 ? "#10141c" : "#ffffff";
}

function hatch(context, colours) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const c = tile.getContext("2d");
  c.fillStyle = colours.wait;
  c.fillRect(0, 0, 6, 6);
  c.strokeStyle = colours["wait-line"];
  c.beginPath();
  for (const shift of [-6, 0, 6]) {
    c.moveTo(shift, 6);
    c.lineTo(shift + 6, 0);
  }
  c.stroke();
  return context.createPattern(tile, "repeat");
}

const grouped = (number, digits) =>
  number.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

/* At least two significant digits of a time, in microseconds. */
function micros(us) {
  if (us === null || us === undefined) return "–";
  return grouped(us, us >= 100 ? 0 : us >= 10 ? 1 : 2);
}

function duration(us) {
  return us >= 10000 ? [grouped(us / 1000, us >= 100000 ? 0 : 1), "ms"] : [micros(us), "µs"];
}

const plural = (count, one, many = one + "s") => grouped(count, 0) + " " + (count === 1 ? one : many);
const percent = (part) => {
  const digits = part > 0 && part < 0.0995 ? (part < 0.00095 ? 2 : 1) : 0;
  return grouped(100 * part, digits) + " %";
};

/* A text cut to a width; empty where not even a few letters fit. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const letters = Math.floor((width / context.measureText(text).width) * text.length) - 1;
  return letters >= 4 ? text.slice(0, letters) + "…" : "";
}
