// The list. The document contains only the visible rows and the row with the focus, also for a long list.

import { Row } from "./row.js";
import { element, setAttribute } from "./dom.js";

/** Extra rows beyond either edge, so that fast scrolling does not show gaps. */
const margin = 6;
/** Browsers do not position elements reliably beyond about 16 million pixels. */
const tallest = 15_000_000;

export class List {
  /** `handlers`: `open(id)`, `toggle(ids)`, `menu(id, button)`, `selectionChanged(set)`. */
  constructor(scroller, rows, store, handlers) {
    Object.assign(this, { scroller, rows, store, handlers });
    this.shown = new Map();
    this.spare = [];
    this.selected = new Set();
    this.active = undefined;
    this.openId = undefined;
    this.marker = element("div", { class: "drop-line", hidden: true, role: "presentation" });
    scroller.addEventListener("scroll", () => this.schedule(), { passive: true });
    /** Has the height of a row, which the style sheet gives in rem and which depends on the font size. */
    this.probe = scroller.appendChild(element("div", { class: "probe" }));
    const observer = new ResizeObserver(() => this.measure());
    for (const each of [scroller, this.probe]) observer.observe(each);
    rows.addEventListener("click", (event) => this.clicked(event));
    rows.addEventListener("focusin", (event) => this.focused(event));
    rows.addEventListener("contextmenu", (event) => this.contextMenu(event));
    store.on("list", () => this.listChanged());
    store.on("changed", (ids) => this.changed(ids));
    store.on("removed", (id) => this.selected.delete(id) && this.handlers.selectionChanged(this.selected));
    this.measure();
  }

  /** Measures the row height. */
  measure() {
    this.height = this.probe.getBoundingClientRect().height || 72;
    for (const row of this.shown.values()) row.top = undefined;
    this.render();
  }

  listChanged() {
    if (this.active && !this.store.byId.has(this.active)) this.activeWent();
    if (!this.active || this.store.ids.indexOf(this.active) < 0) this.activeWent();
    this.render();
  }

