// The actions on downloads: which are possible, and performing them on one or many.

import { announce, complain } from "./announce.js";
import { api } from "./api.js";
import { group } from "./order.js";
import { isComplete, nameOf } from "./format.js";
import { t } from "./language.js";

/** Tests by action: can it be applied to a download in its state? The service makes the final decision. */
const allowed = {
  pause: (download) => ["queued", "active", "waiting"].includes(group(download.state)),
  resume: (download) => ["paused", "waiting"].includes(download.state),
  retry: (download) => ["failed", "follow-up-failed", "cancelled"].includes(download.state),
  cancel: (download) => !isComplete(download) && download.state !== "cancelled",
  remove: () => true,
};

/** Maximum number of concurrent requests when an action is applied to many downloads. */
const width = 6;

export const can = (action, download) => allowed[action](download);

/** The action of a row's round button: `pause`, `resume` or `retry`; undefined if none applies. */
export function primary(download) {
  if (can("retry", download)) return "retry";
  if (download.state === "paused") return "resume";
  return can("pause", download) ? "pause" : undefined;
}

/** The label of an action's button. For a waiting download, `resume` ends the wait and is labelled accordingly. */
export function actionLabel(action, download) {
  return t(action === "resume" && download?.state === "waiting" ? "goOnNow" : action);
}

export class Actions {
  constructor(store, confirm) {
    this.store = store;
    this.confirm = confirm;
    /** Settles when the last change of the order is complete. */
    this.moves = Promise.resolve();
  }

  /** Performs the action on each of `ids` that allows it. Asks first if the action loses data. */
  async perform(action, ids) {
    const downloads = ids.map((id) => this.store.byId.get(id)).filter((each) => each && can(action, each));
    if (downloads.length === 0) return;
    if (action === "remove") return this.remove(downloads);
    if (action === "cancel" && !(await this.confirmCancel(downloads))) return;
    if (action === "pause" && !(await this.confirmPause(downloads))) return;
    await each(downloads, async (download) => {
      this.store.apply(await api.act(download.id, action));
    });
  }

  /** The action of Space and of the round button. The first download determines the action for all. */
  async toggle(ids) {
    const first = ids.map((id) => this.store.byId.get(id)).find((download) => download && primary(download));
    if (first) await this.perform(primary(first), ids);
  }

  async confirmCancel(downloads) {
    // The last known state of an active download may be older than its first byte.
    if (!downloads.some(({ heldBytes, state }) => heldBytes > 0 || group(state) === "active")) return true;
    return this.confirm({
      title: t("cancelTitle", { n: downloads.length, name: `“${nameOf(downloads[0])}”` }),
      text: t("cancelText"),
      action: t("cancelDo", { n: downloads.length }),
      dismiss: t("keepDownload", { n: downloads.length }),
    });
  }

  /** A server without range requests sends the file from its first byte again. */
  async confirmPause(downloads) {
    const losing = downloads.filter(({ canPauseWithoutLoss }) => canPauseWithoutLoss === false);
    if (losing.length === 0) return true;
    return this.confirm({
      title: t("pauseTitle", { n: losing.length, name: `“${nameOf(losing[0])}”` }),
      text: t("pauseText"),
      action: t("pause"),
      dismiss: t("keepDownload", { n: losing.length }),
    });
  }

  async remove(downloads) {
    const answer = await this.confirm({
      title: t("removeTitle", { n: downloads.length, name: `“${nameOf(downloads[0])}”` }),
      text: t("removeText", { n: downloads.length }),
      option: t("removeFiles", { n: downloads.length }),
      action: t("remove"),
    });
    if (!answer) return;
    await each(downloads, async (download) => {
      await api.remove(download.id, answer.option);
      this.store.remove(download.id);
    });
    if (downloads.length > 1) announce(t("removed", { n: downloads.length }));
  }

  /** Changes options of a download. Throws if the service refuses the change, so that the form stays open. */
  async change(id, changes) {
    this.store.apply(await api.change(id, changes));
  }

  /** Moves a download in the queue: `up`, `down`, `top` or `bottom`. */
  async shift(id, where) {
    const { ids } = this.store;
    const index = ids.indexOf(id);
    if (index < 0 || !this.canReorder()) return;
    const target = { up: index - 1, down: index + 1, top: 0, bottom: ids.length - 1 }[where];
    if (target < 0 || target >= ids.length || target === index) return;
    await this.moveTo(id, target);
  }

  /** True if the list shows the queue in ascending order: only then does a list position equal a queue position. */
  canReorder() {
    const { order, descending } = this.store.query;
    return order === "queue" && !descending;
  }

  /**
   * Moves a download to the position `target`. The queue is ordered by priority first, so a download that is moved
   * among downloads of another priority takes their priority.
   */
  async moveTo(id, target) {
    const { ids, byId } = this.store;
    const index = ids.indexOf(id);
    const download = byId.get(id);
    const there = byId.get(ids[target]);
    if (!download || !there || index === target) return;
    // When moving down, the download goes after the download at `target`.
    const next = index < target ? byId.get(ids[target + 1]) : there;
    const before = next && next.priority === there.priority ? next.id : null;
    const changes = { before };
    if (there.priority !== download.priority) changes.priority = there.priority;
    const shown = index < target ? (ids[target + 1] ?? null) : there.id;
    this.store.move(id, shown);
    // Send the changes one after another: concurrent requests may arrive in the wrong order.
    const change = this.moves.then(() => api.change(id, changes));
    this.moves = change.catch(() => {});
    try {
      const answer = await change;
      this.store.byId.set(id, answer);
      this.store.mark(id);
      announce(t("movedTo", { name: nameOf(download), n: target + 1 }));
    } catch (problem) {
      complain(problem);
      this.store.reload();
    }
  }
}

/** Calls `work` for each download, a few at a time. Reports each distinct error once. */
async function each(downloads, work) {
  const queue = [...downloads];
  const problems = new Map();
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      try {
        await work(next);
      } catch (problem) {
        problems.set(problem.message, problem);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, downloads.length) }, worker));
  for (const problem of problems.values()) complain(problem);
}
