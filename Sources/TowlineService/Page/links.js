// Finds links in pasted, typed or dropped text. The service reads the text, so that the page, `tow add -i` and other
// clients find the same links.

import { api } from "./api.js";

/** A line that is one link: it has no characters that may end a link, and no second link. */
const plain = /^https?:\/\/(?!.*https?:)[\w.~:/?#@&=+%-]*[\w/=&#@+%-]$/i;
/** A text that may contain a link of any scheme. */
const likely = /\w:(?:\\?\/\\?\/|\?)\S/;
/** The result of `read` for a text without content. */
export const nothing = Object.freeze({ links: [], odd: [], oddCount: 0, schemes: [], headers: [] });

/** Milliseconds without typing until the service reads the text, and until a failed request is repeated. */
const [typingPause, retryPause] = [150, 3000];

const isLink = (text) => /^https?:\/\//i.test(text) && URL.canParse(text);

/** Returns what `read` returns, at once, for a text with one link per line; `undefined` for other text. */
export function readPlain(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (lines.every((line) => plain.test(line) && isLink(line))) return { ...nothing, links: [...new Set(lines)] };
  return undefined;
}

/**
 * Reads a text. Returns the `links` in order and without duplicates, the first `odd` lines without a link and their
 * number, the `schemes` of links that are not supported, and the `headers` of a curl or wget command.
 */
export async function read(text, signal) {
  const plainLinks = readPlain(text);
  if (plainLinks) return plainLinks;
  const found = await api.links(text, signal);
  return {
    links: found.links, odd: found.linesWithoutLink.map((line) => line.text), oddCount: found.linesWithoutLinkCount,
    schemes: found.unsupportedSchemes, headers: found.headers.map(({ name, value }) => `${name}: ${value}`),
  };
}

/** Reads the text of a field as it changes. `known` is the text that was read last, and what `read` returned for it. */
export class FieldLinks {
  /** `links` are those of the text `value`. `changed` is called after each change, with the error of a request. */
  constructor(field, value, links, changed) {
    Object.assign(this, { field, changed, known: { value, ...nothing, links } });
  }

  /** True if `known` is the text in the field. */
  get isCurrent() {
    return this.known.value === this.field.value;
  }

  look() {
    const { value } = this.field;
    this.stop();
    const known = this.isCurrent ? this.known : readPlain(value);
    if (known) this.known = { ...known, value };
    else this.pause = setTimeout(() => this.ask(value), typingPause);
    this.changed();
  }

  async ask(value) {
    const stop = (this.request = new AbortController());
    let problem;
    try {
      this.known = { ...(await read(value, stop.signal)), value };
    } catch (error) {
      if (stop.signal.aborted) return;
      problem = error;
      this.pause = setTimeout(() => this.ask(value), retryPause);
    }
    this.changed(problem);
  }

  stop() {
    clearTimeout(this.pause);
    this.request?.abort();
  }
}

const entities = { amp: "&", quot: '"', apos: "'", lt: "<", gt: ">", nbsp: " " };

/** Decodes the character references of HTML. An unknown one is kept, because it may be part of a query. */
function decoded(text) {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi, (whole, decimal, hexadecimal, name) => {
    if (name) return entities[name.toLowerCase()] ?? whole;
    const code = decimal ? Number.parseInt(decimal, 10) : Number.parseInt(hexadecimal, 16);
    return code > 31 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

const anchor = /<a\s[^>]*?\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))/gi;

/** Returns the links of anchors in foreign markup. The markup is searched as text, and never parsed by the browser. */
function anchorsIn(html) {
  return [...html.matchAll(anchor)].map(([, double, single, bare]) => decoded(double ?? single ?? bare).trim())
    .filter(isLink);
}

/** True if a file may be a list of links: a text file of at most 4 MiB. */
const isList = (file) => file.size <= 4 << 20 && (file.type.startsWith("text/") || /\.(txt|list|urls?)$/i.test(file.name));

/** Reads a drop or a paste as `read` reads a text: from HTML, a URI list, plain text or text files. */
export async function readData(data) {
  // Read all data before the first `await`: afterwards the data of a drop is gone.
  const [html, list, text] = ["text/html", "text/uri-list", "text/plain"].map((type) => data.getData(type));
  const files = [...data.files].filter(isList);
  const links = new Set([...anchorsIn(html), ...list.split(/\r?\n/).filter(isLink)]);
  const isText = links.size === 0;
  // The plain text of a marked-up selection repeats its anchors, and of a single link its title.
  const texts = isText || text.trim().split(/\s+/).length > 1 ? [text] : [];
  for (const file of files) texts.push(await file.text());
  const result = { ...nothing };
  for (const each of texts) {
    const found = likely.test(each) ? await read(each) : nothing;
    found.links.forEach((link) => links.add(link));
    if (!isText) continue;
    for (const key of ["odd", "schemes", "headers"]) result[key] = [...result[key], ...found[key]];
    result.oddCount += found.oddCount;
  }
  return { ...result, links: [...links] };
}

/** True if dragged data may contain links. */
export const mayHoldLinks = (data) =>
  data.types.some((type) => ["text/uri-list", "text/plain", "text/html", "Files"].includes(type));
