// A line graph of the rates of the last two minutes, on a canvas.

import { prepare, token } from "./dom.js";
import { rate } from "./format.js";

const span = 120_000;

/** The next power of two above the highest rate, so that the scale stays stable while rates vary. */
function ceiling(samples) {
  const highest = Math.max(1024, ...samples.map((sample) => sample.rate));
  return 2 ** Math.ceil(Math.log2(highest));
}

/** Paints `samples`; `axis` adds a scale. Returns the highest and the last rate for the text beside the graph. */
export function paintRates(canvas, samples, { axis = false } = {}) {
  const now = Date.now();
  const recent = samples.filter((sample) => now - sample.time <= span);
  const area = prepare(canvas);
  const highest = recent.reduce((most, sample) => Math.max(most, sample.rate), 0);
  if (!area) return { highest, last: recent.at(-1)?.rate ?? 0 };
  const { context, width, height } = area;
  const top = axis ? ceiling(recent) : Math.max(1, highest * 1.1);
  const low = axis ? height - 4 : height - 1.5;
  const high = axis ? 18 : 3;
  const x = (time) => width - ((now - time) / span) * width;
  const y = (value) => low - (value / top) * (low - high);

  if (axis) paintAxis(context, { width, low, high, top });
  if (recent.length > 1) {
    const line = new Path2D();
    recent.forEach((sample, index) => line[index ? "lineTo" : "moveTo"](x(sample.time), y(sample.rate)));
    const below = new Path2D(line);
    below.lineTo(x(recent.at(-1).time), low);
    below.lineTo(x(recent[0].time), low);
    context.fillStyle = token("--accent");
    context.globalAlpha = 0.14;
    context.fill(below);
    context.globalAlpha = 1;
    context.strokeStyle = token("--accent");
    context.lineWidth = 1.5;
    context.lineJoin = "round";
    context.stroke(line);
  }
  return { highest, last: recent.at(-1)?.rate ?? 0 };
}

function paintAxis(context, { width, low, high, top }) {
  context.strokeStyle = token("--line");
  context.lineWidth = 1;
  context.beginPath();
  for (const y of [low, (low + high) / 2, high]) {
    context.moveTo(0, Math.round(y) + 0.5);
    context.lineTo(width, Math.round(y) + 0.5);
  }
  context.stroke();
  context.fillStyle = token("--ink-2");
  context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  context.textBaseline = "bottom";
  context.fillText(rate(top), 0, high - 3);
}
