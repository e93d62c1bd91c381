// Finding links in what somebody pastes, types or drops.

const address = /\bhttps?:\/\/[^\s<>"'`\\^{}|]+/gi;

/** Takes off what ends a sentence rather than an address, and a bracket that was opened before it. */
function trim(link) {
  let text = link.replace(/[.,;:!?…。，；：！？、]+$/u, "");
  for (const [open, close] of ["()", "[]", "（）", "【】"]) {
    while (text.endsWith(close) && text.split(open).length < text.split(close).length) text = text.slice(0, -1);
  }
  return text.replace(/[.,;:!?]+$/, "");
}

/** The links in a text, each once, in their order. */
export function linksIn(text) {
  const found = new Set();
  for (const [match] of text.matchAll(address)) {
    const link = trim(match);
    if (URL.canParse(link)) found.add(link);
  }
  return [...found];
}

/** Lines of a text that are not empty, no comment, and without a link. */
export function linesWithout(text) {
  return text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line && !line.startsWith("#") && linksIn(line).length === 0);
}

const anchor = /<a\s[^>]*?\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))/gi;
const entities = { amp: "&", quot: '"', apos: "'", "#38": "&", "#x26": "&", "#39": "'", "#x27": "'" };

/** The links of anchors in markup of another page, which is read as text: no parser of the browser's gets to see it. */
function anchorsIn(html) {
  return [...html.matchAll(anchor)].flatMap(([, double, single, bare]) =>
    linksIn((double ?? single ?? bare).replace(/&(#?\w+);/g, (whole, name) => entities[name.toLowerCase()] ?? whole)));
}

/** Files that may be lists of links; larger ones are none. */
const isList = (file) => file.size <= 4 << 20 && (file.type.startsWith("text/") || /\.(txt|list|urls?)$/i.test(file.name));

/** The links of a drop or a paste: of a selection from another page, of a list of addresses, of text or text files. */
export async function linksOf(data) {
  // All is asked for before the first wait: afterwards a drop is empty.
  const [html, list, plain] = ["text/html", "text/uri-list", "text/plain"].map((type) => data.getData(type));
  const files = [...data.files].filter(isList);
  const found = new Set();
  for (const link of anchorsIn(html)) found.add(link);
  for (const line of list.split(/\r?\n/)) if (!line.startsWith("#")) linksIn(line).forEach((link) => found.add(link));
  if (found.size === 0 || plain.trim().split(/\s+/).length > 1) linksIn(plain).forEach((link) => found.add(link));
  for (const file of files) linksIn(await file.text()).forEach((link) => found.add(link));
  return [...found];
}

/** Whether something that is dragged over the page may hold links. */
export const mayHoldLinks = (data) =>
  data.types.some((type) => ["text/uri-list", "text/plain", "text/html", "Files"].includes(type));