  /** Moves the focus to the neighbour after the focused row was removed. */
  activeWent() {
    const { ids } = this.store;
    const hadFocus = this.rows.contains(document.activeElement);
    this.active = ids[Math.min(this.activeIndex ?? 0, ids.length - 1)];
    if (hadFocus && this.active) this.focus(this.active);
    else if (hadFocus) this.scroller.focus();
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.render();
    });
  }

  /** Number of rows that fit into the maximum scroll height. */
  get length() {
    return Math.min(this.store.ids.length, Math.floor(tallest / this.height));
  }

  render() {
    const { ids } = this.store;
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - margin);
    const end = Math.min(this.length, Math.ceil((scrollTop + clientHeight) / this.height) + margin);
    this.rows.style.setProperty("height", `${this.length * this.height}px`);
    setAttribute(this.rows, "aria-rowcount", this.store.total ?? -1);
    this.store.wanted = end + margin;
    if (end + 100 > ids.length) this.store.more();

    const wanted = [];
    for (let index = first; index < end; index += 1) wanted.push(index);
    const active = this.active === undefined ? -1 : ids.indexOf(this.active);
    if (active >= 0) this.activeIndex = active;
    // Keep the focused row in the document while it is scrolled out of view.
    if (active >= 0 && active < first) wanted.unshift(active);
    else if (active >= end && active < this.length) wanted.push(active);
    this.place(wanted.map((index) => [index, ids[index]]));
  }

  place(wanted) {
    const keep = new Set(wanted.map(([, id]) => id));
    const focus = this.rows.contains(document.activeElement) ? document.activeElement : undefined;
    for (const [id, row] of this.shown) {
      if (keep.has(id)) continue;
      this.shown.delete(id);
      row.element.remove();
      this.spare.push(row);
    }
    let next = this.rows.firstElementChild;
    for (const [index, id] of wanted) {
      let row = this.shown.get(id);
      if (!row) {
        row = this.spare.pop() ?? new Row();
        this.shown.set(id, row);
        this.show(row, id);
      }
      row.putAt(index, this.height);
      // Screen readers and Tab follow the order of the document, so it must match the order on the screen.
      if (row.element === next) next = next.nextElementSibling;
      else this.rows.insertBefore(row.element, next);
    }
    this.spare.length = Math.min(this.spare.length, 40);
    if (focus && focus !== document.activeElement && this.rows.contains(focus)) focus.focus({ preventScroll: true });
  }

  show(row, id) {
    const download = this.store.byId.get(id);
    if (!download) return;
    const { order, descending } = this.store.query;
    row.show(download, {
      selected: this.selected.has(id),
      active: id === this.active,
      open: id === this.openId,
      draggable: order === "queue" && !descending,
    });
  }

  changed(ids) {
    for (const [id, row] of this.shown) if (ids.has(id)) this.show(row, id);
  }

  /** Updates every row in the document after the language, the selection or the time changed. */
  refresh() {
    for (const [id, row] of this.shown) this.show(row, id);
  }

  /** Moves the focus to the row of `id` and scrolls the row into view. */
  focus(id) {
    const index = this.store.ids.indexOf(id);
    if (index < 0) return;
    this.active = id;
    this.activeIndex = index;
    this.reveal(index);
    this.render();
    this.refresh();
    this.shown.get(id)?.element.focus({ preventScroll: true });
  }

  reveal(index) {
    const top = index * this.height;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.scroller.scrollTop = top + this.height - clientHeight;
  }

  /** The downloads that an action applies to: the selection, or the focused row. */
  get targets() {
    if (this.selected.size) return this.store.ids.filter((id) => this.selected.has(id));
    return this.active ? [this.active] : [];
  }

  select(ids) {
    this.selected = new Set(ids);
    this.refresh();
    this.handlers.selectionChanged(this.selected);
  }

  selectRange(from, to) {
    const { ids } = this.store;
    const [low, high] = [from, to].sort((left, right) => left - right);
    this.select(ids.slice(low, high + 1));
  }

  /** Moves the focus by `step` rows. With `extend`, selects the rows in between. */
  go(step, { extend = false } = {}) {
    const { ids } = this.store;
    if (ids.length === 0) return;
    const from = Math.max(0, ids.indexOf(this.active));
    const to = Math.min(this.length - 1, Math.max(0, from + step));
    if (extend) {
      this.anchor ??= from;
      this.selectRange(this.anchor, to);
    } else {
      this.anchor = undefined;
    }
    this.focus(ids[to]);
  }

  /** Number of rows per screen, for Page Up and Page Down. */
  get page() {
    return Math.max(1, Math.floor(this.scroller.clientHeight / this.height) - 1);
  }

  rowOf(event) {
    const row = event.target.closest?.(".row");
    return row?.dataset.id;
  }

  clicked(event) {
    const id = this.rowOf(event);
    if (!id) return;
    const button = event.target.closest("button");
    if (button?.dataset.do === "menu") return this.handlers.menu(id, button);
    if (button?.dataset.do === "primary") return this.handlers.toggle([id]);
    const index = this.store.ids.indexOf(id);
    if (event.shiftKey) {
      this.anchor ??= Math.max(0, this.store.ids.indexOf(this.active));
      this.selectRange(this.anchor, index);
    } else if (event.ctrlKey || event.metaKey) {
      const selected = new Set(this.selected);
      if (!selected.delete(id)) selected.add(id);
      this.anchor = index;
      this.select(selected);
    } else {
      this.anchor = undefined;
      if (this.selected.size) this.select([]);
      this.focus(id);
      return this.handlers.open(id);
    }
    this.focus(id);
  }

  focused(event) {
    const id = this.rowOf(event);
    if (!id || id === this.active) return;
    const old = this.shown.get(this.active);
    this.active = id;
    this.activeIndex = this.store.ids.indexOf(id);
    if (old) this.show(old, old.id);
    this.show(this.shown.get(id), id);
  }

  contextMenu(event) {
    const id = this.rowOf(event);
    // Shift opens the browser's own menu.
    if (!id || event.shiftKey) return;
    event.preventDefault();
    this.focus(id);
    this.handlers.menu(id, this.shown.get(id).more, event);
  }
}
