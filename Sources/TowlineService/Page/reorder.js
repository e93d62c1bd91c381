// Reordering with the mouse: the user drags a row, and a line shows its new position.

const kind = "application/x-towline-row";

export class Reordering {
  constructor(list, actions) {
    Object.assign(this, { list, actions });
    const { rows } = list;
    rows.append(list.marker);
    rows.addEventListener("dragstart", (event) => this.started(event));
    rows.addEventListener("dragover", (event) => this.over(event));
    rows.addEventListener("drop", (event) => this.dropped(event));
    rows.addEventListener("dragend", () => this.ended());
  }

  started(event) {
    const id = event.target.closest?.(".row")?.dataset.id;
    if (!id || !this.actions.canReorder()) return;
    this.id = id;
    event.dataTransfer.setData(kind, id);
    event.dataTransfer.effectAllowed = "move";
    event.target.classList.add("dragged");
  }

  /** The index of the gap nearest to the pointer; 0 is before the first row. */
  gap(event) {
    const y = event.clientY - this.list.rows.getBoundingClientRect().top;
    return Math.max(0, Math.min(this.list.store.ids.length, Math.round(y / this.list.height)));
  }

  over(event) {
    if (this.id === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    event.dataTransfer.dropEffect = "move";
    this.list.marker.hidden = false;
    this.list.marker.style.setProperty("transform", `translateY(${this.gap(event) * this.list.height - 1}px)`);
    this.scrollAt(event);
  }

  /** Scrolls the list while the pointer is near an edge. */
  scrollAt(event) {
    const { scroller } = this.list;
    const box = scroller.getBoundingClientRect();
    const edge = 48;
    if (event.clientY < box.top + edge) scroller.scrollTop -= 12;
    else if (event.clientY > box.bottom - edge) scroller.scrollTop += 12;
  }

  dropped(event) {
    if (this.id === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const { ids } = this.list.store;
    const from = ids.indexOf(this.id);
    const gap = this.gap(event);
    const target = gap > from ? gap - 1 : gap;
    const { id } = this;
    this.ended();
    if (from >= 0 && target !== from) this.actions.moveTo(id, target);
  }

  ended() {
    this.id = undefined;
    this.list.marker.hidden = true;
    for (const row of this.list.rows.querySelectorAll(".dragged")) row.classList.remove("dragged");
  }
}
