// The header: total rate, summary, filters with their counts, and sort order.

import { byId, element, setAttribute, setText } from "./dom.js";
import { count, rate, sizes } from "./format.js";
import { paintRates } from "./graph.js";
import { t } from "./language.js";
import { recall, remember } from "./memory.js";

/** Filters by name, each with the states that it shows. */
const filters = {
  all: [],
  active: ["active"],
  queued: ["queued", "waiting"],
  paused: ["paused"],
  finished: ["finished"],
  failed: ["failed", "follow-up-failed", "cancelled"],
};
const orders = ["queue", "added", "name", "size", "state", "ended"];
const typingPause = 200;

/** Marks the edges of a row of filters that continues beyond them. */
function showEdges(row) {
  const { classList } = row.parentElement;
  classList.toggle("more-before", row.scrollLeft > 1);
  classList.toggle("more-after", row.scrollLeft + row.clientWidth < row.scrollWidth - 1);
}

export class Header {
  constructor(store) {
    this.store = store;
    this.filter = "all";
    this.search = byId("search");
    this.order = byId("order");
    this.group = byId("group");
    this.direction = byId("direction");
    this.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.store.show({ text: this.search.value.trim() }), typingPause);
    });
    this.order.addEventListener("change", () => this.reorder(this.order.value, false));
    this.direction.addEventListener("click", () => this.reorder(this.order.value, !this.store.query.descending));
    this.group.addEventListener("change", () => this.store.show({ group: this.group.value }));
    const [order, way] = recall("order", "queue").split(" ");
    if (orders.includes(order)) Object.assign(store.query, { order, descending: way === "descending" });
    this.groups = new Set();
    store.on("totals", (totals) => this.showTotals(totals));
    store.on("list", () => this.findGroups());
    addEventListener("resize", () => this.paint());
    const filterRow = byId("filters");
    filterRow.addEventListener("scroll", () => showEdges(filterRow), { passive: true });
    new ResizeObserver(() => showEdges(filterRow)).observe(filterRow);
    this.build();
  }

  build() {
    this.buttons = Object.fromEntries(Object.keys(filters).map((name) => {
      const number = element("span", { class: "number" });
      const button = element(
        "button", { type: "button", class: "filter", "data-filter": name, onclick: () => this.choose(name) },
        element("span", {}, t(`filter.${name}`)), number);
      return [name, { button, number }];
    }));
    byId("filters").replaceChildren(...Object.values(this.buttons).map(({ button }) => button));
    this.order.replaceChildren(...orders.map((order) => element("option", { value: order }, t(`order.${order}`))));
    this.showGroups();
    this.showQuery();
    if (this.store.totals) this.showTotals(this.store.totals);
  }

  choose(name) {
    this.filter = name;
    this.showQuery();
    this.store.show({ states: filters[name] });
  }

  reorder(order, descending) {
    remember("order", descending ? `${order} descending` : order);
    this.store.show({ order, descending });
    this.showQuery();
  }

  showQuery() {
    const { order, descending } = this.store.query;
    for (const [name, { button }] of Object.entries(this.buttons)) setAttribute(button, "aria-pressed", String(name === this.filter));
    this.order.value = order;
    const words = t(descending ? "descending" : "ascending");
    setAttribute(this.direction, "aria-label", words);
    setAttribute(this.direction, "title", words);
    this.direction.classList.toggle("descending", descending);
  }

  /** True if a filter, a group or a search restricts the list. */
  get isNarrowed() {
    const { states, group, text } = this.store.query;
    return states.length > 0 || group !== "" || text !== "";
  }

  clear() {
    this.search.value = "";
    this.group.value = "";
    this.filter = "all";
    this.showQuery();
    return this.store.show({ states: [], group: "", text: "" });
  }

  showTotals(totals) {
    const { counts } = totals;
    const sum = (names) => names.reduce((total, name) => total + (counts[name] ?? 0), 0);
    for (const [name, { button, number }] of Object.entries(this.buttons)) {
      const n = sum(filters[name].length ? filters[name] : Object.keys(counts));
      setText(number, n ? count(n) : "");
      button.classList.toggle("none", n === 0 && name !== "all");
    }
    const current = totals.rate ?? 0;
    const running = counts.active ?? 0;
    showEdges(byId("filters"));
    setText(byId("rate-now"), rate(current));
    document.body.classList.toggle("idle", running === 0);
    setText(byId("sentence"), this.sentence(totals));
    byId("pause-all").disabled = sum(["active", "queued", "waiting"]) === 0;
    byId("resume-all").disabled = (counts.paused ?? 0) === 0;
    this.showTitle();
    this.paint();
  }

  /** Shows in the title of the tab the number of active downloads and their rate, or that the connection is lost. */
  showTitle() {
    const { counts = {}, rate: current = 0 } = this.store.totals ?? {};
    const isLost = document.body.classList.contains("unheard");
    const running = counts.active ? `${count(counts.active)} · ${rate(current)}` : "";
    const title = [isLost ? t("titleLost") : running, "Towline"].filter(Boolean).join(" – ");
    if (document.title !== title) document.title = title;
  }

  sentence({ counts, heldBytes, completeLength }) {
    const numbers = { active: counts.active ?? 0, waiting: (counts.queued ?? 0) + (counts.waiting ?? 0), paused: counts.paused ?? 0, failed: (counts.failed ?? 0) + (counts["follow-up-failed"] ?? 0) };
    const parts = Object.keys(numbers).filter((name) => numbers[name]).map((name) => t(`sum.${name}`, { n: numbers[name] }));
    if (parts.length === 0) return t(counts.finished ? "allDone" : "nothingYet");
    if (completeLength > heldBytes) parts.push(sizes(heldBytes, completeLength));
    // Allow line breaks between the parts only.
    return parts.map((part) => part.replaceAll(" ", "\u00a0")).join(" · ");
  }

  paint() {
    paintRates(byId("spark"), this.store.allRates);
  }

  addGroups(names) {
    const before = this.groups.size;
    names.forEach((name) => name && this.groups.add(name));
    if (this.groups.size !== before) this.showGroups();
  }

  findGroups() {
    const { ids, byId: all } = this.store;
    // New groups appear at either end of the list. Scanning all of a long list each time would be slow.
    const some = ids.length > 2000 ? [...ids.slice(0, 1000), ...ids.slice(-1000)] : ids;
    this.addGroups(some.map((id) => all.get(id)?.group));
  }

  showGroups() {
    const chosen = this.group.value;
    this.group.hidden = this.groups.size === 0;
    this.group.replaceChildren(
      element("option", { value: "" }, t("allGroups")),
      ...[...this.groups].sort().map((name) => element("option", { value: name }, name)));
    this.group.value = chosen;
  }
}
