// What the page knows: the downloads that were read, their order, the totals, and how rates went.

import { api } from "./api.js";
import { fits, place, samePlace } from "./order.js";

const firstPage = 200;
const nextPages = 1000;
/** So many are read ahead of the scrolling; beyond, pages are read as the end comes near. */
const readAhead = 10_000;
const samples = 240;
const justNow = 10_000;

export class Store {
  constructor() {
    this.query = { order: "queue", descending: false, states: [], group: "", text: "" };
    this.ids = [];
    this.byId = new Map();
    this.totals = undefined;
    this.next = undefined;
    this.loaded = false;
    /** The list is read at least this far again, so that what somebody looks at does not go away. */
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

  /** Shows another selection or order. */
  show(query) {
    Object.assign(this.query, query);
    this.wanted = 0;
    return this.reload();
  }

  /** Reads the list again from its beginning. What is shown stays until as much of the new one is there. */
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

  /** More is needed than is there: the next page, once. */
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

  /** Takes a page in. What an event said since the reading began is newer than the page. */
  take(page, ids) {
    const known = new Set(ids);
    for (const download of page.downloads) {
      const touched = this.touched.get(download.id);
      if (touched === "removed") continue;
      if (!touched) {
        // Rows that are shown already are told.
        if (this.byId.has(download.id)) this.mark(download.id);
        this.byId.set(download.id, download);
      }
      const current = this.byId.get(download.id);
      if (current && !known.has(download.id) && fits(current, this.query)) ids.push(download.id);
    }
    if (page.totals) this.setTotals(page.totals);
  }

  /** What events told of while the list was read, and no page brought: it was added since, or has come to another place. */
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
      // Of what was touched a later page may have an older word.
      const isKept = listed.has(id) || id === this.kept || this.rates.has(id) || this.touched.has(id);
      if (!isKept) this.byId.delete(id);
    }
  }

  /** What an event, or the answer to a request, says of one download. */
  apply(download, isNew = false) {
    const old = this.byId.get(download.id);
    this.byId.set(download.id, download);
    this.touched.set(download.id, "changed");
    this.sample(download);
    const isIn = fits(download, this.query);
    const wasIn = old ? fits(old, this.query) && (!isNew || this.ids.includes(download.id)) : false;
    if (isIn !== wasIn || (isIn && old && !samePlace(this.query.order, old, download))) this.rank(download, isIn);
    // A small file is whole before the first word of it: what is unknown and ended just now is news, too.
    const isNews = old ? old.state !== download.state : Date.now() - (download.endedAt ?? 0) < justNow;
    if (isNews) this.tell("moved", download);
    this.mark(download.id);
  }

  rank(download, isIn) {
    const index = this.ids.indexOf(download.id);
    if (index >= 0) this.ids.splice(index, 1);
    if (isIn) this.insert(download);
    this.listChanged();
  }

  insert(download) {
    const at = place(this.ids, this.byId, download, this.query);
    // Behind the last one that was read there may be others before it: the page it belongs to will bring it.
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

  /** Moves it in the list that is shown, ahead of the service's word on it. */
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

  /** How many the list has in all, or undefined where only reading on would tell. */
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
    // What stands still keeps its graph for as long as somebody looks at it.
    if (download.rate === undefined && download.id !== this.kept) this.rates.delete(download.id);
  }

  /** Tells of many changes once a frame: a batch of events is one painting. */
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
    // A page in the background gets no frames; it keeps up all the same, so that nothing piles up.
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

/** Samples are half a second apart at least; the oldest go. */
function push(list, rate) {
  const now = Date.now();
  const last = list.at(-1);
  if (last && now - last.time < 500) last.rate = rate;
  else list.push({ time: now, rate });
  if (list.length > samples) list.splice(0, list.length - samples);
}
