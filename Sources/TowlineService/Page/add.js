// Adding downloads: the dialog with links and options, and the sources of links (paste, drop, bookmarklet).

import { announce, complain, problemText } from "./announce.js";
import { api } from "./api.js";
import { isDialogOpen, openDialog } from "./dialogs.js";
import { byId, element, isTyping, setText } from "./dom.js";
import { parseBytes } from "./format.js";
import { t } from "./language.js";
import { linesWithout, linksIn, linksOf, mayHoldLinks } from "./links.js";
import { recall, remember } from "./memory.js";

/** Maximum number of downloads and of JSON bytes in one request. The service accepts at most 1,000 downloads and 1 MiB. */
const most = 1000;
const mostBytes = 512 * 1024;
/** Milliseconds for which links of another page cannot be confirmed: the key or click may have been meant for that page. */
const unconfirmed = 1000;

export class Adding {
  constructor(store) {
    this.store = store;
    addEventListener("paste", (event) => this.pasted(event));
    this.hearDrags();
  }

  /** Accepts a drag in both `dragenter` and `dragover` (HTML, "drag-and-drop processing model"). */
  hearDrags() {
    let [depth, silence] = [0, undefined];
    const veil = (shown) => {
      byId("drop").hidden = !shown;
      clearTimeout(silence);
      // A removed element sends no "dragleave". During a drag, browsers send "dragover" at least twice a second.
      if (shown) silence = setTimeout(() => veil(false), 1500);
      else depth = 0;
    };
    const take = (event) => {
      if (!mayHoldLinks(event.dataTransfer)) return;
      if (!isTyping(event.target)) event.preventDefault();
      if (!isDialogOpen()) veil(true);
    };
    addEventListener("dragenter", (event) => {
      depth += 1;
      take(event);
    });
    addEventListener("dragover", take);
    addEventListener("dragleave", () => {
      depth -= 1;
      if (depth <= 0) veil(false);
    });
    addEventListener("drop", (event) => {
      veil(false);
      this.dropped(event);
    });
  }

  async pasted(event) {
    if (isTyping(event.target) || isDialogOpen()) return;
    const links = await linksOf(event.clipboardData);
    if (links.length) this.open(links);
  }

  async dropped(event) {
    if (!mayHoldLinks(event.dataTransfer) || isTyping(event.target)) return;
    event.preventDefault();
    const links = await linksOf(event.dataTransfer);
    if (links.length === 0) announce(t("noLinks"));
    else if (this.dialog) this.dialog.append(links);
    else this.open(links);
  }

  /** Opens the dialog with `links` in it. The user must confirm; `foreign` links may come from another site. */
  open(links = [], { foreign = false } = {}) {
    if (isDialogOpen()) return;
    this.dialog = new AddDialog(this.store, links, foreign);
    this.dialog.handle.closed.then(() => (this.dialog = undefined));
  }
}

class AddDialog {
  constructor(store, links, foreign) {
    this.store = store;
    this.waits = foreign;
    this.links = element("textarea", {
      id: "links", rows: 6, spellcheck: "false", autocomplete: "off", autocapitalize: "off", dir: "ltr",
      placeholder: "https://example.com/file.iso", "aria-describedby": "links-say",
    });
    this.links.value = links.map((link) => `${link}\n`).join("");
    this.count = element("p", { id: "links-say", class: "field-note good", role: "status" });
    this.problem = element("p", { class: "field-note", role: "alert" });
    this.send = element("button", { type: "submit", class: "primary", form: "add-form" });
    const dismiss = element("button", { type: "button", class: "quiet" }, t("dismiss"));
    this.form = element(
      "form", { id: "add-form" },
      element("label", { class: "field" }, element("span", {}, t("links")), this.links),
      this.count, this.options(), this.problem);
    this.handle = openDialog({ title: t("addLinks"), className: "add", content: [this.form], buttons: [dismiss, this.send] });
    dismiss.addEventListener("click", () => this.handle.close());
    this.links.addEventListener("input", () => this.counted());
    this.links.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.counted();
    if (foreign) this.wait();
    // With the user's own links in the field, Enter confirms.
    (links.length && !foreign ? this.send : this.links).focus();
  }

