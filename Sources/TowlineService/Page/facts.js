// What is known of a download, as a list of terms.

import { element, setText } from "./dom.js";
import { bytes, when } from "./format.js";
import { t } from "./language.js";
import { errorText } from "./row.js";

/** [name of the term, text]; what is unknown is left out. `isolated`: text from elsewhere, in whichever direction. */
function terms(download) {
  const { followUp } = download;
  return [
    ["fact.address", download.url, "isolated"],
    ["fact.directory", download.directory, "isolated"],
    ["fact.error", download.error && errorText(download)],
    // The message is the service's, in English.
    ["fact.message", download.error?.message, "isolated"],
    ["fact.reason", download.error ? undefined : download.reason, "isolated"],
    ["fact.length", download.completeLength === undefined ? t("unknown") : exact(download.completeLength)],
    ["fact.held", exact(download.heldBytes)],
    ["fact.received", download.receivedBytes ? exact(download.receivedBytes) : undefined],
    ["fact.connections", download.connections ? String(download.connections) : undefined],
    ["fact.group", download.group, "isolated"],
    ["fact.added", when(download.addedAt)],
    ["fact.ended", download.endedAt && when(download.endedAt)],
    ["fact.followUp", followUp && followUp.state !== "none" ? followUpText(followUp) : undefined],
    ["fact.id", download.id],
    ...Object.entries(download.metadata ?? {}).map(([key, value]) => [key, value, "isolated"]),
  ].filter(([, text]) => text !== undefined && text !== "");
}

const exact = (value) => (value < 1000 ? bytes(value) : t("exact", { size: bytes(value), n: value }));

function followUpText(followUp) {
  const state = t(`followUp.${followUp.state}`);
  return followUp.reason ? `${state}: ${followUp.reason}` : state;
}

/** Writes the terms; those that are there already keep their place, so that a text can be marked and copied. */
export function showFacts(list, download) {
  const wanted = terms(download);
  const shape = wanted.map(([key]) => key).join("\n");
  if (list.dataset.shape !== shape) {
    list.dataset.shape = shape;
    list.replaceChildren(...wanted.map(([key, , kind]) =>
      element("div", {}, element("dt", {}, t(key)), element("dd", {}, element(kind ? "bdi" : "span", {})))));
  }
  const values = list.querySelectorAll("dd > *");
  wanted.forEach(([, text], index) => setText(values[index], text));
}
