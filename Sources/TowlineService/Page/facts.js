// The information about a download, as a list of terms.

import { element, setText } from "./dom.js";
import { bytes, when } from "./format.js";
import { t } from "./language.js";

/** Returns [term, text, kind] for each known value. `isolated` marks foreign text that may run in either direction. */
function terms(download) {
  const { followUp } = download;
  return [
    [t("fact.address"), download.url, "isolated"],
    [t("fact.directory"), download.directory, "isolated"],
    [t("fact.length"), download.completeLength === undefined ? t("unknown") : exact(download.completeLength)],
    [t("fact.held"), exact(download.heldBytes)],
    [t("fact.received"), download.receivedBytes ? exact(download.receivedBytes) : undefined],
    [t("fact.connections"), download.connections ? String(download.connections) : undefined],
    [t("fact.group"), download.group, "isolated"],
    [t("fact.added"), when(download.addedAt)],
    [t("fact.ended"), download.endedAt && when(download.endedAt)],
    [t("fact.followUp"), followUp && followUp.state !== "none" ? followUpText(followUp) : undefined],
    [t("fact.id"), download.id],
    // The keys of the metadata come from the client and are not translated.
    ...Object.entries(download.metadata ?? {}).map(([key, value]) => [key, value, "isolated"]),
  ].filter(([, text]) => text !== undefined && text !== "");
}

const exact = (value) => (value < 1000 ? bytes(value) : t("exact", { size: bytes(value), n: value }));

function followUpText(followUp) {
  const state = t(`followUp.${followUp.state}`);
  return followUp.reason ? `${state}: ${followUp.reason}` : state;
}

/** Writes the terms. Existing elements are reused, so that selected text stays selected. */
export function showFacts(list, download) {
  const wanted = terms(download);
  const shape = wanted.map(([term]) => term).join("\n");
  if (list.dataset.shape !== shape) {
    list.dataset.shape = shape;
    list.replaceChildren(...wanted.map(([term, , kind]) =>
      element("div", {}, element("dt", {}, term), element("dd", {}, element(kind ? "bdi" : "span", {})))));
  }
  const values = list.querySelectorAll("dd > *");
  wanted.forEach(([, text], index) => setText(values[index], text));
}