  /** Confirming is possible after the user had the page before their eyes for a moment. */
  wait() {
    const again = () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        this.waits = false;
        stop.abort();
        this.counted();
      }, unconfirmed);
    };
    const stop = new AbortController();
    addEventListener("focus", again, { signal: stop.signal });
    document.addEventListener("visibilitychange", again, { signal: stop.signal });
    this.handle.closed.then(() => {
      clearTimeout(this.timer);
      stop.abort();
    });
    again();
  }

  append(links) {
    this.links.value = `${this.links.value.trimEnd()}\n${links.join("\n")}\n`.trimStart();
    this.counted();
  }

  options() {
    const field = (name, attributes = {}) => {
      const input = element("input", { type: "text", name, autocomplete: "off", spellcheck: "false", ...attributes });
      return element("label", { class: "field" }, element("span", {}, t(`add.${name}`)), input);
    };
    const check = (name, ticked) => element(
      "label", { class: "check" }, element("input", { type: "checkbox", name, checked: ticked }), element("span", {}, t(`add.${name}`)));
    const existing = element("select", { name: "existing" }, ...["fail", "rename", "overwrite", "update", "skip"].map(
      (value) => element("option", { value }, t(`existing.${value}`))));
    const headers = element("textarea", { name: "headers", rows: 2, spellcheck: "false", placeholder: "Referer: https://example.com/" });
    return element(
      "details", { class: "options" },
      element("summary", {}, t("options")),
      element(
        "div", { class: "grid" },
        field("directory", { value: recall("directory", ""), placeholder: t("downloadsFolder") }),
        field("name", { placeholder: t("fromServer") }),
        field("group"), field("priority", { type: "number", step: 1, placeholder: "0" }),
        field("rateLimit", { placeholder: "10M" }), field("connections", { type: "number", min: 1, max: 128 }),
        field("checksum", { placeholder: "sha256:…" }),
        element("label", { class: "field" }, element("span", {}, t("add.existing")), existing),
        field("user", { type: "password", placeholder: t("userHint") }),
        element("label", { class: "field wide" }, element("span", {}, t("add.headers")), headers)),
      check("startsPaused"), check("unpack"));
  }

  get found() {
    return linksIn(this.links.value);
  }

  counted() {
    const { found } = this;
    const odd = linesWithout(this.links.value).length;
    const words = found.length || odd ? t("linksFound", { n: found.length }) : t("linksHint");
    setText(this.count, odd ? `${words} · ${t("linesOdd", { n: odd })}` : words);
    this.count.classList.toggle("good", odd === 0);
    setText(this.send, found.length > 1 ? t("addMany", { n: found.length }) : t("add"));
    this.send.disabled = found.length === 0 || this.waits;
    // A name and a checksum apply to a single file only.
    for (const name of ["name", "checksum"]) this.form.elements[name].disabled = found.length > 1;
  }

  /** The options that apply to every link. Throws an error if a value is invalid. */
  common() {
    const { elements } = this.form;
    const common = {};
    for (const name of ["directory", "name", "group", "checksum", "user"]) {
      const value = elements[name].value.trim();
      if (value && !elements[name].disabled) common[name] = value;
    }
    for (const name of ["priority", "connections"]) if (elements[name].value) common[name] = Number.parseInt(elements[name].value, 10);
    const limit = parseBytes(elements.rateLimit.value);
    if (limit === undefined) throw new Error(t("badRate"));
    if (limit !== null) common.rateLimit = limit;
    if (elements.existing.value !== "fail") common.existing = elements.existing.value;
    if (elements.startsPaused.checked) common.startsPaused = true;
    if (elements.unpack.checked) common.unpack = true;
    const headers = elements.headers.value.split("\n").filter((line) => line.trim());
    if (headers.length) common.headers = headers.map(header);
    return common;
  }

  async submit() {
    const { found } = this;
    if (found.length === 0 || this.waits) return;
    this.problem.textContent = "";
    this.send.disabled = true;
    let added = 0;
    try {
      const common = this.common();
      const wanted = found.map((url) => ({ url, ...common }));
      while (added < wanted.length) {
        const batch = wanted.slice(added, added + batchLength(wanted, added));
        const answer = await api.add(batch);
        added += batch.length;
        for (const download of answer.downloads) this.store.apply(download, true);
      }
      remember("directory", common.directory);
      this.handle.close();
      announce(t("added", { n: added }), "good");
    } catch (problem) {
      // Do not send the downloads again that the service has accepted.
      if (added) this.links.value = found.slice(added).join("\n");
      if (problem.status === 401) complain(problem);
      this.problem.textContent = problemText(problem);
      this.form.querySelector(".options").open ||= problem.status === 400;
    } finally {
      this.send.disabled = false;
    }
  }
}

/** The number of entries of `wanted`, from index `start`, that fit into one request; at least 1. */
export function batchLength(wanted, start) {
  const encoder = new TextEncoder();
  let [length, size] = [0, 0];
  while (length < most && start + length < wanted.length) {
    size += encoder.encode(JSON.stringify(wanted[start + length])).length + 1;
    if (length > 0 && size > mostBytes) break;
    length += 1;
  }
  return length;
}

function header(line) {
  const at = line.indexOf(":");
  if (at < 1) throw new Error(t("badHeader", { line }));
  return { name: line.slice(0, at).trim(), value: line.slice(at + 1).trim() };
}

/** Reads `token` and the links to `add` from the URL's fragment, and removes the fragment from the address bar. */
export function takeFragment() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const asked = { token: parameters.get("token"), links: parameters.getAll("add").flatMap(linksIn) };
  if (asked.token || asked.links.length) history.replaceState(null, "", location.pathname + location.search);
  return asked;
}
