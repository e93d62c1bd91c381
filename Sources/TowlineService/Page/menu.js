// Popovers: the menu of a row, and small panels below a button.

import { element } from "./dom.js";
import { icon } from "./icons.js";

/** Places `panel` next to `anchor`, or at the pointer, inside the window. */
function position(panel, anchor, point) {
  const box = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = panel;
  const edge = 8;
  const left = point ? point.clientX : box.right - width;
  const below = point ? point.clientY : box.bottom + 4;
  const above = point ? point.clientY - height : box.top - height - 4;
  const top = below + height + edge > innerHeight && above > edge ? above : below;
  const clamp = (value, most) => Math.max(edge, Math.min(value, most - edge));
  panel.style.setProperty("left", `${clamp(left, innerWidth - width)}px`);
  panel.style.setProperty("top", `${clamp(top, innerHeight - height)}px`);
}

/** Opens `panel` at `anchor`. Escape, a press outside, or a resize closes it. Returns a function that closes it. */
export function openPanel(panel, anchor, point) {
  panel.setAttribute("popover", "auto");
  const back = document.activeElement;
  document.body.append(panel);
  panel.showPopover();
  position(panel, anchor, point);
  anchor.setAttribute("aria-expanded", "true");
  const close = () => panel.isConnected && panel.hidePopover();
  addEventListener("resize", close, { once: true });
  panel.addEventListener("toggle", (event) => {
    if (event.newState !== "closed") return;
    removeEventListener("resize", close);
    anchor.removeAttribute("aria-expanded");
    const hadFocus = panel.contains(document.activeElement) || document.activeElement === document.body;
    panel.remove();
    if (hadFocus && back?.isConnected) back.focus({ preventScroll: true });
  });
  return close;
}

/** Opens a menu of `{label, icon, act, href, danger}` items; null is a separator. */
export function openMenu(items, anchor, { label, point }) {
  const menu = element("div", { class: "menu", role: "menu", "aria-label": label });
  let close = () => {};
  for (const item of items) {
    if (item === null) {
      menu.append(element("div", { role: "separator" }));
      continue;
    }
    const attributes = { role: "menuitem", tabindex: -1, class: item.danger ? "danger-item" : "" };
    const entry = item.href
      ? element("a", { ...attributes, href: item.href, download: "" }, icon(item.icon), item.label)
      : element("button", { ...attributes, type: "button" }, icon(item.icon), item.label);
    entry.addEventListener("click", () => {
      close();
      item.act?.();
    });
    menu.append(entry);
  }
  const entries = () => [...menu.querySelectorAll("[role=menuitem]")];
  menu.addEventListener("keydown", (event) => {
    const all = entries();
    const at = all.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) all[to % all.length].focus();
    else if (event.key === "Tab") close();
    else if (event.key === " " && document.activeElement.href) document.activeElement.click();
    else return;
    event.preventDefault();
  });
  close = openPanel(menu, anchor, point);
  entries()[0]?.focus();
}
