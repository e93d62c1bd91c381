// The dialog that adds downloads: links, what the service found in them, and options.

import { announce, complain, problemText, showProblem } from "./announce.js";
import { api } from "./api.js";
import { openDialog } from "./dialogs.js";
import { element, setText } from "./dom.js";
import { parseBytes } from "./format.js";
import { t } from "./language.js";
import { FieldLinks, nothing } from "./links.js";
import { recall, recallDraft, remember, rememberDraft } from "./memory.js";

/** Maximum number of downloads and of JSON bytes in one request. The service accepts at most 1,000 downloads and 1 MiB. */
const most = 1000;
const mostBytes = 512 * 1024;
/** Milliseconds for which links of another page cannot be confirmed: the key or click may have been meant for that page. */
const unconfirmed = 1000;
/** Attributes that keep browsers and password managers from filling a field. They fill `input` elements only. */
const unfilled = {
  spellcheck: "false", autocomplete: "off", autocapitalize: "off", dir: "ltr",
  "data-1p-ignore": true, "data-bwignore": true, "data-lpignore": "true",
};
/** Fields that are not stored. */
const secretFields = ["user", "headers"];
const shownHosts = 3;
const shownLinks = 100;
/** A text with a command of curl or wget. */
const command = /^\s*(?:[$#>%]\s*)?(?:curl|wget)\s/m;

export class AddDialog {
  constructor(store, links, foreign, source) {
    this.store = store;
    /** The pasted text: its lines without a link, and the headers of its command. */
    this.source = source ?? nothing;
    this.waits = foreign;
    this.links = element("textarea", {
      id: "links", rows: 6, spellcheck: "false", autocomplete: "off", autocapitalize: "off", dir: "ltr",
      placeholder: t("example", { value: "https://example.com/file.iso" }), "aria-describedby": "links-say",
    });
    const draft = recallDraft();
    const given = links.map((link) => `${link}\n`).join("");
    /** Links of an earlier dialog that are not in this one. They stay in the draft. */
    this.others = given && draft.links ? `${draft.links.trimEnd()}\n` : "";
    this.links.value = given || (draft.links ?? "");
    /** The dialog shows and adds only these links. */
    this.reading = new FieldLinks(this.links, given, links, (problem) => this.wasRead(problem));
    this.list = element("ul", { id: "links-list" });
    this.count = element("p", { id: "links-say", class: "field-note good", role: "status" });
    this.offer = element("button", { type: "button", class: "quiet", id: "offer", hidden: true, onclick: () => this.takeHeaders() });
    this.secrets = element("p", { id: "secrets", class: "field-note good", role: "status" });
    this.problem = element("p", { class: "field-note", role: "alert" });
    this.send = element("button", { type: "submit", class: "primary", form: "add-form" });
    const dismiss = element("button", { type: "button", class: "quiet" }, t("dismiss"));
    /** The complete path of a folder that is longer than its field. */
    this.path = element("p", { id: "folder-path", class: "field-note good", hidden: true, dir: "ltr" });
    this.folder = element("input", {
      type: "text", name: "directory", ...unfilled, value: recall("directory", ""), placeholder: t("defaultIs", { value: t("downloadsFolder") }),
    });
    this.form = element(
      "form", { id: "add-form" },
      element("label", { class: "field" }, element("span", {}, t("links")), this.links), this.count, this.list, this.offer,
      // Always visible, because the last folder is used again.
      element("label", { class: "field" }, element("span", {}, t("add.directory")), this.folder), this.path,
      this.options(), this.secrets, this.problem);
    if (!given) this.restore(draft);
    this.handle = openDialog({ title: t("addLinks"), className: "add", content: [this.form], buttons: [dismiss, this.send] });
    dismiss.addEventListener("click", () => {
      this.forget();
      this.handle.close();
    });
    const changed = () => {
      this.keep();
      this.reading.look();
    };
    this.handle.closed.then(() => this.reading.stop());
    this.links.addEventListener("input", changed);
    this.form.addEventListener("input", ({ target }) => target === this.links || changed());
    if (given) this.keep();
    this.links.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.reading.look();
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

  /** Stores the links and options, so that Escape, a press beside the dialog, or a reload do not lose them. */
  keep() {
    const links = `${this.others}${this.links.value}`;
    const options = {};
    for (const field of this.form.elements) {
      if (!field.name || secretFields.includes(field.name)) continue;
      if (field.type === "checkbox") options[field.name] = field.checked;
      else options[field.name] = field.value;
    }
    rememberDraft({ links, options }, { links: this.storedLinks, options });
  }

  /** The links for the storage: without passwords, and of a command only the links that the service found in it. */
  get storedLinks() {
    const { isCurrent, known } = this.reading;
    const found = isCurrent ? known.links.join("\n") : "";
    const own = command.test(this.links.value) ? found : this.links.value;
    const others = command.test(this.others) ? "" : this.others;
    return `${others}${own}`.replace(/(https?:\/\/[^\s/?#:@]*):[^\s/?#]*@/gi, "$1@");
  }

  /** Forgets the links of this dialog: they were added, or the user dismissed them. */
  forget() {
    rememberDraft(this.others ? { links: this.others } : undefined);
  }

  restore({ options = {} }) {
    for (const [name, value] of Object.entries(options)) {
      const field = this.form.elements[name];
      if (field?.type === "checkbox") field.checked = value;
      else if (field) field.value = value;
    }
  }

  append(links, foreign = false) {
    if (foreign) {
      this.waits = true;
      this.wait();
    }
    this.links.value = `${this.links.value.trimEnd()}\n${links.join("\n")}\n`.trimStart();
    this.keep();
    this.reading.look();
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
    const area = (name, attributes) => element(
      "label", { class: "field wide" }, element("span", {}, t(`add.${name}`)), element("textarea", { name, ...unfilled, ...attributes }));
    return element(
      "details", { class: "options" },
      element("summary", {}, t("options")),
      element(
        "div", { class: "grid" },
        field("name", { placeholder: t("defaultIs", { value: t("fromServer") }) }),
        field("group"), field("priority", { type: "number", step: 1, placeholder: t("defaultIs", { value: "0" }) }),
        field("rateLimit", { placeholder: t("example", { value: "10M" }) }), field("connections", { type: "number", min: 1, max: 128, placeholder: t("defaultIs", { value: t("automatic") }) }),
        field("checksum", { placeholder: t("example", { value: "sha256:9f86…" }) }),
        element("label", { class: "field wide" }, element("span", {}, t("add.existing")), existing),
        area("user", { rows: 1, placeholder: t("example", { value: "anna:secret" }) }),
        area("headers", { rows: 2, placeholder: t("example", { value: "Referer: https://example.com/" }) })),
      check("startsPaused"), check("unpack"));
  }

  /** Shows the links after a change, or why they are not known. */
  wasRead(problem) {
    if (problem || this.unread) this.problem.textContent = problem ? problemText(problem) : "";
    this.unread = problem;
    if (!problem && command.test(this.links.value)) this.keep();
    this.counted();
  }

  /** The text that was read last, with what a pasted text contained besides its links. */
  get text() {
    const { source, reading: { known } } = this;
    return {
      links: known.links, odd: [...source.odd, ...known.odd], oddCount: source.oddCount + known.oddCount,
      schemes: [...new Set([...source.schemes, ...known.schemes])],
      headers: known.headers.length ? known.headers : source.headers,
    };
  }

  get found() {
    return this.text.links;
  }

  counted() {
    const { links: found, odd, oddCount, schemes, headers } = this.text;
    const words = [found.length || oddCount ? t("linksFound", { n: found.length }) : t("linksHint")];
    if (oddCount) words.push(t("linesOdd", { n: oddCount }));
    if (schemes.length) words.push(t("notSupported", { schemes: schemes.join(", ") }));
    setText(this.count, words.join(" · "));
    this.showFound(found, odd, oddCount);
    this.offer.hidden = headers.length === 0 || headers.every((line) => this.form.elements.headers.value.includes(line));
    setText(this.offer, t("takeHeaders", { names: headers.map((line) => line.split(":")[0]).join(", ") }));
    setText(this.send, found.length > 1 ? t("addMany", { n: found.length }) : t("add"));
    this.send.disabled = found.length === 0 || this.waits || !this.reading.isCurrent;
    // A name and a checksum apply to a single file only.
    for (const name of ["name", "checksum"]) this.form.elements[name].disabled = found.length > 1;
    setText(this.secrets, this.secretsSent(found));
    setText(this.path, this.folder.value);
    this.path.hidden = this.folder.scrollWidth <= this.folder.clientWidth;
  }

  /** Lists the links, unless the field already contains them one per line, and the lines without a link. */
  showFound(found, odd, oddCount) {
    const lines = this.links.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const isPlain = lines.length === found.length && lines.every((line, index) => line === found[index]);
    const entry = (className) => (text) => element("li", { class: className }, element("bdi", {}, text));
    const rest = Math.max(0, found.length - shownLinks) * !isPlain + Math.max(0, oddCount - shownLinks);
    this.list.replaceChildren(
      ...(isPlain ? [] : found.slice(0, shownLinks).map(entry("link"))), ...odd.slice(0, shownLinks).map(entry("odd")),
      ...(rest ? [element("li", {}, t("moreLines", { n: rest }))] : []));
    this.list.hidden = this.list.children.length === 0;
  }

  /** Copies the headers of a pasted command, which are not sent unless the user wants that. */
  takeHeaders() {
    const field = this.form.elements.headers;
    field.value = [field.value.trim(), ...this.text.headers].filter(Boolean).join("\n");
    this.counted();
  }

  /** Says which credentials and headers are sent to which hosts. The options that contain them may be folded away. */
  secretsSent(found) {
    const { user, headers } = this.form.elements;
    const urls = found.filter((link) => URL.canParse(link)).map((link) => new URL(link));
    const hosts = (some) => {
      const names = [...new Set(some.map((url) => url.host))];
      return names.length <= shownHosts ? names.join(", ") : t("andMore", { names: names.slice(0, shownHosts).join(", "), n: names.length - shownHosts });
    };
    const said = [];
    const typed = user.value.trim();
    const withUser = typed ? urls : urls.filter((url) => url.username || url.password);
    const users = typed ? [typed.split(":")[0]] : [...new Set(withUser.map((url) => decode(url.username)))];
    if (withUser.length) said.push(t("sendsUser", { user: users.slice(0, shownHosts).join(", "), hosts: hosts(withUser) }));
    const names = headers.value.split("\n").map((line) => line.split(":")[0].trim()).filter(Boolean);
    if (names.length && urls.length) said.push(t("sendsHeaders", { names: names.join(", "), hosts: hosts(urls) }));
    return said.join(" ");
  }

  /** The options that apply to every link. Throws an error if a value is invalid. */
  common() {
    const { elements } = this.form;
    const common = {};
    for (const name of ["directory", "name", "group", "checksum", "user"]) {
      const value = elements[name].value.trim();
      if (value && !elements[name].disabled) common[name] = value;
    }
    if (common.user && !/^[^\n]*:[^\n]*$/.test(common.user)) throw new Error(t("badUser"));
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
    if (found.length === 0 || this.waits || !this.reading.isCurrent) return;
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
      this.forget();
      this.handle.close();
      announce(t("added", { n: added }), "good");
    } catch (problem) {
      // Do not send the downloads again that the service has accepted.
      if (added) this.links.value = `${found.slice(added).join("\n")}\n`;
      this.keep();
      this.reading.look();
      if (problem.status === 401) complain(problem);
      this.form.querySelector(".options").open ||= problem.status === 400;
      showProblem(this.problem, problem);
    }
  }
}

/** The number of entries of `wanted`, from index `start`, that fit into one request; at least 1. */
function batchLength(wanted, start) {
  const encoder = new TextEncoder();
  let [length, size] = [0, 0];
  while (length < most && start + length < wanted.length) {
    size += encoder.encode(JSON.stringify(wanted[start + length])).length + 1;
    if (length > 0 && size > mostBytes) break;
    length += 1;
  }
  return length;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function header(line) {
  const at = line.indexOf(":");
  if (at < 1) throw new Error(t("badHeader", { line }));
  return { name: line.slice(0, at).trim(), value: line.slice(at + 1).trim() };
}
