// Dialogs, as native `dialog` elements: they trap the focus, restore it, and close with Escape.

import { problemText } from "./announce.js";
import { element } from "./dom.js";
import { t } from "./language.js";

let serial = 0;

/**
 * Opens a dialog with a title, `content` and a row of buttons. Returns an object with `element`, `close(value)` and
 * `closed`, a promise of that value (undefined if the user dismissed the dialog).
 */
export function openDialog({ title, content, buttons = [], className = "", dismissible = true }) {
  const id = `dialog-${(serial += 1)}`;
  const close = element("button", {
    type: "button", class: "icon-button dialog-close", "aria-label": t("close"), title: t("close"), icon: "close",
  });
  const dialog = element(
    "dialog", { class: `dialog ${className}`, "aria-labelledby": id },
    element("header", {}, element("h2", { id }, title), dismissible && close),
    element("div", { class: "dialog-content" }, ...content),
    buttons.length > 0 && element("footer", {}, ...buttons),
  );
  let finish;
  let value;
  const closed = new Promise((resolve) => (finish = resolve));
  const handle = {
    element: dialog,
    closed,
    close: (result) => {
      value = result;
      dialog.close();
    },
  };
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("cancel", (event) => dismissible || event.preventDefault());
  dialog.addEventListener("pointerdown", (event) => {
    // A press on the backdrop closes the dialog. A press on its scroll bar does not, and neither does a press that
    // begins inside and moves out.
    const { left, right, top, bottom } = dialog.getBoundingClientRect();
    const isInside = event.clientX >= left && event.clientX <= right && event.clientY >= top && event.clientY <= bottom;
    if (event.target === dialog && !isInside && dismissible) dialog.close();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    finish(value);
  });
  document.body.append(dialog);
  dialog.showModal();
  return handle;
}

export const isDialogOpen = () => document.querySelector("dialog[open]") !== null;

/** Asks the user. Resolves to undefined for no, and to `{option}` for yes; `option` is true if the box is checked. */
export function confirm({ title, text, option, action, dismiss = t("dismiss") }) {
  const box = element("input", { type: "checkbox" });
  const no = element("button", { type: "button", class: "quiet" }, dismiss);
  const yes = element("button", { type: "button", class: "danger" }, action);
  const dialog = openDialog({
    title,
    className: "small",
    content: [element("p", {}, text), option && element("label", { class: "check" }, box, element("span", {}, option))],
    buttons: [no, yes],
  });
  no.addEventListener("click", () => dialog.close());
  yes.addEventListener("click", () => dialog.close({ option: box.checked }));
  yes.focus();
  return dialog.closed;
}

const shortcuts = [
  ["↑ ↓", "keyMove"], ["Shift ↑ ↓", "keySelect"], ["Ctrl A", "keySelectAll"], ["Enter", "keyOpen"],
  ["Space", "keyToggle"], ["Delete", "keyRemove"], ["C", "keyCancel"], ["R", "keyRetry"],
  ["Alt ↑ ↓", "keyReorder"], ["M", "keyMenu"], ["Tab", "keyTab"], ["Esc", "keyEscape"],
  ["A N", "keyAdd"], ["Ctrl V", "keyPaste"], ["/", "keySearch"], ["L", "keyLimit"], ["S", "keySettings"],
  ["?", "keyHelp"],
];

export function showHelp() {
  const rows = shortcuts.map(([keys, words]) =>
    element(
      "div", {},
      element("dt", {}, ...keys.split(" ").map((key) => element("kbd", {}, key))),
      element("dd", {}, t(words))));
  // Focusable, so that the arrow keys scroll the list on a small screen.
  return openDialog({ title: t("helpTitle"), className: "help", content: [element("dl", { class: "keys", tabindex: 0 }, ...rows)] });
}

/**
 * Asks for the access token until the service accepts it. `help()` resolves to `{tokenFile}`, the path of the token file,
 * which is missing if this browser runs on another machine.
 */
export function signIn(attempt, help) {
  const field = element("input", {
    type: "password", id: "token", autocomplete: "current-password", spellcheck: "false", "aria-describedby": "token-say",
  });
  const say = element("p", { id: "token-say", class: "field-note", role: "alert" });
  const send = element("button", { type: "submit", class: "primary", form: "sign-in" }, t("signIn"));
  const place = element("p", { id: "token-place" }, t("tokenPlace"));
  help?.().then(({ tokenFile }) => {
    if (tokenFile) place.replaceChildren(t("tokenFile"), " ", element("code", {}, tokenFile));
  }, () => {}); // The general text stays.
  const form = element(
    "form", { id: "sign-in" },
    element("p", {}, t("signInText")), place,
    // Password managers save a password with a user name: this one is different from that of a proxy on the same host.
    element("input", { type: "text", autocomplete: "username", value: "towd", hidden: true }),
    element("label", { class: "field" }, element("span", {}, t("token")), field), say);
  const dialog = openDialog({
    title: t("signInTitle"), className: "small", content: [form], buttons: [send], dismissible: false,
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      await attempt({ token: field.value.trim() });
      dialog.close(true);
    } catch (problem) {
      say.textContent = problem.status === 401 ? t("wrongToken") : problemText(problem);
      field.select();
    } finally {
      send.disabled = false;
    }
  });
  field.focus();
  return dialog.closed;
}
