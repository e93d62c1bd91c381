// What happened, for eyes (a note at the edge that goes away) and for ears (a live region).

import { element, byId } from "./dom.js";
import { nameOf } from "./format.js";
import { has, t } from "./language.js";

const noteTime = 6000;
const mostNotes = 3;
let said;

/** Says it to screen readers. Words that come close together are one announcement. */
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

/** Shows a note, and says it. */
export function announce(text, kind = "plain") {
  say(text);
  const notes = byId("toasts");
  const close = element("button", { type: "button", class: "icon-button", "aria-label": t("close"), icon: "close" });
  const note = element("div", { class: `toast ${kind}` }, element("span", { dir: "auto" }, text), close);
  close.addEventListener("click", () => note.remove());
  notes.append(note);
  while (notes.children.length > mostNotes) notes.firstElementChild.remove();
  // A complaint stays until it is closed or pushed out: somebody may have looked away.
  if (kind !== "bad") setTimeout(() => note.remove(), noteTime);
}

/** What went wrong with a request, in words. */
export function complain(problem) {
  if (problem.name === "AbortError" || problem.status === 401) return;
  announce(problemText(problem), "bad");
}

export function problemText(problem) {
  if (problem.status === undefined) return problem instanceof TypeError ? t("noAnswer") : problem.message;
  const key = `problem.${problem.code ?? problem.status}`;
  return has(key) ? `${t(key)}: ${problem.message}` : problem.message;
}

/** Says which downloads finished or failed; a burst is said as a number. */
export class Ends {
  constructor() {
    this.ends = [];
  }

  note(download) {
    if (!["finished", "failed"].includes(download.state)) return;
    this.ends.push(download);
    this.timer ??= setTimeout(() => this.flush(), 1000);
  }

  flush() {
    this.timer = undefined;
    const ends = this.ends.splice(0);
    for (const state of ["finished", "failed"]) {
      const these = ends.filter((download) => download.state === state);
      if (these.length === 0) continue;
      const text = t(state === "finished" ? "saidFinished" : "saidFailed", { n: these.length, name: nameOf(these[0]) });
      if (state === "failed") announce(text, "bad");
      else say(text);
    }
  }
}
