// The data of the page: downloads, their order, totals, and rate samples.

import { api } from "./api.js";
import { fits, place, samePlace } from "./order.js";

const firstPage = 200;
const nextPages = 1000;
/** Number of downloads to read in advance. Further pages are read when the user scrolls near the end. */
const readAhead = 10_000;
const samples = 240;
const justNow = 10_000;
/** Milliseconds after which the list is read again for the reasons of queued downloads. */
const reasonsAfter = 1000;

export class Store {
  constructor() {
    this.query = { order: "queue", descending: false, states: [], group: "", text: "" };
    this.ids = [];
    this.byId = new Map();
    this.totals = undefined;
    this.next = undefined;
    this.loaded = false;
    /** Minimum number of downloads to read on a reload, so that visible rows stay in the list. */
    this.wanted = 0;
    this.rates = new Map();
    this.allRates = [];
    this.listeners = { list: [], changed: [], totals: [], moved: [], removed: [], noted: [], failed: [] };
    this.touched = new Map();
    this.dirty = new Set();
  }

  on(name, listener) {
    this.listeners[name].push(listener);
  }

  tell(name, ...values) {
    for (const listener of this.listeners[name]) listener(...values);
  }

  /** Changes the filter or the sort order. */
  show(query) {
    Object.assign(this.query, query);
    this.wanted = 0;
    return this.reload();
  }

  /** Reads the list again from the beginning. The old list stays until the new one is as long. */
  async reload() {
    this.reading?.abort();
    const reading = (this.reading = new AbortController());
    this.touched.clear();
    const ids = [];
    let cursor;
    try {
      do {
        const page = await this.page(cursor, cursor ? nextPages : firstPage, reading.signal);
        this.take(page, ids);
        cursor = page.next;
      } while (cursor && ids.length < this.wanted);
    } catch (problem) {
      if (problem.name !== "AbortError") this.tell("failed", problem);
      return;
    }
    if (reading.signal.aborted) return;
    this.ids = ids.filter((id) => this.byId.has(id));
    this.next = cursor;
    this.loaded = true;
    this.placeTouched();
    this.forgetOthers();
    this.tell("list");
    await this.readOn(reading, readAhead);
  }

  /** Reads the next page, unless a read is in progress. */
  async more() {
    if (!this.next || this.readingOn || !this.reading) return;
    await this.readOn(this.reading, this.ids.length + 1);
  }

  async readOn(reading, until) {
    this.readingOn = reading;
    try {
      while (this.next && this.ids.length < until && !reading.signal.aborted) {
        const page = await this.page(this.next, nextPages, reading.signal);
        if (reading.signal.aborted) return;
        this.take(page, this.ids);
        this.next = page.next;
        this.placeTouched();
        this.tell("list");
      }
    } catch (problem) {
      if (problem.name !== "AbortError") this.tell("failed", problem);
    } finally {
      if (this.readingOn === reading) this.readingOn = undefined;
    }
  }

  page(cursor, limit, signal) {
    const { order, descending, states, group, text } = this.query;
    return api.list({ order, descending, state: states.join(","), group, text, limit, cursor }, signal);
  }

  /** Merges a page. Events received since the read began are newer than the page. */
  take(page, ids) {
    const known = new Set(ids);
    for (const download of page.downloads) {
      const touched = this.touched.get(download.id);
      if (touched === "removed") continue;
      if (!touched) {
        // Update rows that are already shown.
        if (this.byId.has(download.id)) this.mark(download.id);
        this.byId.set(download.id, download);
      }
      const current = this.byId.get(download.id);
      if (current && !known.has(download.id) && fits(current, this.query)) ids.push(download.id);
    }
    if (page.totals) this.setTotals(page.totals);
  }

  /** Inserts downloads that events reported during the read and that no page contained. */
  placeTouched() {
    const listed = new Set(this.ids);
    for (const id of this.touched.keys()) {
      const download = this.byId.get(id);
      if (download && !listed.has(id) && fits(download, this.query)) this.insert(download);
    }
  }

  forgetOthers() {
    const listed = new Set(this.ids);
    for (const id of this.byId.keys()) {
      // A later page may contain an older state of a changed download.
      const isKept = listed.has(id) || id === this.kept || this.rates.has(id) || this.touched.has(id);
      if (!isKept) this.byId.delete(id);
    }
  }

