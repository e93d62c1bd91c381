// Keyboard shortcuts. The keys of the list work while the list has the focus. Single letters work outside of text
// fields and can be disabled in the settings (WCAG 2.1.4).

import { isTyping } from "./dom.js";
import { isDialogOpen } from "./dialogs.js";
import { recall } from "./memory.js";

export class Keyboard {
  /** `commands`: `add`, `search`, `help`, `limit`, `settings`, `escape`. */
  constructor(list, actions, commands) {
    Object.assign(this, { list, actions, commands });
    document.addEventListener("keydown", (event) => this.pressed(event));
    list.rows.addEventListener("keydown", (event) => this.pressedInList(event));
    // The scroller has the focus after a filter removed all rows.
    list.scroller.addEventListener("keydown", (event) => {
      if (event.target === list.scroller && ["ArrowDown", "ArrowUp", "Home"].includes(event.key)) {
        event.preventDefault();
        list.go(0);
      }
    });
  }

  pressed(event) {
    if (event.defaultPrevented || event.isComposing || isDialogOpen() || document.querySelector(":popover-open")) return;
    if (event.key === "Escape") return this.commands.escape(event);
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (recall("keys", "on") === "off") return;
    const letters = { "/": "search", a: "add", n: "add", "?": "help", l: "limit", s: "settings" };
    const command = letters[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!command) return;
    event.preventDefault();
    this.commands[command]();
  }

  pressedInList(event) {
    if (event.isComposing) return;
    const isInButton = event.target.closest("button") !== null;
    if (event.altKey) return this.reorder(event);
    if (this.move(event) || this.act(event, isInButton)) event.preventDefault();
  }

  move(event) {
    const { list } = this;
    const extend = event.shiftKey;
    switch (event.key) {
      case "ArrowDown": list.go(1, { extend }); return true;
      case "ArrowUp": list.go(-1, { extend }); return true;
      case "PageDown": list.go(list.page, { extend }); return true;
      case "PageUp": list.go(-list.page, { extend }); return true;
      case "Home": list.go(-Infinity, { extend }); return true;
      case "End": list.go(Infinity, { extend }); return true;
      case "a":
        if (!event.ctrlKey && !event.metaKey) return false;
        list.select(list.store.ids);
        return true;
      default: return false;
    }
  }

  act(event, isInButton) {
    const { list, actions } = this;
    const perform = (action) => actions.perform(action, list.targets);
    if (event.key === "Delete" || event.key === "Backspace") perform("remove");
    else if (isInButton) return false; // Enter and Space activate the button itself.
    else if (event.key === " ") actions.toggle(list.targets);
    else if (event.key === "Enter") list.active && list.handlers.open(list.active, { takesFocus: true });
    else if (event.key === "ContextMenu" || (event.shiftKey && event.key === "F10")) this.menu();
    else return this.letter(event, perform);
    return true;
  }

  letter(event, perform) {
    if (event.ctrlKey || event.metaKey || recall("keys", "on") === "off") return false;
    switch (event.key.toLowerCase()) {
      case "j": this.list.go(1); break;
      case "k": this.list.go(-1); break;
      case "c": perform("cancel"); break;
      case "r": perform("retry"); break;
      case "m": this.menu(); break;
      default: return false;
    }
    return true;
  }

  menu() {
    const row = this.list.shown.get(this.list.active);
    if (row) this.list.handlers.menu(row.id, row.more);
  }

  reorder(event) {
    const where = { ArrowUp: "up", ArrowDown: "down", Home: "top", End: "bottom" }[event.key];
    if (!where || !this.list.active) return;
    event.preventDefault();
    const id = this.list.active;
    this.actions.shift(id, where);
    // Set the focus now: the user may move it before the service responds.
    this.list.focus(id);
  }
}
