// Building elements. Text is always inserted as text: data from servers is never parsed as markup.

import { icon } from "./icons.js";

/**
 * element("button", {class: "quiet", type: "button", onclick: f, icon: "pause"}, "Pause")
 *
 * `on…` adds a listener, `icon` inserts an icon first, `true` sets an empty attribute, `false` and `undefined` set none.
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

/** Sets the text if it differs. Writing equal text would cost a layout, also in a list of 10,000 rows. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Sets or removes an attribute if its value differs. */
export function setAttribute(target, name, value) {
  if (value === undefined || value === null || value === false) {
    if (target.hasAttribute(name)) target.removeAttribute(name);
  } else {
    const text = value === true ? "" : String(value);
    if (target.getAttribute(name) !== text) target.setAttribute(name, text);
  }
}

/** Returns the element with the given id. */
export const byId = (id) => document.getElementById(id);

/**
 * True if pressed keys go to a text field or similar. A field of a closed dialog keeps the focus until the browser updates
 * the page.
 */
export function isTyping(target) {
  if (!(target instanceof Element) || target.closest("dialog:not([open])")) return false;
  return target.closest("input, textarea, select, [contenteditable]") !== null;
}

/** Copies a text. Returns false if the browser refuses. Without TLS, only the older command is available. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const focused = document.activeElement;
    const field = element("textarea", { class: "hidden-words", readonly: true, value: text });
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    focused?.focus({ preventScroll: true });
    return isCopied;
  }
}

const colours = new Map();

/** Calls `listener` when the colour scheme changes, because a canvas must then be painted again. */
export function onColours(listener) {
  const changed = () => {
    colours.clear();
    listener();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  new MutationObserver(changed).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}

/** Resolves a colour of the style sheet for a canvas, which does not support `light-dark()`. */
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

/** Fits a canvas to its box and pixel ratio. Returns the context in CSS pixels, or null if the box is empty. */
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
