// The event stream: what it says goes to the store, and whether it can be heard goes to the banner.

import { api } from "./api.js";

// Of a stream that the browser opens again by itself, the service replays what was missed or says `reset`. One that is
// opened anew here has no Last-Event-ID: whoever listens has to read the list again, which `fresh` tells.

/** How long a page nobody looks at holds its connection: a browser gives one host six, and people leave tabs open. */
const hiddenAfter = 60_000;

export class Live {
  /** `heard(name, data)` for each event, `state(open, fresh)` when the stream opens or is lost. */
  constructor(heard, state) {
    this.heard = heard;
    this.state = state;
    this.wait = 1000;
    document.addEventListener("visibilitychange", () => this.visibilityChanged());
    // A page that was left and is kept for the way back would keep its connection, too: after six of them none is left.
    addEventListener("pagehide", () => this.sleep());
    addEventListener("pageshow", () => this.wake());
  }

  start() {
    this.stop();
    const source = api.events();
    this.source = source;
    let fresh = true;
    source.addEventListener("open", () => {
      this.wait = 1000;
      this.state(true, fresh);
      fresh = false;
    });
    source.addEventListener("error", () => this.failed(source));
    for (const name of ["changed", "added", "removed", "noted", "totals", "reset"]) {
      source.addEventListener(name, (event) => {
        // Of a stream that was replaced, what is still in flight counts no more.
        if (this.source === source) this.heard(name, JSON.parse(event.data || "{}"));
      });
    }
  }

  stop() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = undefined;
  }

  failed(source) {
    if (this.source !== source) return;
    this.state(false);
    // CONNECTING: the browser tries again by itself, with Last-Event-ID. CLOSED: it was refused and gives up.
    if (source.readyState !== EventSource.CLOSED) return;
    this.stop();
    this.timer = setTimeout(() => this.again(), this.wait);
    this.wait = Math.min(this.wait * 2, 15_000);
  }

  async again() {
    try {
      await api.totals();
      this.start();
    } catch (problem) {
      if (problem.status === 401) return; // The page asks for the token; signing in starts the stream.
      this.timer = setTimeout(() => this.again(), this.wait);
      this.wait = Math.min(this.wait * 2, 15_000);
    }
  }

  visibilityChanged() {
    clearTimeout(this.hiding);
    if (document.hidden) {
      if (!this.source) return;
      this.hiding = setTimeout(() => this.sleep(), hiddenAfter);
    } else this.wake();
  }

  sleep() {
    if (!this.source) return;
    this.stop();
    this.asleep = true;
  }

  wake() {
    if (!this.asleep) return;
    this.asleep = false;
    this.start();
  }
}
