// Assembles the page.

import { Actions, actionLabel, can } from "./actions.js";
import { Adding, takeFragment } from "./add.js";
import { announce, announceNotice, complain, Ends, problemText } from "./announce.js";
import { api, onSignedOut } from "./api.js";
import { Details } from "./details.js";
import { confirm, showHelp, signIn } from "./dialogs.js";
import { byId, copyText, element, onColours } from "./dom.js";
import { LostFolders } from "./folders.js";
import { isComplete, nameOf } from "./format.js";
import { Header } from "./header.js";
import { icon } from "./icons.js";
import { Keyboard } from "./keyboard.js";
import { onLanguage, t, translate } from "./language.js";
import { read } from "./links.js";
import { List } from "./list.js";
import { Live } from "./live.js";
import { openMenu } from "./menu.js";
import { Reordering } from "./reorder.js";
import { Settings } from "./settings.js";
import { Store } from "./store.js";

const narrow = matchMedia("(max-width: 56.1875rem)");
const streamPatience = 1500;
const listPatience = 2500;

byId("unscripted").remove();
translate(document);
for (const each of document.querySelectorAll("[data-icon]")) each.prepend(icon(each.dataset.icon));

const store = new Store();
const actions = new Actions(store, confirm);
const settings = new Settings();
const header = new Header(store);
const adding = new Adding(store);
const ends = new Ends();
const folders = new LostFolders(store, actions);
const details = new Details(store, actions, (hadFocus) => {
  list.openId = undefined;
  list.refresh();
  if (history.state?.details) history.back();
  if (hadFocus && list.active) list.focus(list.active);
});
const list = new List(byId("list"), byId("rows"), store, { open, toggle: (ids) => actions.toggle(ids), menu: rowMenu, selectionChanged });
new Reordering(list, actions);
new Keyboard(list, actions, {
  add: () => adding.open(),
  search: () => byId("search").focus(),
  help: showHelp,
  limit: () => settings.openLimit(),
  settings: () => settings.open(),
  escape,
});

function open(id, { takesFocus = false } = {}) {
  list.openId = id;
  details.open(id);
  list.refresh();
  // On a narrow screen, the panel covers the list, so Back closes it.
  if (narrow.matches && !history.state?.details) history.pushState({ details: true }, "");
  if (takesFocus || narrow.matches) byId("details").focus({ preventScroll: true });
}

function escape(event) {
  if (document.activeElement === byId("search")) {
    if (byId("search").value) header.clear();
    if (list.active) list.focus(list.active);
  } else if (list.selected.size) list.select([]);
  else if (details.id) details.close();
  else return;
  event.preventDefault();
}

function rowMenu(id, anchor, point) {
  const download = store.byId.get(id);
  const targets = list.selected.has(id) ? list.targets : [id];
  const action = (name) => ({
    label: actionLabel(name, download), icon: name, danger: name === "remove", act: () => actions.perform(name, targets),
  });
  const shift = (where) => ({
    label: t(`move.${where}`), icon: where,
    act: () => {
      actions.shift(id, where);
      list.focus(id);
    },
  });
  const items = ["resume", "pause", "retry", "cancel"].filter((name) => can(name, download)).map(action);
  if (isComplete(download)) {
    items.unshift({ label: t("saveCopy"), icon: "save", href: api.contentAddress(id) });
  }
  items.push({ label: t("details"), icon: "details", act: () => open(id, { takesFocus: true }) });
  items.push({ label: t("copyAddress"), icon: "copy", act: () => copy(download.url) });
  if (actions.canReorder()) items.push(null, ...["top", "up", "down", "bottom"].map(shift));
  items.push(null, action("remove"));
  openMenu(items, anchor, { label: t("moreFor", { name: nameOf(download) }), point });
}

async function copy(text) {
  if (await copyText(text)) announce(t("copied"));
  else announce(t("cannotCopy"), "bad");
}

/** Shows the action bar above the list while rows are selected. */
function selectionChanged(selected) {
  const bar = byId("selection");
  bar.hidden = selected.size === 0;
  if (selected.size === 0) return bar.replaceChildren();
  const button = (name) => element(
    "button", { type: "button", class: "quiet", icon: name, "data-action": name, onclick: () => actions.perform(name, list.targets) },
    element("span", { class: "label" }, t(name)));
  const clear = element("button", { type: "button", class: "quiet", icon: "close", onclick: () => list.select([]) },
    element("span", { class: "label" }, t("clearSelection")));
  bar.replaceChildren(
    element("strong", { role: "status" }, t("selectedCount", { n: selected.size })),
    ...["resume", "pause", "retry", "cancel", "remove"].map(button), clear);
}

