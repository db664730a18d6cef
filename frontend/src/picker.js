// A button that opens a list with a filter: for runs, of which there may be hundreds.

import { clean, h, icon, ICONS, replace } from "./dom.js";

const SHOWN = 200;

export class Picker {
  /** ``choices()`` gives {key, label, note}; ``chosen(key)`` is called with what was picked. */
  constructor({ name, choices, chosen, current, empty }) {
    Object.assign(this, { name, choices, chosen, current, empty });
    this.value = h("span", { class: "picker-value" });
    this.button = h("button", { class: "picker-button", "aria-haspopup": "listbox", "aria-expanded": "false", "aria-label": name, on: { click: () => this.toggle() } },
      h("span", { class: "picker-name" }, name), this.value, icon(ICONS.down, 12));
    this.input = h("input", { type: "search", placeholder: "filter", "aria-label": `filter ${name}`, on: { input: () => this.#list() } });
    this.listbox = h("ul", { role: "listbox", "aria-label": name });
    this.popover = h("div", { class: "popover", hidden: true }, this.input, this.listbox);
    this.element = h("div", { class: "picker" }, this.button, this.popover);
    this.element.addEventListener("keydown", (event) => this.#key(event));
    document.addEventListener("pointerdown", (event) => {
      if (!this.element.contains(event.target)) this.close();
    });
  }

  refresh() {
    const key = this.current();
    const found = this.choices().find((choice) => choice.key === key);
    replace(this.value, found ? clean(found.label) : this.empty);
    this.value.classList.toggle("quiet", !found);
    if (!this.popover.hidden) this.#list();
  }

  toggle() {
    if (this.popover.hidden) this.open();
    else this.close();
  }

  open() {
    this.popover.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    this.input.value = "";
    this.input.hidden = this.choices().length < 8;
    this.#list();
    (this.input.hidden ? this.listbox.querySelector("[aria-selected=true]") ?? this.listbox.firstElementChild : this.input)?.focus();
  }

  close(refocus = false) {
    if (this.popover.hidden) return;
    this.popover.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    if (refocus) this.button.focus();
  }

  #list() {
    const wanted = this.input.value.toLowerCase();
    const all = this.choices().filter((choice) => clean(choice.label).toLowerCase().includes(wanted));
    const current = this.current();
    replace(this.listbox, all.slice(0, SHOWN).map((choice) =>
      h("li", { role: "option", tabindex: "-1", "aria-selected": String(choice.key === current), on: { click: () => this.#choose(choice.key) }, "data-key": choice.key ?? "" },
        h("span", {}, clean(choice.label)), choice.note ? h("span", { class: "quiet" }, clean(choice.note)) : null)),
    all.length > SHOWN ? h("li", { class: "quiet", role: "presentation" }, `${all.length - SHOWN} more: type to filter`) : null,
    all.length ? null : h("li", { class: "quiet", role: "presentation" }, "nothing matches"));
    this.listbox.querySelectorAll("[role=option]").forEach((option, at) => { option.choice = all[at]; });
  }

  #choose(key) {
    this.close(true);
    this.chosen(key);
  }

  #key(event) {
    if (this.popover.hidden) {
      if (event.key === "ArrowDown") {
        this.open();
        event.preventDefault();
      }
      return;
    }
    const options = [...this.listbox.querySelectorAll("[role=option]")];
    const at = options.indexOf(document.activeElement);
    const go = (to) => {
      options[Math.max(0, Math.min(options.length - 1, to))]?.focus();
      event.preventDefault();
    };
    if (event.key === "Escape") this.close(true);
    else if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") at <= 0 && !this.input.hidden ? this.input.focus() : go(at - 1);
    else if (event.key === "Enter") {
      const option = at >= 0 ? options[at] : options[0];
      if (option) this.#choose(option.choice.key);
      event.preventDefault();
    } else return;
    event.stopPropagation();
  }
}
