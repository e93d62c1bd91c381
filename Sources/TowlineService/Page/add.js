// Adding downloads: the sources of links (paste, drop, bookmarklet).

import { AddDialog } from "./addDialog.js";
import { announce, complain } from "./announce.js";
import { isDialogOpen } from "./dialogs.js";
import { byId, isTyping } from "./dom.js";
import { t } from "./language.js";
import { mayHoldLinks, readData } from "./links.js";

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
    const found = await readData(event.clipboardData).catch(complain);
    if (found?.links.length || found?.schemes.length) this.open(found.links, { found });
  }

  async dropped(event) {
    if (!mayHoldLinks(event.dataTransfer) || isTyping(event.target)) return;
    event.preventDefault();
    const found = await readData(event.dataTransfer).catch(complain);
    if (!found) return;
    if (found.links.length === 0 && found.schemes.length === 0) announce(t("noLinks"));
    else if (this.openDialog) this.openDialog.append(found.links);
    else this.open(found.links, { found });
  }

  /**
   * Opens the dialog with `links` in it. The user must confirm; `foreign` links may come from another site. `found` is the
   * text that contained the links, as `read` returns it.
   */
  open(links = [], { foreign = false, found = undefined } = {}) {
    if (this.openDialog && links.length) return this.openDialog.append(links, foreign);
    const other = document.querySelector("dialog[open]");
    // Links of another page wait until the dialog is closed.
    const again = () => this.open(links, { foreign, found });
    if (other && links.length) other.addEventListener("close", again, { once: true });
    if (other) return;
    this.dialog = new AddDialog(this.store, links, foreign, found);
  }

  /** The dialog if it is open. A closed dialog is in the page until its event `close`. */
  get openDialog() {
    return this.dialog?.form.closest("dialog[open]") && this.dialog;
  }
}

/**
 * Reads a one-time `code` or the `token`, and the texts with links to `add`, from the URL's fragment, and removes the
 * fragment from the address bar. Browsers keep the fragment in their history, so only the code is safe there.
 */
export function takeFragment() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const [code, token] = [parameters.get("code"), parameters.get("token")];
  const asked = { proof: code ? { code } : token && { token }, text: parameters.getAll("add").join("\n") };
  if (["code", "token", "add"].some((name) => parameters.has(name))) history.replaceState(null, "", location.pathname + location.search);
  return asked;
}