  /** Applies the state of a download from an event or a response. */
  apply(download, isNew = false) {
    const old = this.byId.get(download.id);
    this.byId.set(download.id, download);
    this.touched.set(download.id, "changed");
    this.sample(download);
    const isIn = fits(download, this.query);
    const wasIn = old ? fits(old, this.query) && (!isNew || this.ids.includes(download.id)) : false;
    if (isIn !== wasIn || (isIn && old && !samePlace(this.query.order, old, download))) this.rank(download, isIn);
    // A small file may finish before its first event: report an unknown download that ended just now.
    const isNews = old ? old.state !== download.state : Date.now() - (download.endedAt ?? 0) < justNow;
    if (isNews) this.tell("moved", download);
    // The event precedes the decision which downloads start, so it lacks the limit that keeps this one queued.
    if (download.state === "queued" && !download.reason && old?.state !== "queued") this.reloadSoon();
    this.mark(download.id);
  }

  reloadSoon() {
    this.reloading ??= setTimeout(() => {
      this.reloading = undefined;
      this.reload();
    }, reasonsAfter);
  }

  rank(download, isIn) {
    const index = this.ids.indexOf(download.id);
    if (index >= 0) this.ids.splice(index, 1);
    if (isIn) this.insert(download);
    this.listChanged();
  }

  insert(download) {
    const at = place(this.ids, this.byId, download, this.query);
    // After the last read entry, the position is unknown: a later page will contain the download.
    if (at < this.ids.length || !this.next) this.ids.splice(at, 0, download.id);
  }

  remove(id) {
    this.touched.set(id, "removed");
    this.byId.delete(id);
    this.rates.delete(id);
    const index = this.ids.indexOf(id);
    if (index >= 0) this.ids.splice(index, 1);
    this.listChanged();
    this.tell("removed", id);
  }

  /** Moves a download in the list before the service confirms the move. */
  move(id, before) {
    const index = this.ids.indexOf(id);
    if (index < 0) return;
    this.ids.splice(index, 1);
    const at = before === null ? this.ids.length : this.ids.indexOf(before);
    this.ids.splice(at < 0 ? index : at, 0, id);
    this.listChanged();
  }

  setTotals(totals) {
    this.totals = totals;
    push(this.allRates, totals.rate ?? 0);
    this.tell("totals", totals);
  }

  /** Length of the whole list, or undefined if it is unknown. */
  get total() {
    if (!this.next) return this.ids.length;
    if (!this.totals || this.query.text || this.query.group) return undefined;
    const { counts } = this.totals;
    const states = this.query.states.length ? this.query.states : Object.keys(counts);
    return Math.max(this.ids.length, states.reduce((sum, state) => sum + (counts[state] ?? 0), 0));
  }

  sample(download) {
    if (download.rate === undefined && !this.rates.has(download.id)) return;
    const list = this.rates.get(download.id) ?? [];
    this.rates.set(download.id, list);
    push(list, download.rate ?? 0);
    // An inactive download keeps its graph only while its details are shown.
    if (download.rate === undefined && download.id !== this.kept) this.rates.delete(download.id);
  }

  /** Reports changes once per frame, so that a batch of events causes one repaint. */
  mark(id) {
    this.dirty.add(id);
    this.schedule();
  }

  listChanged() {
    this.listDirty = true;
    this.schedule();
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    // A hidden page gets no animation frames: use a timer instead.
    const run = () => this.flush();
    if (document.hidden) setTimeout(run, 250);
    else requestAnimationFrame(run);
  }

  flush() {
    this.scheduled = false;
    const { dirty, listDirty } = this;
    this.dirty = new Set();
    this.listDirty = false;
    if (listDirty) this.tell("list");
    if (dirty.size) this.tell("changed", dirty);
  }
}

/** Adds a sample. Samples are at least 500 ms apart; the oldest are dropped. */
function push(list, rate) {
  const now = Date.now();
  const last = list.at(-1);
  if (last && now - last.time < 500) last.rate = rate;
  else list.push({ time: now, rate });
  if (list.length > samples) list.splice(0, list.length - samples);
}
