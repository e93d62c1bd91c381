// Which downloads belong to the list that is shown, and in which order, for what events bring in between two readings.

import { nameOf } from "./format.js";

/** The order of the states in the service's own list. */
const states = ["queued", "active", "waiting", "paused", "finished", "failed", "cancelled"];

/** The state to filter by: all that a running transfer does is `active`. */
export function group(state) {
  return ["connecting", "downloading", "verifying", "publishing"].includes(state) ? "active" : state;
}

const compare = (left, right) => (left < right ? -1 : left > right ? 1 : 0);

/** What a download is ordered by; undefined comes first, as in the service. */
const keys = {
  // Where among those of one priority is known to the service alone: what comes in goes behind them.
  queue: (download) => -download.priority,
  added: (download) => download.addedAt,
  name: (download) => nameOf(download).toLowerCase(),
  size: (download) => download.completeLength ?? -1,
  state: (download) => states.indexOf(group(download.state)),
  ended: (download) => download.endedAt ?? -1,
};

/** Whether two versions of a download stand at the same place. */
export const samePlace = (order, one, other) => compare(keys[order](one), keys[order](other)) === 0;

/** Where `download` goes in `ids`, which are in order: behind those that equal it. */
export function place(ids, byId, download, { order, descending }) {
  const key = keys[order];
  const sign = descending ? -1 : 1;
  const own = key(download);
  let [low, high] = [0, ids.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = byId.get(ids[middle]);
    const difference = compare(own, key(other)) || (order === "queue" ? sign : compare(download.id, other.id));
    if (difference * sign < 0) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Whether it is among those asked for. */
export function fits(download, { states: wanted, group: name, text }) {
  if (wanted.length && !wanted.includes(group(download.state))) return false;
  if (name && download.group !== name) return false;
  if (!text) return true;
  const needle = text.toLowerCase();
  return (download.name ?? "").toLowerCase().includes(needle) || download.url.toLowerCase().includes(needle);
}
