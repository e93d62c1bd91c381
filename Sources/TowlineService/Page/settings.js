// The settings of the service and of this browser, and the bookmarklet.

import { announce, complain, problemText, showProblem } from "./announce.js";
import { api } from "./api.js";
import { openDialog } from "./dialogs.js";
import { byId, element, setText } from "./dom.js";
import { editableBytes, parseBytes, rate, when } from "./format.js";
import { language, setLanguage, t } from "./language.js";
import { recall, remember, rememberDraft } from "./memory.js";
import { openPanel } from "./menu.js";

const presets = [null, 1 << 20, 5 << 20, 10 << 20, 50 << 20];

export class Settings {
  constructor() {
    this.values = {};
  }

  async read() {
    try {
      this.values = await api.settings();
      this.showLimit();
    } catch (problem) {
      complain(problem);
    }
  }

  /** Takes over a rate limit that another client set, as reported in the totals. */
  hearLimit(rateLimit) {
    if (this.values.rateLimit === rateLimit) return;
    this.values.rateLimit = rateLimit;
    this.showLimit();
  }

  showLimit() {
    const { rateLimit } = this.values;
    setText(byId("limit-label"), rateLimit ? t("limitedTo", { rate: rate(rateLimit) }) : t("noLimit"));
    byId("limit-button").setAttribute("aria-label", t("limitNow", { limit: rateLimit ? rate(rateLimit) : t("none") }));
    byId("limit-button").classList.toggle("on", Boolean(rateLimit));
  }

  async change(changes) {
    this.values = await api.changeSettings(changes);
    this.showLimit();
  }

