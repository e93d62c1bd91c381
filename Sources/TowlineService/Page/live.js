// The event stream. Events go to the store; the state of the connection goes to the banner.

import { address, api } from "./api.js";

// When the browser reconnects a stream, the service replays the missed events or sends `reset`. A stream that this file
// opens has no Last-Event-ID: `fresh` tells the listener to read the list again.

/** A hidden page leaves the stream after this time, because nobody reads it. */
const hiddenAfter = 60_000;
/** A stream without any event for this time is dead: the service sends `alive` every 10 seconds. */
const silentAfter = 25_000;
/** A stream without an event for this time may be held back by a proxy: the page reads the list at this interval. */
const heldBackAfter = 12_000;
const readEvery = 3000;

/** The event stream that all tabs share, from the worker stream.js, with the interface of an `EventSource`. */
class SharedStream extends EventTarget {
  constructor() {
    super();
    this.readyState = EventSource.CONNECTING;
    const worker = new SharedWorker(address("page/stream.js"), "towline-stream");
    this.port = worker.port;
    this.port.onmessage = ({ data: { name, data, state = EventSource.OPEN, fresh } }) => {
      this.readyState = state;
      this.dispatchEvent(Object.assign(new MessageEvent(name, { data }), { fresh }));
    };
    // The script did not load, for example because a proxy refuses it.
    worker.addEventListener("error", () => {
      SharedStream.isUsable = false;
      this.readyState = EventSource.CLOSED;
      this.dispatchEvent(new Event("error"));
    });
  }

  close() {
    this.readyState = EventSource.CLOSED;
    // The worker closes the port: a port that is closed here may lose the message.
    this.port.onmessage = null;
    this.port.postMessage("leave");
  }
}
SharedStream.isUsable = "SharedWorker" in globalThis;

/** Opens the shared stream, or a stream of this tab if the browser has no shared workers or blocks the site's data. */
function openStream() {
  if (SharedStream.isUsable) {
    try {
      return new SharedStream();
    } catch {
      SharedStream.isUsable = false;
    }
  }
  return api.events();
}

export class Live {
  /**
   * Calls `heard(name, data)` for each event, and `state(open, {fresh, silent})` when the stream opens, fails, or falls
   * silent. The way to the service may fail without an error, for example when the network or a tunnel is lost.
   */
  constructor(heard, state) {
    this.heard = heard;
    this.state = state;
    this.wait = 1000;
    this.lastRead = 0;
    document.addEventListener("visibilitychange", () => this.visibilityChanged());
    // A page in the back/forward cache hears nothing.
    addEventListener("pagehide", () => this.sleep());
    addEventListener("pageshow", () => this.wake());
  }

  start() {
    this.stop();
    const source = openStream();
    this.source = source;
    this.watch();
    // The service sends the first event at once.
    this.lastEvent = Date.now() - heldBackAfter + readEvery;
    this.nextRead = 0;
    let fresh = true;
    source.addEventListener("open", (event) => {
      if (this.source !== source) return;
      this.wait = 1000;
      this.watch();
      this.state(true, { fresh: fresh || event.fresh });
      fresh = false;
    });
    source.addEventListener("error", () => this.failed(source));
    source.addEventListener("alive", () => this.source === source && this.heardEvent());
    for (const name of ["changed", "added", "removed", "noted", "notice", "totals", "reset"]) {
      source.addEventListener(name, (event) => {
        // Ignore events of a stream that was replaced.
        if (this.source !== source) return;
        this.heardEvent();
        this.heard(name, JSON.parse(event.data || "{}"));
      });
    }
  }

  heardEvent() {
    this.lastEvent = Date.now();
    this.watch();
  }

  /** Starts the time after which the stream counts as silent. */
  watch() {
    this.lastSign = Date.now();
    this.watchdog ??= setInterval(() => {
      if (Date.now() - this.lastSign < silentAfter) {
        if (Date.now() - this.lastEvent >= heldBackAfter) this.read();
        return;
      }
      this.stop();
      if (Date.now() - this.lastRead > heldBackAfter) this.state(false, { silent: true });
      this.again();
    }, 1000);
  }

  /** Reads the list without the stream, if the service responds. */
  async read() {
    if (Date.now() < this.nextRead) return;
    this.nextRead = Date.now() + readEvery;
    const { source } = this;
    // `again` handles a service that does not respond.
    const responds = await api.totals(AbortSignal.timeout(silentAfter)).then(() => true, () => false);
    if (!responds || this.source !== source) return;
    this.lastRead = Date.now();
    this.state(true, { fresh: true });
  }

  stop() {
    clearTimeout(this.timer);
    clearInterval(this.watchdog);
    this.watchdog = undefined;
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
      await api.totals(AbortSignal.timeout(silentAfter));
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
