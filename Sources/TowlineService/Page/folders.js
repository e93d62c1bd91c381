// Downloads that failed because their folder is gone, for example after a disk was renamed. Offers one new folder for all.

import { announce, showProblem } from "./announce.js";
import { api } from "./api.js";
import { openDialog } from "./dialogs.js";
import { byId, element } from "./dom.js";
import { t } from "./language.js";

const pageSize = 1000;
const mostPages = 20;
/** Milliseconds between a change and the search for such downloads, because many fail at once. */
const pause = 300;

const isLost = ({ state, error }) => state === "failed" && error?.code === "unusableDestination";

/** Returns the longest path that contains all of `folders`. */
export function commonFolder(folders) {
  const paths = folders.map((folder) => folder.split("/"));
  const differs = paths[0].findIndex((part, index) => paths.some((path) => path[index] !== part));
  return (differs < 0 ? paths[0] : paths[0].slice(0, differs)).join("/") || "/";
}

/** Returns `folder` with its beginning `old` replaced by `wanted`. */
export function movedFolder(folder, old, wanted) {
  const [base, rest] = [wanted.replace(/\/+$/, ""), folder.slice(old.length).replace(/^\/+/, "")];
  return rest ? `${base}/${rest}` : base || "/";
}

export class LostFolders {
  constructor(store, actions) {
    Object.assign(this, { store, actions, lost: [] });
    this.bar = byId("lost");
    store.on("totals", ({ counts }) => {
      if (counts.failed === this.failed) return;
      this.failed = counts.failed;
      this.lookSoon();
    });
    store.on("moved", (download) => isLost(download) && this.lookSoon());
  }

  lookSoon() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.look();
    }, pause);
  }

  async look() {
    const lost = [];
    let cursor;
    try {
      for (let page = 0; page < mostPages && (page === 0 || cursor); page += 1) {
        const answer = await api.list({ state: "failed", limit: pageSize, cursor });
        lost.push(...answer.downloads.filter(isLost));
        cursor = answer.next;
      }
    } catch {
      return; // The banner shows that the service does not respond.
    }
    this.lost = lost;
    this.show();
  }

  show() {
    const { lost, bar } = this;
    bar.hidden = lost.length === 0;
    if (bar.hidden) return bar.replaceChildren();
    const folder = commonFolder(lost.map(({ directory }) => directory));
    bar.replaceChildren(
      element("span", {}, t("folderLost", { n: lost.length }), " ", element("bdi", {}, folder)),
      element("button", { type: "button", class: "quiet", onclick: () => this.ask(folder) }, t("chooseFolder")));
  }

  ask(old) {
    const { lost } = this;
    const field = element("input", { type: "text", id: "new-folder", autocomplete: "off", spellcheck: "false", dir: "ltr", value: old });
    const problem = element("p", { class: "field-note", role: "alert" });
    const send = element("button", { type: "submit", class: "primary", form: "folder-form" }, t("useFolder"));
    const form = element(
      "form", { id: "folder-form" },
      element("p", {}, t("folderText", { n: lost.length })),
      element("label", { class: "field" }, element("span", {}, t("newFolder")), field), problem);
    const dismiss = element("button", { type: "button", class: "quiet" }, t("dismiss"));
    const buttons = [dismiss, send];
    const dialog = openDialog({ title: t("chooseFolder"), className: "small", content: [form], buttons });
    dismiss.addEventListener("click", () => dialog.close());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      send.disabled = true;
      try {
        for (const { id, directory } of lost) {
          await this.actions.change(id, { directory: movedFolder(directory, old, field.value.trim()) });
        }
        dialog.close();
        await this.actions.perform("retry", lost.map(({ id }) => id));
        announce(t("folderChanged", { n: lost.length }));
      } catch (error) {
        showProblem(problem, error);
        field.select();
      } finally {
        send.disabled = false;
        this.look();
      }
    });
    field.select();
    field.focus();
  }
}
