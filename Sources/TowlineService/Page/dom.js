// Building elements. Text goes in as text and nowhere else: what servers send is never markup.

import { icon } from "./icons.js";

/**
 * element("button", {class: "quiet", type: "button", onclick: f, icon: "pause"}, "Pause")
 *
 * `on…` are listeners, `icon` puts a picture first, `true` is an empty attribute, `false` and `undefined` are none.
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "icon") made.append(icon(value));
    else if (key === "value") made.value = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return made;
}

/** Sets text only where it differs: writing equal text still costs layout, ten thousand times over. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Sets or takes away an attribute, only where it differs. */
export function setAttribute(target, name, value) {
  if (value === undefined || value === null || value === false) {
    if (target.hasAttribute(name)) target.removeAttribute(name);
  } else {
    const text = value === true ? "" : String(value);
    if (target.getAttribute(name) !== text) target.setAttribute(name, text);
  }
}

/** The element with that id. */
export const byId = (id) => document.getElementById(id);

/** Whether keys that are pressed now belong to a field. */
export function isTyping(target) {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}

/** Whether the user asked for less motion. */
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

const colours = new Map();

/** Calls `listener` when light turns dark or the other way; what is on a canvas has to be painted again. */
export function onColours(listener) {
  const changed = () => {
    colours.clear();
    listener();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  new MutationObserver(changed).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}

/** A colour of the style sheet for a canvas, which knows nothing of `light-dark()`: an element's own colour does. */
export function token(name) {
  let colour = colours.get(name);
  if (!colour) {
    const probe = element("i", { hidden: true });
    probe.style.setProperty("color", `var(${name})`);
    document.body.append(probe);
    colour = getComputedStyle(probe).color;
    probe.remove();
    colours.set(name, colour);
  }
  return colour;
}

/** Fits a canvas to its box and to the screen's pixels; gives the context in CSS pixels, or null while it has no size. */
export function prepare(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  if (width === 0 || height === 0) return null;
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}
