// The page in English or Simplified Chinese. Words are in words….js; this file finds, fills in and switches them.

import { chinese } from "./wordsChinese.js";
import { english } from "./wordsEnglish.js";
import { remember } from "./memory.js";

const languages = { en: english, "zh-Hans": chinese };
const listeners = new Set();
let current = document.documentElement.lang in languages ? document.documentElement.lang : "en";
let plurals = new Intl.PluralRules(current);

/** `en` or `zh-Hans`. */
export const language = () => current;

/** Calls `listener` after each switch. */
export const onLanguage = (listener) => listeners.add(listener);

/**
 * The sentence of that name, with `{…}` filled in. One that depends on a number `n` is an object of plural forms; `n`
 * is shown with the language's own separators.
 */
export function t(key, values = {}) {
  let sentence = own(languages[current], key) ?? own(english, key) ?? key;
  if (typeof sentence === "object") sentence = sentence[plurals.select(values.n ?? 0)] ?? sentence.other;
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    if (value === undefined) return whole;
    return typeof value === "number" ? value.toLocaleString(current) : value;
  });
}

/** Some names come from elsewhere, and every object has a `constructor`. */
const own = (words, key) => (Object.hasOwn(words, key) ? words[key] : undefined);

/** Whether there is a sentence of that name. */
export const has = (key) => Object.hasOwn(english, key);

/** Switches, remembers it, and rewrites what is on the page. */
export function setLanguage(name) {
  if (!(name in languages) || name === current) return;
  current = name;
  plurals = new Intl.PluralRules(current);
  document.documentElement.lang = current;
  remember("language", current);
  translate(document);
  for (const listener of listeners) listener();
}

/** Fills in every `data-t`, `data-t-label`, `data-t-title` and `data-t-placeholder` below `root`. */
export function translate(root) {
  for (const each of root.querySelectorAll("[data-t]")) each.textContent = t(each.dataset.t);
  for (const each of root.querySelectorAll("[data-t-label]")) {
    each.setAttribute("aria-label", t(each.dataset.tLabel));
    if (each.matches("button")) each.title = t(each.dataset.tLabel);
  }
  for (const each of root.querySelectorAll("[data-t-placeholder]")) each.placeholder = t(each.dataset.tPlaceholder);
}
