// The details panel of one download: state, segments, download rate, information, options and timeline.

import { actionLabel, can } from "./actions.js";
import { api } from "./api.js";
import { complain } from "./announce.js";
import { Controls } from "./controls.js";
import { byId, element, setAttribute, setText } from "./dom.js";
import { showFacts } from "./facts.js";
import { bytes, duration, fraction, isComplete, nameOf, percent, rate, sizes } from "./format.js";
import { paintRates } from "./graph.js";
import { t } from "./language.js";
import { makeBar, showProgress, stateText } from "./row.js";
import { SegmentMap } from "./segments.js";
import { Timeline } from "./timeline.js";

const mapEvery = 1000;
/** The page size of the timeline in the API. */
const notesAtOnce = 1000;
const playable = /\.(mp4|m4v|webm|mkv|mov|ogv|mp3|m4a|ogg|opus|flac|wav)$/i;

export class Details {
  /** `closed()` is called after the panel is closed. */
  constructor(store, actions, closed) {
    Object.assign(this, { store, actions, closed });
    this.panel = byId("details");
    store.on("changed", (ids) => ids.has(this.id) && this.show());
    store.on("removed", (id) => id === this.id && this.close());
    store.on("noted", (note) => note.id === this.id && this.noted());
  }

  get download() {
    return this.store.byId.get(this.id);
  }

  open(id) {
    if (this.id === id) return;
    this.stop();
    this.id = this.store.kept = id;
    this.build();
    this.panel.hidden = false;
    document.body.classList.add("has-details");
    this.panel.scrollTop = 0;
    this.show();
    this.start();
  }

  close() {
    if (this.id === undefined) return;
    const hadFocus = this.panel.contains(document.activeElement);
    this.stop();
    this.id = this.store.kept = undefined;
    this.panel.hidden = true;
    this.panel.replaceChildren();
    document.body.classList.remove("has-details");
    this.closed(hadFocus);
  }

  /** Builds the panel again for the same download, after the language changed. */
  rebuild() {
    const { id } = this;
    if (id === undefined) return;
    this.stop();
    this.build();
    this.show();
    this.start();
  }

  build() {
    this.name = element("bdi", {});
    this.state = element("p", { class: "details-state", dir: "auto" });
    // The message comes from the service, in English.
    this.message = element("p", { class: "details-message", dir: "auto", lang: "en" });
    this.bar = makeBar();
    this.big = element("span", { class: "big" });
    this.figures = element("span", { class: "figures" });
    this.buttons = element("div", { class: "details-actions", role: "toolbar", "aria-label": t("actions") });
    this.player = element("div", { class: "player" });
    this.map = new SegmentMap();
    this.canvas = element("canvas", { class: "graph", role: "img" });
    this.rateWords = element("p", { class: "note rate-words" });
    this.facts = element("dl", { class: "facts" });
    this.controls = new Controls(this.store, this.actions, this.id);
    this.timeline = new Timeline();
    this.shownButtons = "";
    this.stage = undefined;
    this.hasNoMap = false;
    const close = element("button", {
      type: "button", class: "icon-button details-close", "aria-label": t("closeDetails"), title: t("closeDetails"),
      icon: "close", onclick: () => this.close(),
    });
    setAttribute(this.panel, "aria-label", t("details"));
    this.panel.replaceChildren(
      element("header", {}, element("h2", {}, this.name), close),
      this.state, this.message,
      element("div", { class: "details-figures" }, this.big, this.figures),
      this.bar, this.buttons, this.player,
      section(t("segmentMap"), this.map.element),
      section(t("rateGraph"), this.canvas, this.rateWords),
      section(t("facts"), this.facts),
      section(t("change"), this.controls.element),
      section(t("timeline"), this.timeline.element));
  }

  start() {
    const reading = (this.reading = new AbortController());
    this.readMap(reading);
    this.readTimeline(reading);
    this.timer = setInterval(() => this.tick(reading), mapEvery);
  }

  stop() {
    this.reading?.abort();
    clearInterval(this.timer);
    this.map?.observer.disconnect();
  }

  tick(reading) {
    if (document.hidden) return;
    const { download } = this;
    if (!download) return;
    this.paintGraph(download);
    if (download.state === "waiting") setText(this.state, stateText(download));
    if (document.body.classList.contains("unheard")) return;
    if (download.connections > 0 || download.state !== this.mapState || download.heldBytes !== this.mapHeld) {
      this.readMap(reading);
    }
  }

  async readMap(reading) {
    if (this.isReadingMap || this.hasNoMap) return;
    this.isReadingMap = true;
    try {
      const { download } = this;
      const map = await api.segments(this.id, reading.signal);
      if (reading.signal.aborted || !download) return;
      [this.mapState, this.mapHeld] = [download.state, download.heldBytes];
      // An event may have arrived during the read.
      this.map.show(map, this.download ?? download);
    } catch (problem) {
      // The download was removed: stop requesting its segments.
      if (problem.status === 404) this.hasNoMap = true;
      // The banner already shows that the service does not respond.
      else if (!(problem instanceof TypeError)) complain(problem);
    } finally {
      this.isReadingMap = false;
    }
  }

