// Notifications: visible notes at the edge of the page, and a live region for screen readers.

import { element, byId } from "./dom.js";
import { nameOf } from "./format.js";
import { has, t } from "./language.js";
import { recall, remember } from "./memory.js";

const noteTime = 6000;
const mostNotes = 3;
let said;

/** Announces a text to screen readers. Texts within 200 ms are combined into one announcement. */
export function say(text) {
  const region = byId("said");
  if (said) said.push(text);
  else {
    said = [text];
    setTimeout(() => {
      region.textContent = said.join(". ");
      said = undefined;
    }, 200);
  }
}

/** Shows a note and announces its text. */
export function announce(text, kind = "plain") {
  say(text);
  const notes = byId("toasts");
  const close = element("button", { type: "button", class: "icon-button", "aria-label": t("close"), icon: "close" });
  const note = element("div", { class: `toast ${kind}` }, element("span", { dir: "auto" }, text), close);
  close.addEventListener("click", () => note.remove());
  notes.append(note);
  while (notes.children.length > mostNotes) notes.firstElementChild.remove();
  // An error stays until the user closes it or newer notes replace it, so that it is not missed.
  if (kind !== "bad") setTimeout(() => note.remove(), noteTime);
}

/** Shows a problem of the list of downloads, once a day: the service sends it to each page that opens. */
export function announceNotice(message) {
  const shown = JSON.parse(recall("notices", "{}"));
  for (const [key, time] of Object.entries(shown)) if (Date.now() - time > 86_400_000) delete shown[key];
  // A number, because the storage of the browser contains no data about downloads.
  const key = [...message].reduce((sum, char) => (sum * 31 + char.codePointAt(0)) | 0, 7);
  if (shown[key]) return;
  remember("notices", JSON.stringify({ ...shown, [key]: Date.now() }));
  announce(message, "bad");
}

/** Shows why a request failed. */
export function complain(problem) {
  if (problem.name === "AbortError" || problem.status === 401) return;
  announce(problemText(problem), "bad");
}

/** Shows a problem in the note of a form, and scrolls the note into view: the form may be longer than the screen. */
export function showProblem(note, problem) {
  note.textContent = problemText(problem);
  note.scrollIntoView({ block: "nearest" });
}

export function problemText(problem) {
  if (problem.status === undefined) return problem instanceof TypeError ? t("noAnswer") : problem.message;
  const key = `problem.${problem.code ?? problem.status}`;
  return has(key) ? `${t(key)}: ${problem.message}` : problem.message;
}

/** Announces downloads that finished, or that failed or whose follow-up action failed. Several within a second are announced as a number. */
export class Ends {
  constructor() {
    this.ends = [];
  }

  note(download) {
    if (!["finished", "failed", "follow-up-failed"].includes(download.state)) return;
    this.ends.push(download);
    this.timer ??= setTimeout(() => this.flush(), 1000);
  }

  flush() {
    this.timer = undefined;
    const ends = this.ends.splice(0);
    for (const state of ["finished", "failed"]) {
      const these = ends.filter((download) => (download.state === "finished") === (state === "finished"));
      if (these.length === 0) continue;
      const text = t(state === "finished" ? "saidFinished" : "saidFailed", { n: these.length, name: nameOf(these[0]) });
      if (state === "failed") announce(text, "bad");
      else say(text);
    }
  }
}
