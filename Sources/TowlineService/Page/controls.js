// The options of a download that can be changed: priority, rate limit, connections, group, folder and URL.

import { showProblem } from "./announce.js";
import { element } from "./dom.js";
import { editableBytes, isComplete, parseBytes } from "./format.js";
import { t } from "./language.js";
import { read } from "./links.js";

let serial = 0;

export class Controls {
  constructor(store, actions, id) {
    Object.assign(this, { store, actions, id });
    this.say = element("p", { class: "field-note", role: "alert" });
    this.priority = this.field("priority", { type: "number", step: 1, inputmode: "numeric" });
    this.rateLimit = this.field("rateLimit", { placeholder: t("example", { value: "10M" }), autocomplete: "off" });
    this.connections = this.field("connections", { type: "number", min: 1, max: 128, placeholder: t("defaultIs", { value: t("automatic") }) });
    this.group = this.field("group", { autocomplete: "off", dir: "auto" });
    this.directory = this.field("directory", { autocomplete: "off", spellcheck: "false", dir: "ltr" });
    this.directory.label.classList.add("wide");
    this.link = this.field("renewedLink", { type: "url", placeholder: t("example", { value: "https://example.com/file.iso" }), autocomplete: "off", spellcheck: "false" });
    this.save = element("button", { type: "submit", class: "quiet" }, t("save"));
    this.renew = element("button", { type: "submit", class: "quiet" }, t("renew"));
    const fields = [this.priority, this.rateLimit, this.connections, this.group, this.directory].map((each) => each.label);
    this.form = element("form", { class: "controls" }, ...fields, element("div", { class: "controls-end" }, this.save));
    const note = element("p", { class: "note" }, t("renewText"));
    this.linkForm = element("form", { class: "controls link-form" }, this.link.label, this.renew, note);
    this.element = element("div", {}, this.form, this.say, this.linkForm);
    this.form.addEventListener("submit", (event) => this.submit(event, () => this.changes()));
    this.linkForm.addEventListener("submit", (event) => this.submit(event, () => this.linkChanges()));
    this.form.addEventListener("input", (event) => (event.target.dataset.edited = ""));
  }

  field(key, attributes) {
    const input = element("input", { type: "text", id: `control-${(serial += 1)}`, ...attributes });
    return { input, label: element("label", { class: "field", for: input.id }, element("span", {}, t(`control.${key}`)), input) };
  }

  /** Shows the current values. Leaves a field unchanged while the user edits it. */
  show(download) {
    this.put(this.priority.input, String(download.priority));
    this.put(this.group.input, download.group ?? "");
    this.put(this.directory.input, download.directory);
    const isOver = isComplete(download) || download.state === "cancelled";
    this.linkForm.hidden = isOver;
  }

  put(input, value) {
    if ("edited" in input.dataset || input === document.activeElement || input.value === value) return;
    input.value = value;
  }

  /** The edited values only: a field that does not show the current value must not change it. */
  changes() {
    const changes = {};
    const edited = (field) => "edited" in field.input.dataset;
    if (edited(this.priority)) changes.priority = Number.parseInt(this.priority.input.value || "0", 10);
    if (edited(this.rateLimit)) {
      const limit = parseBytes(this.rateLimit.input.value);
      if (limit === undefined) throw new Error(t("badRate"));
      changes.rateLimit = limit;
    }
    if (edited(this.connections)) {
      changes.connections = this.connections.input.value === "" ? null : Number.parseInt(this.connections.input.value, 10);
    }
    if (edited(this.directory)) changes.directory = this.directory.input.value.trim();
    if (edited(this.group)) changes.group = this.group.input.value.trim() || null;
    return changes;
  }

  async linkChanges() {
    const { links: [url] } = await read(this.link.input.value);
    if (!url) throw new Error(t("badLink"));
    return { url };
  }

  async submit(event, changes) {
    event.preventDefault();
    this.say.textContent = "";
    try {
      const wanted = await changes();
      if (Object.keys(wanted).length === 0) return;
      await this.actions.change(this.id, wanted);
      // The old folder was missing: the download can continue now.
      const { state, error } = this.store.byId.get(this.id) ?? {};
      if (wanted.directory && state === "failed" && error?.code === "unusableDestination") this.actions.perform("retry", [this.id]);
      for (const { input } of [this.priority, this.group, this.rateLimit, this.connections, this.directory]) delete input.dataset.edited;
      if (wanted.rateLimit !== undefined) this.rateLimit.input.value = editableBytes(wanted.rateLimit);
      if (wanted.url) this.link.input.value = "";
      this.show(this.store.byId.get(this.id));
      this.said(t("saved"));
      if ("priority" in wanted) this.store.reload();
    } catch (problem) {
      this.say.classList.remove("good");
      showProblem(this.say, problem);
    }
  }

  said(text) {
    this.say.classList.add("good");
    this.say.textContent = text;
  }
}
