// What can be done with downloads, and doing it with one or many.

import { announce, complain } from "./announce.js";
import { api } from "./api.js";
import { group } from "./order.js";
import { nameOf } from "./format.js";
import { t } from "./language.js";

/** Whether an action makes sense in the state a download is in. The service has the last word. */
const allowed = {
  pause: (download) => ["queued", "active", "waiting"].includes(group(download.state)),
  resume: (download) => ["paused", "waiting"].includes(download.state),
  retry: (download) => ["failed", "cancelled"].includes(download.state) || download.followUp?.state === "failed",
  cancel: (download) => !["finished", "cancelled"].includes(download.state),
  remove: () => true,
};

/** Requests at one time when many downloads are acted on. */
const width = 6;

export const can = (action, download) => allowed[action](download);

/** What the round button of a row does: `pause`, `resume` or `retry`; undefined where nothing is left to do. */
export function primary(download) {
  if (can("retry", download)) return "retry";
  if (download.state === "paused") return "resume";
  return can("pause", download) ? "pause" : undefined;
}

/** The words on an action's button; a wait is ended rather than resumed. */
export function actionLabel(action, download) {
  return t(action === "resume" && download?.state === "waiting" ? "goOnNow" : action);
}

export class Actions {
  constructor(store, confirm) {
    this.store = store;
    this.confirm = confirm;
    /** Ends with the last of the changes of the order. */
    this.moves = Promise.resolve();
  }

  /** Acts on those of `ids` that it makes sense for; asks before anything is lost. */
  async perform(action, ids) {
    const downloads = ids.map((id) => this.store.byId.get(id)).filter((each) => each && can(action, each));
    if (downloads.length === 0) return;
    if (action === "remove") return this.remove(downloads);
    if (action === "cancel" && !(await this.confirmCancel(downloads))) return;
    await each(downloads, async (download) => {
      this.store.apply(await api.act(download.id, action));
    });
  }

  /** Space, and the round button. Many follow the first of them. */
  async toggle(ids) {
    const first = ids.map((id) => this.store.byId.get(id)).find((download) => download && primary(download));
    if (first) await this.perform(primary(first), ids);
  }

  async confirmCancel(downloads) {
    // Of one that is under way the last word may be older than its first byte.
    if (!downloads.some(({ heldBytes, state }) => heldBytes > 0 || group(state) === "active")) return true;
    return this.confirm({
      title: t("cancelTitle", { n: downloads.length, name: `“${nameOf(downloads[0])}”` }),
      text: t("cancelText"),
      action: t("cancelDo", { n: downloads.length }),
      dismiss: t("keepDownload", { n: downloads.length }),
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

  /** Changes what can be changed; what was refused is said and thrown, so that a form can stay open. */
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

  /** Order is the queue's, shown from its beginning: only then does a place in the list mean one in the queue. */
  canReorder() {
    const { order, descending } = this.store.query;
    return order === "queue" && !descending;
  }

  /**
   * Puts it where the download at `target` is now. The queue is ordered by priority first: a download that is put
   * among those of another priority takes theirs.
   */
  async moveTo(id, target) {
    const { ids, byId } = this.store;
    const index = ids.indexOf(id);
    const download = byId.get(id);
    const there = byId.get(ids[target]);
    if (!download || !there || index === target) return;
    // Going down, it goes behind the one that is there.
    const next = index < target ? byId.get(ids[target + 1]) : there;
    const before = next && next.priority === there.priority ? next.id : null;
    const changes = { before };
    if (there.priority !== download.priority) changes.priority = there.priority;
    const shown = index < target ? (ids[target + 1] ?? null) : there.id;
    this.store.move(id, shown);
    // One after another: of two that are under way at once the service may hear the second one first.
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

/** Does `work` with all, a few at one time. Says what went wrong once for each reason. */
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