  /** Reads the new entries of the timeline. Only one read runs at a time; it repeats if entries arrived meanwhile. */
  async readTimeline(reading) {
    this.hasNews = true;
    if (this.readingTimeline === reading) return;
    this.readingTimeline = reading;
    const { timeline } = this;
    try {
      while (this.hasNews && !reading.signal.aborted) {
        this.hasNews = false;
        const { notes } = await api.timeline(this.id, timeline.last, reading.signal);
        timeline.add(notes);
        if (notes.length === notesAtOnce) this.hasNews = true;
      }
    } catch (problem) {
      if (problem.status !== 404 && !(problem instanceof TypeError)) complain(problem);
    } finally {
      if (this.readingTimeline === reading) this.readingTimeline = undefined;
    }
  }

  /** Handles a `noted` event. The event precedes the stored entry and lacks its number, so the entry is read again. */
  async noted() {
    const { reading, timeline } = this;
    const before = timeline.last;
    await this.readTimeline(reading);
    if (timeline.last === before) setTimeout(() => reading.signal.aborted || this.readTimeline(reading), mapEvery);
  }

  /** Reads the shown download again after events were missed, even if it is not in the current list. */
  async catchUp() {
    const { id, reading } = this;
    if (id === undefined) return;
    try {
      this.store.apply(await api.get(id, reading.signal));
      await this.readTimeline(reading);
    } catch (problem) {
      if (problem.status === 404) this.store.remove(id);
    }
  }

  show() {
    const { download } = this;
    if (!download) return;
    setText(this.name, nameOf(download));
    setText(this.state, stateText(download));
    const message = download.error?.message ?? download.reason ?? "";
    setText(this.message, message);
    this.message.hidden = message === "" || this.state.textContent.endsWith(message);
    setAttribute(this.panel, "data-state", download.state);
    setAttribute(this.bar, "aria-label", t("progressOf", { name: nameOf(download) }));
    showProgress(this.bar, download);
    const done = fraction(download);
    setText(this.big, done === undefined ? bytes(download.heldBytes) : percent(done));
    setText(this.figures, this.figureWords(download));
    // Some timeline entries, such as an end or a pause, have no event of their own.
    const stage = `${download.state} ${download.followUp?.state}`;
    if (this.stage !== undefined && this.stage !== stage) this.readTimeline(this.reading);
    this.stage = stage;
    this.map.showShare(download);
    this.showButtons(download);
    this.showPlayer(download);
    showFacts(this.facts, download);
    this.controls.show(download);
    this.paintGraph(download);
  }

  figureWords(download) {
    // Without a complete length, the big figure is the size.
    const words = fraction(download) === undefined ? [] : [sizes(download.heldBytes, download.completeLength)];
    if (download.rate !== undefined && download.state === "downloading") words.push(rate(download.rate));
    if (download.remaining !== undefined && download.state === "downloading") {
      words.push(t("left", { time: duration(download.remaining) }));
    }
    // Allow line breaks between the parts only.
    return words.map((part) => part.replaceAll(" ", "\u00a0")).join(" · ");
  }

  showButtons(download) {
    const possible = ["resume", "pause", "retry", "cancel", "remove"].filter((action) => can(action, download));
    const kept = possible.map((action) => actionLabel(action, download)).join() + download.state;
    // A rebuilt button loses the focus: rebuild only when the set of actions changes.
    if (kept === this.shownButtons) return;
    this.shownButtons = kept;
    const focused = this.buttons.contains(document.activeElement);
    this.buttons.replaceChildren(...possible.map((action) =>
      element(
        "button",
        { type: "button", class: "quiet", "data-action": action, icon: action,
          onclick: () => this.actions.perform(action, [this.id]) },
        element("span", {}, actionLabel(action, download)))));
    if (isComplete(download)) {
      this.buttons.prepend(element(
        "a", { class: "quiet button", href: api.contentAddress(download.id), download: download.name ?? "", icon: "save" },
        element("span", {}, t("saveCopy"))));
    }
    if (focused) this.buttons.firstElementChild?.focus();
  }

  /** Shows a player for audio and video. The service downloads the bytes first that the player requests. */
  showPlayer(download) {
    const isPlayable = playable.test(nameOf(download)) && !["failed", "cancelled"].includes(download.state);
    if (!isPlayable || this.player.childElementCount) return;
    const start = element("button", { type: "button", class: "quiet", icon: "resume" }, element("span", {}, t("play")));
    start.addEventListener("click", () => {
      const isSound = /\.(mp3|m4a|ogg|opus|flac|wav)$/i.test(nameOf(download));
      const media = element(isSound ? "audio" : "video", { controls: true, src: api.contentAddress(download.id) });
      media.addEventListener("error", () => this.player.append(element("p", { class: "note" }, t("cannotPlay"))), { once: true });
      this.player.replaceChildren(media);
      media.play().catch(() => {}); // Autoplay may be blocked: the user can press the player's own button.
      media.focus();
    });
    this.player.replaceChildren(start);
  }

  repaint() {
    if (!this.download) return;
    this.map.paint();
    this.paintGraph(this.download);
  }

  paintGraph(download) {
    const samples = this.store.rates.get(download.id) ?? [];
    const { highest, last } = paintRates(this.canvas, samples, { axis: true });
    const words = highest > 0 ? t("rateWords", { now: rate(last), highest: rate(highest) }) : t("rateNone");
    setText(this.rateWords, words);
    setAttribute(this.canvas, "aria-label", words);
  }
}

function section(title, ...content) {
  return element("section", {}, element("h3", {}, title), ...content);
}
