// The segment map: a grid of cells, each for a range of the file. A cell shows the downloaded bytes, the colour of the
// connection that downloads the range, or nothing. A list below gives the same information as text.

import { element, prepare, setAttribute, setText, token } from "./dom.js";
import { bytes, fraction, percent, rate } from "./format.js";
import { t } from "./language.js";

const cell = 10;
const gap = 2;
const mostRows = 12;
/** Number of colours for connections. More connections reuse colours and are distinguished by their numbers. */
const hues = 6;

/** Number of bytes of the sorted half-open `ranges` that lie in from ..< to. */
function covered(ranges, from, to) {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[middle][1] <= from) low = middle + 1;
    else high = middle;
  }
  let sum = 0;
  for (let at = low; at < ranges.length && ranges[at][0] < to; at += 1) {
    sum += Math.min(to, ranges[at][1]) - Math.max(from, ranges[at][0]);
  }
  return sum;
}

export class SegmentMap {
  constructor() {
    this.canvas = element("canvas", { class: "map", role: "img" });
    this.tip = element("p", { class: "map-tip", "aria-hidden": "true" });
    this.legend = element("ul", { class: "legend" });
    this.element = element("div", { class: "map-box" }, this.canvas, this.tip, this.legend);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.textContent = ""));
    this.observer = new ResizeObserver(() => this.paint());
    this.observer.observe(this.canvas);
  }

  /** Shows `map`, as returned by the API, for `download`. */
  show(map, download) {
    this.map = map;
    this.download = download;
    this.paint();
    this.write();
  }

  get length() {
    const { completeLength, written, attempts } = this.map;
    // While the complete length is unknown, the map shows the bytes downloaded so far.
    return completeLength ?? Math.max(1, ...written.map(([, to]) => to), ...attempts.map((each) => each.position));
  }

  paint() {
    if (!this.map) return;
    const { clientWidth: width } = this.canvas;
    if (width === 0) return;
    const columns = Math.max(1, Math.floor((width + gap) / (cell + gap)));
    // A small file gets at most one cell per 16 KiB.
    const most = Math.max(columns, Math.ceil(this.length / 16384));
    const rows = Math.max(1, Math.min(mostRows, Math.ceil(most / columns)));
    this.grid = { columns, rows, cells: columns * rows };
    this.canvas.style.setProperty("height", `${rows * (cell + gap) - gap}px`);
    const area = prepare(this.canvas);
    if (area) for (let index = 0; index < this.grid.cells; index += 1) this.paintCell(area.context, index);
  }

  stretch(index) {
    return [Math.floor((this.length * index) / this.grid.cells), Math.floor((this.length * (index + 1)) / this.grid.cells)];
  }

  /** The attempt that writes into the range now, or whose segment contains the range. */
  attemptIn([from, to]) {
    const { attempts } = this.map;
    return attempts.find((each) => each.position >= from && each.position < to) ??
      attempts.find((each) => each.position < to && (each.to ?? this.length) > from);
  }

  paintCell(context, index) {
    const range = this.stretch(index);
    const size = range[1] - range[0];
    const there = size > 0 ? covered(this.map.written, ...range) / size : this.map.written.length ? 1 : 0;
    const attempt = there < 1 ? this.attemptIn(range) : undefined;
    const x = (index % this.grid.columns) * (cell + gap);
    const y = Math.floor(index / this.grid.columns) * (cell + gap);
    const box = () => {
      context.beginPath();
      context.roundRect(x, y, cell, cell, 2);
      context.fill();
    };
    context.fillStyle = token("--track");
    box();
    if (attempt) {
      context.fillStyle = token(`--connection-${(attempt.connection - 1) % hues}`);
      const isHere = attempt.position >= range[0] && attempt.position < range[1];
      context.globalAlpha = isHere ? 1 : 0.3;
      box();
      context.globalAlpha = 1;
    }
    if (there > 0 && !(attempt && attempt.position >= range[0] && attempt.position < range[1])) {
      context.fillStyle = token("--accent");
      context.globalAlpha = there < 1 ? 0.25 + there * 0.6 : 1;
      box();
      context.globalAlpha = 1;
    }
  }

  point(event) {
    if (!this.grid) return;
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / (cell + gap));
    const row = Math.floor((event.clientY - box.top) / (cell + gap));
    const index = row * this.grid.columns + column;
    if (column < 0 || column >= this.grid.columns || index < 0 || index >= this.grid.cells) return;
    const range = this.stretch(index);
    const there = covered(this.map.written, ...range) / Math.max(1, range[1] - range[0]);
    const attempt = there < 1 ? this.attemptIn(range) : undefined;
    const state = attempt ? t("connectionNumber", { n: attempt.connection }) : t("thereShort", { percent: percent(there) });
    this.tip.textContent = `${bytes(range[0])} – ${bytes(range[1])} · ${state}`;
  }

  /** Shows the downloaded share of `download`, the same as in its row: the map itself is older by up to a second. */
  showShare(download) {
    if (!this.map) return;
    const done = fraction(download);
    const share = done === undefined ? bytes(download.heldBytes) : percent(done);
    const { written, attempts } = this.map;
    setAttribute(this.canvas, "aria-label", t("mapLabel", { share, ranges: written.length, n: attempts.length }));
    setText(this.there, t("legendThere", { share }));
    const missing = (download.completeLength ?? 0) - download.heldBytes;
    setText(this.missing, t("legendMissing", { size: bytes(Math.max(0, missing)) }));
    this.missing.parentElement.hidden = missing <= 0;
  }

  /** Writes the legend: the downloaded share, and the position of each connection. */
  write() {
    const { attempts } = this.map;
    const entry = (className, words, style) => {
      const key = element("i", { class: className });
      if (style) key.style.setProperty("background", style);
      return element("li", {}, key, element("span", {}, words));
    };
    const connections = [...attempts].sort((left, right) => left.connection - right.connection).map((each) => {
      const at = t("attemptAt", { position: bytes(each.position), to: bytes(each.to ?? this.length) });
      const speed = each.rate === undefined ? "" : ` · ${rate(each.rate)}`;
      const hue = `var(--connection-${(each.connection - 1) % hues})`;
      // As in the map: full colour at the current position, lighter for the rest of the segment.
      const colour = `linear-gradient(90deg, ${hue} 50%, color-mix(in srgb, ${hue} 30%, var(--track)) 50%)`;
      return entry("key", `${t("connectionNumber", { n: each.connection })} · ${at}${speed}`, colour);
    });
    const [there, missing] = [entry("key there", ""), entry("key missing", "")];
    this.there = there.lastElementChild;
    this.missing = missing.lastElementChild;
    this.legend.replaceChildren(there, missing, ...connections);
    this.showShare(this.download);
  }
}
