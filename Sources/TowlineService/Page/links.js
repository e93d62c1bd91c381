// Finds links in pasted, typed or dropped text.

const address = /\bhttps?:\/\/[^\s<>"'`\\^{}|]+/gi;

/** Removes trailing punctuation, and a closing bracket that was opened before the link. */
function trim(link) {
  let text = link.replace(/[.,;:!?…。，；：！？、]+$/u, "");
  for (const [open, close] of ["()", "[]", "（）", "【】"]) {
    while (text.endsWith(close) && text.split(open).length < text.split(close).length) text = text.slice(0, -1);
  }
  return text.replace(/[.,;:!?]+$/, "");
}

/** Returns the links in a text, in order and without duplicates. */
export function linksIn(text) {
  const found = new Set();
  for (const [match] of text.matchAll(address)) {
    const link = trim(match);
    if (URL.canParse(link)) found.add(link);
  }
  return [...found];
}

/** Returns the lines that contain no link, without empty lines and comments. */
export function linesWithout(text) {
  return text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line && !line.startsWith("#") && linksIn(line).length === 0);
}

const anchor = /<a\s[^>]*?\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))/gi;
const entities = { amp: "&", quot: '"', apos: "'", "#38": "&", "#x26": "&", "#39": "'", "#x27": "'" };

/** Returns the links of anchors in foreign markup. The markup is searched as text and never parsed by the browser. */
function anchorsIn(html) {
  return [...html.matchAll(anchor)].flatMap(([, double, single, bare]) =>
    linksIn((double ?? single ?? bare).replace(/&(#?\w+);/g, (whole, name) => entities[name.toLowerCase()] ?? whole)));
}

/** True if a file may be a list of links: a text file of at most 4 MiB. */
const isList = (file) => file.size <= 4 << 20 && (file.type.startsWith("text/") || /\.(txt|list|urls?)$/i.test(file.name));

/** Returns the links of a drop or a paste: from HTML, a URI list, plain text or text files. */
export async function linksOf(data) {
  // Read all data before the first `await`: afterwards the data of a drop is gone.
  const [html, list, plain] = ["text/html", "text/uri-list", "text/plain"].map((type) => data.getData(type));
  const files = [...data.files].filter(isList);
  const found = new Set();
  for (const link of anchorsIn(html)) found.add(link);
  for (const line of list.split(/\r?\n/)) if (!line.startsWith("#")) linksIn(line).forEach((link) => found.add(link));
  if (found.size === 0 || plain.trim().split(/\s+/).length > 1) linksIn(plain).forEach((link) => found.add(link));
  for (const file of files) linksIn(await file.text()).forEach((link) => found.add(link));
  return [...found];
}

/** True if dragged data may contain links. */
export const mayHoldLinks = (data) =>
  data.types.some((type) => ["text/uri-list", "text/plain", "text/html", "Files"].includes(type));
