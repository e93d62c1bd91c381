// Preferences in the browser's local storage. The storage contains no token and no data about downloads.

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
