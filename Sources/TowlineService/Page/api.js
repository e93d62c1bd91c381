// The API as functions. URLs are relative to the page, so that the page works behind a proxy with a path prefix. They
// do not contain the user name and password of `https://anna:secret@nas.example/`, because `fetch` refuses such URLs.

import { t } from "./language.js";

/** The URL of a file or a path of the service. */
export const address = (path) => new URL(path, location.origin + location.pathname).href;
const base = address("api/v1/");

/** An error response of the service (RFC 9457). */
export class Problem extends Error {
  constructor(status, body = {}) {
    super(body.detail || body.title || `the request failed with HTTP status ${status}`);
    this.status = status;
    this.code = body.code;
  }
}

/** Called when the service responds with 401; the page then shows the sign-in dialog. */
let signedOut = () => {};
export const onSignedOut = (listener) => (signedOut = listener);

async function call(method, path, { query, body, signal } = {}) {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== "" && value !== false) parameters.set(key, value);
  }
  // The service reads a plus sign as itself, and not as a space.
  const text = parameters.toString().replaceAll("+", "%20");
  const options = { method, signal, credentials: "same-origin", cache: "no-store", headers: {} };
  // The service accepts changes only as JSON, because a form on another site cannot send JSON.
  if (method !== "GET") options.headers["Content-Type"] = "application/json";
  if (body !== undefined) options.body = JSON.stringify(body);
  const answer = await fetch(base + path + (text && `?${text}`), options);
  if (answer.ok) return answer.status === 204 ? undefined : answer.json();
  const problem = new Problem(answer.status, await answer.json().catch(() => undefined));
  if (answer.status === 401 && path !== "session") signedOut();
  throw problem;
}

/** Signs in. Throws an error with the reason if the browser does not keep the cookie of the session. */
async function signIn(proof) {
  await call("POST", "session", { body: proof });
  const check = await fetch(`${base}totals`, { credentials: "same-origin", cache: "no-store" });
  if (check.status === 401) throw new Error(t("cookiesBlocked"));
}

const one = (id) => `downloads/${encodeURIComponent(id)}`;

export const api = {
  /** Signs in. `proof` is `{token}` or `{code}`. */
  signIn,
  /** How to sign in: the path of the token file, if this browser runs on the machine of towd. */
  signInHelp: () => call("GET", "session"),
  signOut: () => call("DELETE", "session"),
  list: (query, signal) => call("GET", "downloads", { query, signal }),
  add: (downloads) => call("POST", "downloads", { body: { downloads } }),
  /** Finds the links in a text. */
  links: (text, signal) => call("POST", "links", { body: { text }, signal }),
  get: (id, signal) => call("GET", one(id), { signal }),
  change: (id, changes) => call("PATCH", one(id), { body: changes }),
  act: (id, action) => call("POST", `${one(id)}/actions/${action}`),
  remove: (id, files) => call("DELETE", one(id), { query: { files: files && "true" } }),
  timeline: (id, after, signal) => call("GET", `${one(id)}/timeline`, { query: { after, limit: 1000 }, signal }),
  segments: (id, signal) => call("GET", `${one(id)}/segments`, { signal }),
  totals: (signal) => call("GET", "totals", { signal }),
  settings: () => call("GET", "settings"),
  changeSettings: (changes) => call("PATCH", "settings", { body: changes }),
  actOnAll: (action, group) => call("POST", `actions/${action}`, { query: { group } }),
  hosts: () => call("GET", "hosts"),
  contentAddress: (id) => `${base}${one(id)}/content`,
  events: () => new EventSource(`${base}events`),
};
