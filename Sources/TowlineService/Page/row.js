// A row of the list. Rows are reused while the list scrolls; `show` writes changed values only.

import { actionLabel, primary } from "./actions.js";
import { element, setAttribute, setText } from "./dom.js";
import { bytes, duration, fraction, hostOf, isComplete, nameOf, percent, rate, sizes, when } from "./format.js";
import { swapIcon } from "./icons.js";
import { has, language, t } from "./language.js";

let serial = 0;

const icons = { pause: "pause", resume: "resume", retry: "retry" };

/** The state as text, with its most important detail. */
export function stateText(download) {
  const state = t(`state.${download.state}`);
  switch (download.state) {
    case "downloading":
      return download.connections > 1 ? `${state} · ${t("connectionCount", { n: download.connections })}` : state;
    case "waiting":
      return [state, waitsFor(download), wait(download)].filter(Boolean).join(" · ");
    case "failed":
      return `${state} · ${shortError(download)}`;
    case "follow-up-failed":
    case "finished":
      return finishedText(download, state);
    case "queued":
      return download.reason ? `${state} · ${queuedFor(download.reason)}` : state;
    case "connecting":
    case "paused":
      return download.reason ? `${state} · ${brief(download.reason)}` : state;
    default:
      return state;
  }
}

/**
 * The first clause of a message, without the URL before it and without the text of a library in parentheses. The details
 * show the complete message.
 */
