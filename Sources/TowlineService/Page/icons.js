// Line icons on a 24 × 24 grid.

const shapes = {
  mark: "M12 3v10M7.5 9l4.5 4.5L16.5 9M3 19c2.25 0 2.25-2 4.5-2s2.25 2 4.5 2 2.25-2 4.5-2 2.25 2 4.5 2",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20 20",
  plus: "M12 5v14M5 12h14",
  settings: "M4 7h9M19 7h1M4 17h1M11 17h9M16 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM8 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  help: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.6 9.3a2.5 2.5 0 1 1 3.6 2.3c-.8.4-1.2 1-1.2 1.9M12 16.7v.1",
  gauge: "M4.9 18a9 9 0 1 1 14.2 0M12 14l4-5",
  pause: "M9 6v12M15 6v12",
  resume: "M8 5.5v13l10.5-6.5z",
  retry: "M19.5 12a7.5 7.5 0 1 1-2.2-5.3L19.5 9M19.5 4v5h-5",
  cancel: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  close: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  check: "M5.5 12.5l4.5 4.5 8.5-9.5",
  remove: "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.5 10.5v5.5M13.5 10.5v5.5",
  more: "M6 12v.01M12 12v.01M18 12v.01",
  up: "M12 19V6M6.5 11 12 5.5l5.5 5.5",
  down: "M12 5v13M6.5 13l5.5 5.5 5.5-5.5",
  top: "M5 5h14M12 20V9.5M7 14l5-5 5 5",
  bottom: "M5 19h14M12 4v10.5M7 10l5 5 5-5",
  copy: "M9 9h10v11H9zM5 15V4h10",
  save: "M12 4v11M7.5 11l4.5 4.5 4.5-4.5M5 20h14",
  details: "M4 5h16v14H4zM14 5v14",
  direction: "M8 5v14M4.5 15.5 8 19l3.5-3.5M16 19V5M12.5 8.5 16 5l3.5 3.5",
  link: "M10 14a4 4 0 0 0 5.7 0l3-3A4 4 0 0 0 13 5.3l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.7l1-1",
  back: "M19 12H6M11.5 6.5 6 12l5.5 5.5",
};

/** Returns an icon that is hidden from screen readers; the label of its button describes it. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", `icon icon-${name}`);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", shapes[name]);
  svg.append(path);
  return svg;
}

/** Replaces the icon of `target`, unless it already has this icon. */
export function swapIcon(target, name) {
  const old = target.querySelector("svg");
  if (old?.classList.contains(`icon-${name}`)) return;
  if (old) old.replaceWith(icon(name));
  else target.prepend(icon(name));
}
