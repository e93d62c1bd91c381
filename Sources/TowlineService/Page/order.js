// Filters and sorts downloads that events add or change between two reads of the list.

import { nameOf } from "./format.js";

/** The sort order of the states, as in the service. */
const states = ["queued", "active", "waiting", "paused", "finished", "failed", "cancelled", "follow-up-failed"];

/** The state to filter by: all states of a running transfer count as `active`. */
export function group(state) {
  return ["connecting", "downloading", "verifying", "publishing"].includes(state) ? "active" : state;
}

const compare = (left, right) => (left < right ? -1 : left > right ? 1 : 0);

/** Sort keys. Undefined values sort first, as in the service. */
const keys = {
  // Only the service knows the order within a priority: new downloads go last within their priority.
  queue: (download) => -download.priority,
  added: (download) => download.addedAt,
  name: (download) => nameOf(download).toLowerCase(),
  size: (download) => download.completeLength ?? -1,
  state: (download) => states.indexOf(group(download.state)),
  ended: (download) => download.endedAt ?? -1,
};

/** True if two versions of a download have the same sort key. */
export const samePlace = (order, one, other) => compare(keys[order](one), keys[order](other)) === 0;

/** The index in the sorted `ids` at which to insert `download`: after entries with an equal key. */
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

/** Letters with several lower-case forms, as in the service. */
const letterForms = [["ß", "ss"], ["ς", "σ"], ["i\u0307", "i"]];

function folded(text) {
  const replaced = (all, [form, letter]) => all.replaceAll(form, letter);
  return letterForms.reduce(replaced, text.toLowerCase().normalize("NFC"));
}

/** True if the download matches the query: each word of its text is in the name or the URL, as in the service. */
export function fits(download, { states: wanted, group: name, text }) {
  if (wanted.length && !wanted.includes(group(download.state))) return false;
  if (name && download.group !== name) return false;
  if (!text) return true;
  const searched = folded(`${download.name ?? ""}\n${nameOf(download)}\n${download.url}`);
  return folded(text).split(/\s+/).every((word) => searched.includes(word));
}
