// Preferences in the browser's local storage, and links that were typed but not added yet in the storage of the tab. The
// storage contains no token, no credentials and no data about downloads.

const prefix = "towline.";

/** Returns the stored value, or `otherwise`. */
export function recall(key, otherwise) {
  try {
    return localStorage.getItem(prefix + key) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Stores `value`; `undefined` removes it. Without storage, the page works with its defaults. */
export function remember(key, value) {
  try {
    if (value === undefined) localStorage.removeItem(prefix + key);
    else localStorage.setItem(prefix + key, value);
  } catch {
    // Storage is disabled or full.
  }
}

let draft;

/** Returns the object of `rememberDraft`, or an empty object. */
export function recallDraft() {
  if (draft) return draft;
  try {
    return JSON.parse(sessionStorage.getItem(`${prefix}draft`)) ?? {};
  } catch {
    return {};
  }
}

/** Keeps `value` for this tab, and stores `stored` for the time after a reload; `undefined` removes both. */
export function rememberDraft(value, stored = value) {
  draft = value;
  try {
    if (value === undefined) sessionStorage.removeItem(`${prefix}draft`);
    else sessionStorage.setItem(`${prefix}draft`, JSON.stringify(stored));
  } catch {
    // Storage is disabled or full.
  }
}
