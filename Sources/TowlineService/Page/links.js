// Finds links in pasted, typed or dropped text. `Tests/WebPageTests/link_cases.json` has the cases.

const start = /https?:\/\//gi;
/** Characters after which a new `http://` is part of the link, as in `https://archive.example/2020/https://…`. */
const nests = /[/=?&#:%@+]$/;
/** A run of characters in which a link may be; the rules below find its end. */
const run = /[^\s<>"`\\^{}|，。；：！？、“”‘’「」『』〈〉«»…]*/y;
const cjk = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}（）【】《》〔〕]/u;
const brackets = ["()", "[]", "（）", "【】", "《》", "〔〕"];
/** A text that may be a complete link: it ends with the extension of a file, or contains only a host. */
const complete = /(?:\/[^/?#]*\.(?:[a-z][a-z0-9]{0,4}|7z)|^https?:\/\/[^/]+\.[a-z]{2,}(?::\d+)?)$/i;
const count = (text, part) => text.split(part).length - 1;

/** The end of a link in `text`, a run that begins with the link. `before` is the line in front of it. */
function endIn(text, before) {
  const opened = brackets.filter(([open, close]) => count(before, open) > count(before, close));
  const quote = before.endsWith("'");
  const isField = /[,;]\s*$/.exec(before)?.[0][0];
  for (let index = 8; index < text.length; index += 1) {
    const [link, char, rest] = [text.slice(0, index), text[index], text.slice(index + 1)];
    if (/^https?:\/\//i.test(text.slice(index)) && !nests.test(link)) return index;
    if (char === "'" && quote) return index;
    if ((char === "," || char === ";") && endsField(link, char, rest, isField)) return index;
    if (char === "[" && /^\/\w+\]/.test(rest)) return index; // BBCode
    if (opened.some(([open, close]) => char === close && count(link, open) <= count(link, close))) return index;
    if (cjk.test(char) && endsAtWord(link, char + rest)) return index;
  }
  return text.length;
}

/** True if a comma or a semicolon separates fields. Both may also be part of a link. */
function endsField(link, char, rest, isField) {
  if (rest === "" || /^["']?https?:\/\//i.test(rest) || char === isField) return true;
  return complete.test(link) && !(char === ";" && /^\w+=/.test(rest));
}

/** True if text in a language without spaces follows the link. Such text may also be the name of a file. */
function endsAtWord(link, rest) {
  if (complete.test(link)) return true;
  if (!/[\w)\]-]$/.test(link)) return false;
  return !/[/.?&=]\w/.test(rest);
}

/** Removes trailing punctuation, markup, and a closing bracket that was opened before the link. */
function trim(link, before) {
  let text = link;
  for (let old; old !== text;) {
    old = text;
    text = text.replace(/[.,;:!?]+$/, "");
    for (const [open, close] of brackets) if (text.endsWith(close) && count(text, open) < count(text, close)) text = text.slice(0, -1);
    if (text.endsWith("'") && count(text, "'") % 2) text = text.slice(0, -1);
    // Markdown: **link**, ~~link~~, and _link_.
    const mark = /(\*+|~~|_+)$/.exec(text)?.[0];
    if (mark && (mark[0] === "_" ? before.endsWith(mark) : before.includes(mark))) text = text.slice(0, -mark.length);
  }
  return text;
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

/** Returns the links in a text that is not a command, in order and with duplicates. */
function linksOfLine(line) {
  const found = [];
  let end = 0;
  for (const { index } of line.matchAll(start)) {
    if (index < end) continue;
    run.lastIndex = index;
    const text = run.exec(line)[0];
    const before = line.slice(0, index);
    const length = endIn(text, before);
    end = index + length;
    const link = trim(text.slice(0, length), before);
    if (URL.canParse(link)) found.push(link);
  }
  return found;
}

/** Splits a command of a POSIX shell into words, without expansions. */
function shellWords(line) {
  const words = [];
  let word;
  for (const [, single, ansi, double, escaped, space, plain] of line.matchAll(
    /'([^']*)'|\$'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|\\(.)|(\s+)|([^'"\\\s]+)/gsu)) {
    if (space) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + (single ?? (ansi ?? double)?.replace(/\\(.)/gs, "$1") ?? escaped ?? plain);
  }
  return word === undefined ? words : [...words, word];
}

/** Options of curl and wget that become header fields. */
const fields = { "-A": "User-Agent", "--user-agent": "User-Agent", "-U": "User-Agent", "-e": "Referer", "--referer": "Referer", "-b": "Cookie", "--cookie": "Cookie" };
/** Options whose value is not the link. */
const valued = /^(?:-[oOdFxTXmKCPwrYyzEUQ]|--(?:output|output-document|data|data-raw|data-binary|data-urlencode|form|proxy|preproxy|upload-file|request|directory-prefix|max-time|user|user-agent|password|http-user|http-password|config|write-out|range|limit-rate|post-data|body-data|resolve|cacert|cert|key|input-file|base))$/;
/** Header fields that a download sets itself, or that describe the request of the browser. */
const own = /^(?:accept-encoding|connection|content-.*|host|if-.*|keep-alive|priority|range|sec-.*|te|transfer-encoding|upgrade.*|:.*)$/i;

/** Reads a command of curl or wget: its links and its header fields. */
function readCommand(command) {
  const isCurl = /^\W*curl/.test(command);
  const [links, headers] = [[], []];
  const add = (line) => {
    const name = line.split(":")[0].trim();
    if (name && line.includes(":") && !own.test(name)) headers.push(line.trim());
  };
  const words = shellWords(command);
  for (let index = 1; index < words.length; index += 1) {
    const [, name, attached] = /^(--[\w-]+)=(.*)$/s.exec(words[index]) ?? /^(-[HAebu])(.+)$/s.exec(words[index]) ?? [null, words[index]];
    const value = () => attached ?? words[(index += 1)] ?? "";
    if (name === "-H" && isCurl || name === "--header") add(value());
    else if (fields[name] && (isCurl ? name !== "-U" : !["-A", "-e", "-b"].includes(name))) {
      const text = value();
      if (fields[name] !== "Cookie" || text.includes("=")) add(`${fields[name]}: ${text}`);
    } else if (name === "-u" || valued.test(name) && !(name === "-O" && isCurl)) value();
    else if (name === "--url") links.push(...linksOfLine(value()));
    else if (!name.startsWith("-") && /^https?:\/\//i.test(name) && URL.canParse(name)) links.push(name);
  }
  return { links, headers };
}

const isCommand = (line) => /^\s*(?:[$#>%]\s*)?(?:curl|wget)\s/.test(line);

/** The lines of a text. A command that continues on further lines is one line. */
const linesOf = (text) => text.replace(/[\\^]\r?\n\s*/g, " ").split(/\r\n|\r|\n/);

/**
 * Reads a text. Returns the `links` in order and without duplicates, the `odd` lines without a link (no comments and no
 * empty lines), the `schemes` of links that are not supported, and the `headers` of a curl or wget command.
 */
export function read(text) {
  const [links, schemes, odd] = [new Set(), new Set(), []];
  let headers = [];
  for (const line of linesOf(decoded(text))) {
    let found;
    if (isCommand(line)) {
      const command = readCommand(line.replace(/^\s*[$#>%]\s*/, ""));
      found = command.links;
      if (headers.length === 0) headers = command.headers;
    } else found = linksOfLine(line);
    found.forEach((link) => links.add(link));
    const others = found.length ? [] : [...line.matchAll(/\b([a-z][a-z0-9+.-]{1,15}):(?:\/\/|\?)\S/gi)].map(([, scheme]) => scheme.toLowerCase());
    others.filter((scheme) => !/^https?$/.test(scheme)).forEach((scheme) => schemes.add(scheme));
    if (found.length === 0 && line.trim() && !line.trim().startsWith("#")) odd.push(line.trim());
  }
  return { links: [...links], odd, schemes: [...schemes], headers };
}

/** Returns the links in a text, in order and without duplicates. */
export const linksIn = (text) => read(text).links;

const anchor = /<a\s[^>]*?\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))/gi;

/** Returns the links of anchors in foreign markup. The markup is searched as text and never parsed by the browser. */
function anchorsIn(html) {
  return [...html.matchAll(anchor)].map(([, double, single, bare]) => decoded(double ?? single ?? bare).trim())
    .filter((link) => /^https?:\/\//i.test(link) && URL.canParse(link));
}

/** True if a file may be a list of links: a text file of at most 4 MiB. */
const isList = (file) => file.size <= 4 << 20 && (file.type.startsWith("text/") || /\.(txt|list|urls?)$/i.test(file.name));

/** Reads a drop or a paste as `read` reads a text: from HTML, a URI list, plain text or text files. */
export async function readData(data) {
  // Read all data before the first `await`: afterwards the data of a drop is gone.
  const [html, list, plain] = ["text/html", "text/uri-list", "text/plain"].map((type) => data.getData(type));
  const files = [...data.files].filter(isList);
  const links = new Set(anchorsIn(html));
  for (const line of list.split(/\r?\n/)) if (!line.startsWith("#")) linksIn(line).forEach((link) => links.add(link));
  const isText = links.size === 0;
  const result = { odd: [], schemes: [], headers: [] };
  const take = (text) => {
    const found = read(text);
    found.links.forEach((link) => links.add(link));
    if (isText) for (const key of Object.keys(result)) result[key].push(...found[key]);
  };
  // The plain text of a marked-up selection repeats its anchors, and of a single link its title.
  if (isText || plain.trim().split(/\s+/).length > 1) take(plain);
  for (const file of files) take(await file.text());
  return { ...result, links: [...links] };
}

/** True if dragged data may contain links. */
export const mayHoldLinks = (data) =>
  data.types.some((type) => ["text/uri-list", "text/plain", "text/html", "Files"].includes(type));
