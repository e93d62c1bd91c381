// The event stream. Events go to the store; the state of the connection goes to the banner.

import { api } from "./api.js";

// When the browser reconnects a stream, the service replays the missed events or sends `reset`. A stream that this file
// opens has no Last-Event-ID: `fresh` tells the listener to read the list again.

/** A hidden page closes its connection after this time, because browsers allow six connections per host. */
const hiddenAfter = 60_000;

export class Live {
  /** Calls `heard(name, data)` for each event, and `state(open, fresh)` when the stream opens or fails. */
  constructor(heard, state) {
    this.heard = heard;
    this.state = state;
    this.wait = 1000;
    document.addEventListener("visibilitychange", () => this.visibilityChanged());
    // A page in the back/forward cache would keep its connection, and six such pages would use up the limit.
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
        // Ignore events of a stream that was replaced.
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
    // CONNECTING: the browser reconnects automatically, with Last-Event-ID. CLOSED: the service refused the stream.
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
      if (problem.status === 401) return; // The page shows the sign-in dialog. Signing in starts the stream.
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
