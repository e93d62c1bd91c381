// The timeline of a download, newest entry first.

import { element } from "./dom.js";
import { clock, when } from "./format.js";
import { t } from "./language.js";

const most = 2000;

export class Timeline {
  constructor() {
    /** The number of the newest shown note. */
    this.last = 0;
    this.list = element("ol", { class: "timeline", reversed: true });
    this.none = element("p", { class: "note" }, t("timelineEmpty"));
    this.element = element("div", {}, this.none, this.list);
  }

  /** Adds notes in the order of their numbers. Skips notes that are already shown. */
  add(notes) {
    const fresh = notes.filter((note) => note.number > this.last).sort((left, right) => left.number - right.number);
    for (const note of fresh) {
      this.last = note.number;
      const time = element("time", { datetime: new Date(note.time).toISOString(), title: when(note.time) }, stamp(note.time));
      this.list.prepend(element(
        "li", { "data-kind": note.kind }, time, element("span", { dir: "auto", lang: "en" }, note.message)));
    }
    while (this.list.children.length > most) this.list.lastElementChild.remove();
    this.none.hidden = this.list.children.length > 0;
  }
}

/** Time with seconds for today, otherwise date and time to the minute. */
const stamp = (time) => (new Date(time).toDateString() === new Date().toDateString() ? clock(time) : when(time));
