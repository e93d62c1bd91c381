// Translation into English and Simplified Chinese. The texts are in words….js; this file looks up and switches them.

import { chinese } from "./wordsChinese.js";
import { english } from "./wordsEnglish.js";
import { remember } from "./memory.js";

const languages = { en: english, "zh-Hans": chinese };
const listeners = new Set();
let current = document.documentElement.lang in languages ? document.documentElement.lang : "en";
let plurals = new Intl.PluralRules(current);

/** The current language: `en` or `zh-Hans`. */
export const language = () => current;

/** Calls `listener` after each change of the language. */
export const onLanguage = (listener) => listeners.add(listener);

/**
 * Returns the text for `key`, with `{…}` filled in. A text that depends on a number `n` is an object of plural forms.
 * Numbers are formatted for the language.
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

/** Ignores inherited properties such as `constructor`, because some keys come from the service. */
const own = (words, key) => (Object.hasOwn(words, key) ? words[key] : undefined);

/** True if there is a text for `key`. */
export const has = (key) => Object.hasOwn(english, key);

/** Changes the language, stores the choice, and translates the page. */
export function setLanguage(name) {
  if (!(name in languages) || name === current) return;
  current = name;
  plurals = new Intl.PluralRules(current);
  document.documentElement.lang = current;
  remember("language", current);
  translate(document);
  for (const listener of listeners) listener();
}

/** Sets the texts of all `data-t`, `data-t-label` and `data-t-placeholder` elements below `root`. */
export function translate(root) {
  for (const each of root.querySelectorAll("[data-t]")) each.textContent = t(each.dataset.t);
  for (const each of root.querySelectorAll("[data-t-label]")) {
    each.setAttribute("aria-label", t(each.dataset.tLabel));
    if (each.matches("button")) each.title = t(each.dataset.tLabel);
  }
  for (const each of root.querySelectorAll("[data-t-placeholder]")) each.placeholder = t(each.dataset.tPlaceholder);
}
