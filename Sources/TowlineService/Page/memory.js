// What this browser remembers of its user's taste. Nothing about downloads is kept here, and no token.

const prefix = "towline.";

/** What was remembered, or `otherwise`. */
export function recall(key, otherwise) {
  try {
    return localStorage.getItem(prefix + key) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Remembers `value`; `undefined` forgets. A browser that keeps nothing loses taste, not function. */
export function remember(key, value) {
  try {
    if (value === undefined) localStorage.removeItem(prefix + key);
    else localStorage.setItem(prefix + key, value);
  } catch {
    // Storage is switched off or full.
  }
}