/** Shows a hint in an empty list: how to add links, or how to show all downloads. */
function showEmpty() {
  const box = byId("empty");
  box.hidden = store.ids.length > 0 || !store.loaded;
  if (box.hidden) return;
  const narrowed = header.isNarrowed;
  const title = t(narrowed ? "emptyNarrowed" : "emptyTitle");
  // Keep an unchanged hint: it may have the focus, or the user drags something over it.
  if (box.querySelector("h2")?.textContent === title) return;
  const button = narrowed
    ? element("button", { type: "button", class: "quiet", onclick: () => header.clear() }, t("showAll"))
    : element("button", { type: "button", class: "primary", icon: "plus", onclick: () => adding.open() }, t("addLinks"));
  box.replaceChildren(
    element("div", { class: "empty-mark", icon: narrowed ? "search" : "mark" }),
    element("h2", {}, title),
    element("p", {}, t(narrowed ? "emptyNarrowedText" : "emptyText")), button);
}

function heard(name, data) {
  switch (name) {
    case "added":
    case "changed": return store.apply(data, name === "added");
    case "removed": return store.remove(data.id);
    case "noted": return store.tell("noted", data);
    case "notice": return announceNotice(data.message);
    case "totals": return store.setTotals(data);
    case "reset": return readAgain();
  }
}

/** Reads the list and the open download again after events were missed. */
function readAgain() {
  store.reload();
  details.catchUp();
}

/** Shows a lost stream in the banner after a delay, so that short interruptions stay invisible. */
function streamState(isOpen, { fresh = false, silent = false } = {}) {
  clearTimeout(streamState.timer);
  const show = (isLost) => {
    byId("banner").textContent = t("connectionLost");
    byId("banner").hidden = !isLost;
    document.body.classList.toggle("unheard", isLost);
    header.showTitle();
  };
  if (isOpen) {
    show(false);
    if (fresh) readAgain();
    return;
  }
  const lost = () => show(true);
  if (silent) lost();
  else streamState.timer = setTimeout(lost, streamPatience);
}

const live = new Live(heard, streamState);
store.on("list", showEmpty);
store.on("moved", (download) => ends.note(download));
store.on("failed", complain);
store.on("totals", (totals) => settings.hearLimit(totals.rateLimit));

/** Updates the remaining time of waiting downloads. */
setInterval(() => {
  if (document.hidden) return;
  for (const [id, row] of list.shown) if (store.byId.get(id)?.state === "waiting") list.show(row, id);
}, 1000);

onColours(() => {
  header.paint();
  details.repaint();
});

onLanguage(() => {
  translate(document);
  header.build();
  folders.show();
  settings.showLimit();
  list.refresh();
  details.rebuild();
  selectionChanged(list.selected);
  showEmpty();
});

let asking;
onSignedOut(() => {
  live.stop();
  asking ??= signIn(api.signIn, api.signInHelp).then(() => {
    asking = undefined;
    begin();
  });
});

async function all(action) {
  try {
    await api.actOnAll(action, store.query.group);
  } catch (problem) {
    complain(problem);
  }
}

byId("add-button").addEventListener("click", () => adding.open());
byId("settings-button").addEventListener("click", () => settings.open());
byId("help-button").addEventListener("click", showHelp);
byId("limit-button").addEventListener("click", () => settings.openLimit());
byId("pause-all").addEventListener("click", () => all("pause-all"));
byId("resume-all").addEventListener("click", () => all("resume-all"));
addEventListener("hashchange", arrive);
addEventListener("popstate", () => history.state?.details || details.close());

/** Reads the settings, which checks the access token, and then opens the stream. */
async function begin() {
  await settings.read();
  if (asking) return;
  header.addGroups(Object.keys(settings.values.groups ?? {}));
  live.start();
  // A proxy may delay the stream: read the list anyway.
  setTimeout(() => store.loaded || store.reload(), listPatience);
}

/** Signs in with a code or token from the URL, and opens the dialog with links from the URL. */
async function arrive() {
  const { proof, text } = takeFragment();
  if (proof) {
    await api.signIn(proof).then(
      () => byId("sign-in")?.closest("dialog").close(),
      (problem) => announce(problem.status === 401 ? t("usedLink") : problemText(problem), "bad"));
  }
  if (proof || !live.source) await begin();
  if (!text) return;
  await asking;
  const found = await read(text).catch(complain);
  if (found?.links.length) adding.open(found.links, { foreign: true });
}

arrive();
