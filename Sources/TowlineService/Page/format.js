// Formats numbers for the user: the units of `tow`, in the language of the page.

import { language, t } from "./language.js";

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const formats = new Map();

function number(value, digits) {
  const key = `${language()} ${digits}`;
  let format = formats.get(key);
  if (!format) {
    format = new Intl.NumberFormat(language(), { minimumFractionDigits: digits, maximumFractionDigits: digits });
    formats.set(key, format);
  }
  return format.format(value);
}

/** `1,234` */
export const count = (value) => number(value, 0);

/** `11.2 MiB`: at most three digits, with one decimal below 100, so that the width changes little. */
export function bytes(value) {
  let unit = 0;
  let scaled = Math.max(0, value);
  while (scaled >= 1000 && unit < units.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${number(scaled, unit > 0 && scaled < 100 ? 1 : 0)}\u00a0${units[unit]}`;
}

/** `11.2 MiB/s` */
export const rate = (value) => `${bytes(value)}/s`;

/** `3.4 of 11.2 MiB` if both have the same unit, otherwise both with their units. */
export function sizes(held, length) {
  if (length === undefined) return bytes(held);
  const [heldText, lengthText] = [bytes(held), bytes(length)];
  const [figure, unit] = heldText.split("\u00a0");
  return t("of", { held: unit === lengthText.split("\u00a0")[1] ? figure : heldText, length: lengthText });
}

/** `34 %`, rounded down: 100 % means complete. */
export const percent = (fraction) => `${number(Math.floor(Math.min(1, Math.max(0, fraction)) * 100), 0)}\u00a0%`;

/** `12 s`, `4 min`, `1 h 20 min`, `3 d 4 h`: rounded to a useful precision. */
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return t("seconds", { n: whole });
  if (whole < 600) {
    // From one to ten minutes, round to ten seconds.
    const tens = Math.round(whole / 10) * 10;
    const rest = tens % 60;
    const minutes = t("minutes", { n: Math.floor(tens / 60) });
    return rest ? `${minutes} ${t("seconds", { n: rest })}` : minutes;
  }
  const minutes = Math.round(whole / 60);
  if (minutes < 60) return t("minutes", { n: minutes });
  if (minutes < 24 * 60) return join(t("hours", { n: Math.floor(minutes / 60) }), minutes % 60, "minutes");
  const hours = Math.round(minutes / 60);
  if (hours < 100 * 24) return join(t("days", { n: Math.floor(hours / 24) }), hours % 24, "hours");
  return t("longTime");
}

const join = (first, rest, unit) => (rest ? `${first} ${t(unit, { n: rest })}` : first);

/** `14:03` today, `Mar 4, 14:03` this year, and with the year for earlier dates. */
export function when(milliseconds) {
  const date = new Date(milliseconds);
  const now = new Date();
  const parts = { hour: "2-digit", minute: "2-digit" };
  if (date.toDateString() !== now.toDateString()) Object.assign(parts, { month: "short", day: "numeric" });
  if (date.getFullYear() !== now.getFullYear()) parts.year = "numeric";
  return new Intl.DateTimeFormat(language(), parts).format(date);
}

/** `14:03:07` */
export const clock = (milliseconds) =>
  new Intl.DateTimeFormat(language(), { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(milliseconds);

const powers = { "": 0, b: 0, k: 1, m: 2, g: 3, t: 4 };

/**
 * Parses a number of bytes: `10M`, `1.5 MiB/s`, `800k`, `2000`. Returns `null` for an empty text, `none` or 0, and
 * `undefined` for an invalid text. As in `tow`, M is 2^20.
 */
export function parseBytes(text) {
  const plain = text.trim().toLowerCase().replace(/\/s$/, "").trim();
  if (plain === "" || plain === "none") return null;
  const match = /^(\d+(?:[.,]\d+)?)\s*([kmgt]?)(?:i?b)?$/.exec(plain) ?? /^(\d+(?:[.,]\d+)?)\s*(b)$/.exec(plain);
  if (!match) return undefined;
  const value = Math.round(Number(match[1].replace(",", ".")) * 1024 ** powers[match[2]]);
  if (!Number.isSafeInteger(value)) return undefined;
  return value === 0 ? null : value;
}

/** Formats a value for an edit field, in a form that `parseBytes` accepts. */
export function editableBytes(value) {
  if (!value) return "";
  let power = 0;
  let scaled = value;
  while (scaled >= 1024 && power < 4 && Number.isInteger((scaled / 1024) * 10)) {
    scaled /= 1024;
    power += 1;
  }
  return `${scaled}${["", "K", "M", "G", "T"][power]}`;
}

/** Control characters and bidirectional overrides: `gpj.exe` must not appear as `exe.jpg`. */
const deceptive = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** The name of a download, or the last component of its URL. Replaces deceptive characters by U+FFFD. */
export const nameOf = (download) => (download.name || lastPart(download.url)).replace(deceptive, "\ufffd");

function lastPart(url) {
  try {
    const address = new URL(url);
    const last = address.pathname.split("/").filter(Boolean).pop();
    return last ? decodeURIComponent(last) : address.host;
  } catch {
    return url;
  }
}

/** The host of a download, which distinguishes downloads with equal names. */
export function hostOf(download) {
  try {
    return new URL(download.url).host;
  } catch {
    return "";
  }
}

/** True if the file is complete, also if a follow-up action failed. */
export const isComplete = ({ state }) => ["finished", "follow-up-failed"].includes(state);

/** The progress from 0 to 1, or undefined while the complete length is unknown. */
export function fraction(download) {
  if (isComplete(download)) return 1;
  if (download.completeLength === undefined) return undefined;
  return download.completeLength > 0 ? Math.min(1, download.heldBytes / download.completeLength) : 0;
}