export const brief = (message) =>
  message.replace(/^https?:\S+: /, "").replace(/ [(].*$/s, "").split(/[;,:] |[；，：]/)[0];

const limits = {
  host: /^limit: (\d+) per host$/, group: /^limit: (\d+) in the group (.*)$/s, total: /^limit: (\d+) at the same time$/,
};

/** The limit that keeps a download queued. The service names it in English. */
function queuedFor(reason) {
  for (const [kind, pattern] of Object.entries(limits)) {
    const [, n, group] = pattern.exec(reason) ?? [];
    if (n) return t(`limit.${kind}`, { n, group });
  }
  return reason;
}

/** Why a download waits. The reason from the service is more detailed, but in English only. */
function waitsFor(download) {
  const key = `waits.${download.waitsFor}`;
  const text = language() === "en" || !has(key) ? download.reason ?? (has(key) && t(key)) : t(key);
  return text ? brief(text) : undefined;
}

function wait(download) {
  if (download.waitsUntil === undefined) return undefined;
  const left = (download.waitsUntil - Date.now()) / 1000;
  return left > 0 ? t("goesOnIn", { time: duration(Math.ceil(left)).replaceAll(" ", "\u00a0") }) : t("goesOnNow");
}

/** An error in one clause, in the page's language if its cause or code is known. */
function shortError({ error, reason }) {
  if (!error) return brief(reason ?? "");
  const key = [`network.${error.networkFailure}`, `error.${error.code}`].find(has);
  const text = brief(key ? t(key) : error.message);
  return error.httpStatus ? `${text} (${error.httpStatus})` : text;
}

function finishedText(download, state) {
  if (download.followUp?.state === "running") return `${state} · ${t("followUpRunning")}`;
  if (download.state === "follow-up-failed") return `${state} · ${t("followUpFailed")}`;
  return download.endedAt ? `${state} · ${when(download.endedAt)}` : state;
}

/** True if the text of the state contains a reason or a follow-up action, which may be long. */
const explains = ({ state, reason, followUp }) =>
  ["waiting", "failed", "follow-up-failed"].includes(state) || (reason && state !== "downloading") ||
  followUp?.state === "running";

/** Shows the progress of a download in a bar, with values for screen readers. */
export function showProgress(bar, download) {
  const done = fraction(download);
  const isActive = ["connecting", "downloading", "verifying", "publishing"].includes(download.state);
  bar.firstElementChild.style.setProperty("transform", `scaleX(${done ?? 0})`);
  bar.classList.toggle("unknown", done === undefined && isActive);
  setAttribute(bar, "aria-valuenow", done === undefined ? undefined : Math.floor(done * 100));
  const figures = done === undefined ? bytes(download.heldBytes) : percent(done);
  setAttribute(bar, "aria-valuetext", `${figures}, ${t(`state.${download.state}`)}`);
}

export const makeBar = () =>
  element("div", { class: "progress", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100 }, element("i"));

export class Row {
  constructor() {
    const key = (serial += 1);
    this.id = undefined;
    this.action = element("button", { type: "button", class: "round", tabindex: -1, "data-do": "primary" });
    this.name = element("bdi", { class: "name", id: `name-${key}` });
    this.state = element("span", { class: "state", id: `state-${key}`, dir: "auto" });
    this.host = element("bdi", { class: "host" });
    // In a narrow list, these texts replace the state while the download runs, and the columns at the end.
    this.moving = element("span", { class: "moving", "aria-hidden": "true" });
    this.bar = makeBar();
    this.inShort = element("span", { class: "in-short", "aria-hidden": "true" });
    this.size = element("span", { class: "size", id: `size-${key}` });
    this.percent = element("span", { class: "percent" });
    this.rate = element("span", { class: "rate" });
    this.remaining = element("span", { class: "remaining" });
    this.more = element("button", {
      type: "button", class: "icon-button", tabindex: -1, "data-do": "menu", "aria-haspopup": "menu", icon: "more",
    });
    this.element = element(
      "div",
      { role: "row", class: "row", tabindex: -1, "aria-labelledby": `name-${key} state-${key} size-${key}` },
      element("div", { role: "gridcell", class: "cell-action" }, this.action),
      element(
        "div", { role: "gridcell", class: "cell-main" },
        this.name, element("div", { class: "cell-line" }, this.state, this.moving, this.host, this.inShort), this.bar),
      element("div", { role: "gridcell", class: "cell-size" }, this.size, this.percent),
      element("div", { role: "gridcell", class: "cell-rate" }, this.rate, this.remaining),
      element("div", { role: "gridcell", class: "cell-more" }, this.more),
    );
  }

  /** Places the row at its index in the list. */
  putAt(index, height) {
    if (this.top !== index * height) {
      this.top = index * height;
      this.element.style.setProperty("transform", `translateY(${this.top}px)`);
    }
    setAttribute(this.element, "aria-rowindex", index + 1);
  }

  /** Shows `download` in this row. */
  show(download, { selected, active, open, draggable }) {
    // The bar must not animate when the row is reused for another download.
    this.element.classList.toggle("fresh", this.id !== download.id);
    this.id = download.id;
    this.element.dataset.id = download.id;
    setAttribute(this.element, "data-state", download.state);
    setAttribute(this.element, "aria-selected", selected ? "true" : "false");
    setAttribute(this.element, "tabindex", active ? 0 : -1);
    setAttribute(this.element, "draggable", draggable ? "true" : undefined);
    this.element.classList.toggle("open", open);
    this.element.classList.toggle("explains", Boolean(explains(download)));
    for (const button of [this.action, this.more]) setAttribute(button, "tabindex", active ? 0 : -1);
    this.showWords(download);
    this.showFigures(download);
    showProgress(this.bar, download);
  }

  showWords(download) {
    const name = nameOf(download);
    setText(this.name, name);
    setAttribute(this.name, "title", name);
    const state = stateText(download);
    setText(this.state, state);
    setAttribute(this.state, "title", state);
    setText(this.host, hostOf(download));
    setAttribute(this.host, "title", download.url);
    setAttribute(this.bar, "aria-label", t("progressOf", { name }));
    setAttribute(this.more, "aria-label", t("moreFor", { name }));
    const action = primary(download);
    swapIcon(this.action, action ? icons[action] : "check");
    setAttribute(this.action, "aria-disabled", action ? undefined : "true");
    const label = action ? actionLabel(action, download) : t(`state.${download.state}`);
    setAttribute(this.action, "aria-label", `${label}: ${name}`);
    setAttribute(this.action, "title", label);
  }

  showFigures(download) {
    const isOver = isComplete(download);
    setText(this.size, isOver ? bytes(download.completeLength ?? download.heldBytes) : figures(download));
    const done = isOver || download.heldBytes === 0 ? undefined : fraction(download);
    setText(this.percent, done === undefined ? "" : percent(done));
    setText(this.inShort, done === undefined ? this.size.textContent : t("of", { held: percent(done), length: bytes(download.completeLength) }));
    const isMoving = download.rate !== undefined && download.state === "downloading";
    setText(this.rate, isMoving ? rate(download.rate) : "");
    const isKnown = isMoving && download.remaining !== undefined;
    setText(this.remaining, isKnown ? t("left", { time: duration(download.remaining) }) : "");
    setText(this.moving, [this.rate.textContent, isKnown && duration(download.remaining)].filter(Boolean).join(" · "));
    this.element.classList.toggle("moves", isMoving);
  }
}

function figures(download) {
  if (download.heldBytes === 0) return download.completeLength === undefined ? "" : bytes(download.completeLength);
  return sizes(download.heldBytes, download.completeLength);
}