  /** Opens the panel for the total rate limit. */
  openLimit() {
    const field = element("input", {
      type: "text", id: "limit-field", autocomplete: "off", placeholder: t("example", { value: "10M" }), "aria-describedby": "limit-say",
      value: editableBytes(this.values.rateLimit),
    });
    const say = element("p", { id: "limit-say", class: "field-note", role: "alert" });
    const set = element("button", { type: "submit", class: "primary" }, t("set"));
    const form = element(
      "form", {},
      element("label", { class: "field" }, element("span", {}, t("limitField")), field), say,
      element("div", { class: "presets" }, ...presets.map((value) => element(
        "button", { type: "button", class: "chip", onclick: () => apply(value) }, value ? `${value >> 20}\u00a0MiB/s` : t("noLimit")))),
      set);
    const panel = element("div", { class: "panel", role: "dialog", "aria-label": t("limitTitle") }, form);
    const close = openPanel(panel, byId("limit-button"));
    const apply = async (value) => {
      try {
        await this.change({ rateLimit: value });
        close();
      } catch (problem) {
        say.textContent = problemText(problem);
      }
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const value = parseBytes(field.value);
      if (value === undefined) say.textContent = t("badRate");
      else apply(value);
    });
    field.select();
    field.focus();
  }

  async open() {
    await this.read();
    const say = element("p", { class: "field-note", role: "alert" });
    const save = element("button", { type: "submit", class: "primary", form: "settings-form" }, t("save"));
    const form = element("form", { id: "settings-form" }, this.serviceFields(), this.groupFields(), say);
    const leave = element("button", { type: "button", class: "quiet sign-out" }, t("signOut"));
    const dialog = openDialog({
      title: t("settings"),
      className: "settings",
      content: [
        element("section", {}, element("h3", {}, t("thisBrowser")), this.browserFields(() => {
          // Open the dialog again in the new language.
          dialog.close();
          this.open();
        }), leave),
        element("section", {}, element("h3", {}, t("theService")), form),
        element("section", {}, element("h3", {}, t("bookmarklet")), bookmarklet()),
        this.hosts(),
        element("p", { class: "note" }, this.about()),
      ],
      buttons: [save],
    });
    leave.addEventListener("click", () => {
      dialog.close();
      signOut();
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await this.change(this.changed(form));
        dialog.close();
        announce(t("saved"), "good");
      } catch (problem) {
        showProblem(say, problem);
      }
    });
  }

  browserFields(languageChanged) {
    const theme = choice("theme", t("theme"), [["system", t("themeSystem")], ["light", t("themeLight")], ["dark", t("themeDark")]],
      document.documentElement.dataset.theme ?? "system", setTheme);
    const tongue = choice("language", "Language · 语言", [["en", "English"], ["zh-Hans", "简体中文"]], language(), (name) => {
      setLanguage(name);
      languageChanged();
    });
    const keys = element("input", { type: "checkbox", name: "keys", checked: recall("keys", "on") === "on" });
    keys.addEventListener("change", () => remember("keys", keys.checked ? "on" : "off"));
    return element("div", {}, element("div", { class: "grid" }, theme, tongue),
      element("label", { class: "check" }, keys, element("span", {}, t("singleKeys"))));
  }

  serviceFields() {
    const { maximumRunning, maximumRunningPerHost, rateLimit } = this.values;
    const field = (name, attributes) => element(
      "label", { class: "field" }, element("span", {}, t(`setting.${name}`)), element("input", { name, ...attributes }));
    return element(
      "div", { class: "grid" },
      field("maximumRunning", { type: "number", min: 1, max: 100000, value: maximumRunning ?? "" }),
      field("maximumRunningPerHost", { type: "number", min: 1, max: 100000, value: maximumRunningPerHost ?? "" }),
      field("rateLimit", { type: "text", placeholder: t("noLimit"), autocomplete: "off", value: editableBytes(rateLimit) }));
  }

  groupFields() {
    const groups = Object.entries(this.values.groups ?? {});
    const line = (name, limit) => element(
      "div", { class: "group-line" },
      element("input", { name: "group-name", type: "text", "aria-label": t("groupName"), value: name, placeholder: t("newGroup"), dir: "auto" }),
      element("input", {
        name: "group-limit", type: "number", min: 0, value: limit ?? "",
        "aria-label": t("groupLimit"), placeholder: t("noGroupLimit"),
      }));
    const lines = [...groups.map(([name, limit]) => line(name, limit)), line("", "")];
    return element("fieldset", {}, element("legend", {}, t("groupLimits")), ...lines);
  }

  changed(form) {
    const { elements } = form;
    const changes = {};
    for (const name of ["maximumRunning", "maximumRunningPerHost"]) {
      const value = Number.parseInt(elements[name].value, 10);
      if (value && value !== this.values[name]) changes[name] = value;
    }
    const limit = parseBytes(elements.rateLimit.value);
    if (limit === undefined) throw new Error(t("badRate"));
    if (limit !== (this.values.rateLimit ?? null)) changes.rateLimit = limit;
    const groups = this.changedGroups(form);
    if (Object.keys(groups).length) changes.groups = groups;
    return changes;
  }

  changedGroups(form) {
    const before = this.values.groups ?? {};
    const wanted = {};
    for (const line of form.querySelectorAll(".group-line")) {
      const [name, limit] = [...line.querySelectorAll("input")].map((input) => input.value.trim());
      if (name && limit !== "") wanted[name] = Number.parseInt(limit, 10);
    }
    const changes = {};
    for (const [name, limit] of Object.entries(wanted)) if (before[name] !== limit) changes[name] = limit;
    for (const name of Object.keys(before)) if (!(name in wanted)) changes[name] = null;
    return changes;
  }

  hosts() {
    const body = element("tbody");
    const section = element(
      "section", { hidden: true }, element("h3", {}, t("hosts")),
      element("table", {}, element("thead", {}, element("tr", {}, ...["host", "hostRunning", "hostCeiling", "hostNotBefore"].map((key) =>
        element("th", { scope: "col" }, t(key))))), body));
    api.hosts().then(({ hosts }) => {
      section.hidden = hosts.length === 0;
      const cell = (text) => element("td", {}, element("bdi", {}, String(text ?? "–")));
      body.append(...hosts.map((host) => element(
        "tr", {}, cell(host.host), cell(host.running), cell(host.ceiling), cell(host.notBefore && when(host.notBefore)))));
    }, complain);
    return section;
  }

  about() {
    const { version, downloadsDirectory } = this.values;
    return [version && `towd ${version}`, downloadsDirectory].filter(Boolean).join(" · ");
  }
}

/** Signs this browser out, and loads the page again: it then contains no data of the service and asks for the token. */
async function signOut() {
  try {
    await api.signOut();
    rememberDraft(undefined);
    location.reload();
  } catch (problem) {
    complain(problem);
  }
}

function choice(name, label, options, chosen, changed) {
  const select = element("select", { name }, ...options.map(([value, text]) => element("option", { value }, text)));
  select.value = chosen;
  select.addEventListener("change", () => changed(select.value));
  return element("label", { class: "field" }, element("span", {}, label), select);
}

/** Sets the theme: `light`, `dark` or `system`. */
export function setTheme(theme) {
  const chosen = theme === "system" ? undefined : theme;
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  remember("theme", chosen);
}

/** Returns the bookmarklet. It opens this page with the links selected on another page, or with that page's URL. */
function bookmarklet() {
  const page = JSON.stringify(`${location.origin}${location.pathname}#add=`);
  const code = `(()=>{const s=getSelection(),l=s.isCollapsed?[]:[...document.links].filter(a=>s.containsNode(a,true)).map(a=>a.href);` +
    `open(${page}+(l.length?l:[location.href]).map(encodeURIComponent).join('&add='))})()`;
  const link = element("a", { class: "quiet button", href: `javascript:${encodeURIComponent(code)}`, icon: "link" }, t("bookmarkletName"));
  link.addEventListener("click", (event) => {
    event.preventDefault();
    announce(t("bookmarkletDrag"));
  });
  return element("div", { class: "bookmarklet" }, element("p", {}, t("bookmarkletText")), link);
}
