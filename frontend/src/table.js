// The table: only the rows in sight are in the document, so that tens of thousands scroll and sort at once.

import { h, icon, ICONS, replace, tail } from "./dom.js";

const ROW = 30;
const OVERSCAN = 8;
const NAME_LEAST = 260;

export class Table {
  /** ``sorted(id)``, ``picked(row)``, ``toggled(row, deep)`` are told what the reader does. */
  constructor(host, { sorted, picked, toggled }) {
    Object.assign(this, { host, sorted, picked, toggled });
    this.head = h("div", { class: "t-head", role: "row" });
    this.body = h("div", { class: "t-body", role: "rowgroup" });
    this.scroller = h("div", { class: "t-scroll", role: "treegrid", tabindex: "0", "aria-label": "Table" }, this.head, this.body);
    host.append(this.scroller);
    this.rows = [];
    this.columns = [];
    this.cursor = 0;
    this.scroller.addEventListener("scroll", () => this.#paint());
    this.scroller.addEventListener("keydown", (event) => this.#key(event));
    this.body.addEventListener("click", (event) => this.#click(event));
    new ResizeObserver(() => this.#paint(true)).observe(this.scroller);
  }

  /** ``selected`` is a key; ``sort`` {id, up}. */
  show({ rows, columns, sort, selected, empty }) {
    Object.assign(this, { rows, columns, sort, selected });
    this.scroller.setAttribute("aria-rowcount", rows.length + 1);
    this.scroller.style.setProperty("--columns", `minmax(${NAME_LEAST}px, 1fr) ${columns.slice(1).map((column) => `${column.width}px`).join(" ")}`);
    this.scroller.style.setProperty("--width", `${NAME_LEAST + columns.slice(1).reduce((sum, column) => sum + column.width, 0)}px`);
    this.#heads();
    this.body.style.setProperty("height", `${Math.max(1, rows.length) * ROW}px`);
    const at = rows.findIndex((row) => row.item.key === selected && !row.ownRow);
    if (at >= 0) this.cursor = at;
    this.cursor = Math.min(this.cursor, Math.max(0, rows.length - 1));
    this.empty = empty;
    this.#paint(true);
  }

  select(key) {
    this.selected = key;
    const at = this.rows.findIndex((row) => row.item.key === key && !row.ownRow);
    if (at >= 0) {
      this.cursor = at;
      this.reveal(at);
    }
    this.#paint(true);
  }

  reveal(at) {
    const top = at * ROW, height = this.scroller.clientHeight - this.head.offsetHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + ROW > this.scroller.scrollTop + height) this.scroller.scrollTop = top + ROW - height + ROW;
  }

  #heads() {
    replace(this.head, this.columns.map((column) => {
      const sorted = this.sort.id === column.id;
      return h("div", { class: `t-cell ${column.left ? "left" : ""} ${sorted ? "sorted" : ""}`, role: "columnheader", "aria-sort": sorted ? (this.sort.up ? "ascending" : "descending") : "none", title: column.title ?? null },
        h("button", { on: { click: () => this.sorted(column.id) }, "data-sort": column.id },
          h("span", { class: "head-name" }, column.head, h("i", { class: "arrow", "aria-hidden": "true" }, sorted ? (this.sort.up ? "▲" : "▼") : "")),
          h("small", {}, column.unit ?? "")));
    }));
  }

  #paint(force = false) {
    const { scrollTop, clientHeight } = this.scroller;
    if (!clientHeight) return;
    const from = Math.max(0, Math.floor(scrollTop / ROW) - OVERSCAN);
    const to = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / ROW) + OVERSCAN);
    if (!force && from === this.from && to === this.to) return;
    Object.assign(this, { from, to });
    if (!this.rows.length) {
      replace(this.body, h("div", { class: "t-empty quiet" }, this.empty ?? "Nothing to show."));
      return;
    }
    replace(this.body, this.rows.slice(from, to).map((row, at) => this.#row(row, from + at)));
  }

  #row(row, at) {
    const chosen = row.item.key === this.selected;
    const classes = ["t-row", chosen && !row.ownRow && "selected", row.item.flagged && !row.faint && "flagged", row.faint && "faint", row.item.removed && "removed", at === this.cursor && "cursor"];
    const element = h("div", {
      class: classes.filter(Boolean).join(" "), role: "row", "aria-rowindex": at + 2, "aria-level": row.depth + 1, "aria-selected": String(chosen),
      "aria-expanded": row.expandable ? String(row.open) : null, "data-at": at, "data-key": row.ownRow ? `${row.item.key} (own)` : row.item.key,
      style: { transform: `translateY(${at * ROW}px)` },
    });
    for (const column of this.columns) element.append(column.name ? this.#name(row, column) : this.#cell(row, column));
    return element;
  }

  #name(row, column) {
    const { item } = row;
    const inTree = row.depth || row.expandable || this.isTree;
    const name = row.ownRow ? "own ops" : item.full === undefined ? item.label : tail(inTree ? item.label : item.full);
    return h("div", { class: "t-cell left name", role: "gridcell", "data-column": column.id, style: { "--depth": String(row.depth) }, title: `${item.full ?? item.label}${item.why ? `\n${item.why}` : ""}` },
      row.expandable
        ? h("button", { class: `twist ${row.open ? "open" : ""}`, tabindex: "-1", "data-twist": "", "aria-label": row.open ? "fold in" : "fold out" }, icon(ICONS.right, 12))
        : h("span", { class: "twist" }),
      item.flagged && !row.ownRow ? h("span", { class: "flag", title: item.why ?? "flagged" }, icon(ICONS.flag, 13)) : null,
      h("span", { class: `label ${row.ownRow ? "quiet" : ""}` }, name),
      item.within && !row.ownRow ? h("span", { class: "quiet small" }, `in ${item.within}`) : null,
      item.members?.length && !row.ownRow ? h("span", { class: "times" }, `×${item.members.length}`) : null,
      item.removed ? h("span", { class: "tag" }, "gone") : item.isNew ? h("span", { class: "tag new" }, "new") : null);
  }

  #cell(row, column) {
    const text = column.text(row);
    const quiet = text === "?" || text === "0" || text === "0%" || column.quiet;
    const cell = h("div", { class: `t-cell ${column.left ? "left" : "number"} ${quiet ? "quiet" : ""}`, role: "gridcell", "data-column": column.id });
    if (column.chip) {
      const name = text === "?" ? "unplaced" : text;
      cell.append(h("span", { class: "chip", style: { "--colour": `var(--${CSS.escape(name)}, var(--unplaced))` } }, text));
      return cell;
    }
    if (column.bar) {
      const fraction = Math.max(0, Math.min(1, column.bar.fraction(row)));
      cell.append(h("i", { class: "t-bar", style: { width: `${100 * fraction}%`, "--colour": `var(--${CSS.escape(column.bar.colour(row))}, var(--unplaced))` } }));
    }
    if (column.meter) {
      const value = column.meter(row);
      if (value !== null && value !== undefined) cell.append(h("i", { class: "t-meter" }, h("i", { style: { width: `${100 * Math.min(1, value)}%` } })));
    }
    if (column.change) {
      const value = column.value(row);
      if (value) cell.classList.add(value > 0 ? "worse" : "better");
    }
    const mark = column.mark?.(row);
    cell.append(h("span", { class: mark ? `value ${mark}` : "value", title: mark === "suspect" ? "over its roof: a suspicion" : mark === "partial" ? "part of the time has no model" : null },
      mark === "partial" ? `~${text}` : mark === "suspect" ? `${text}!` : text));
    if (!column.left || !column.quiet) return cell;
    cell.title = text;
    return cell;
  }

  #click(event) {
    const element = event.target.closest(".t-row");
    if (!element) return;
    const at = Number(element.dataset.at);
    this.cursor = at;
    if (event.target.closest("[data-twist]")) this.toggled(this.rows[at], event.altKey);
    else this.picked(this.rows[at]);
  }

  #key(event) {
    if (event.target !== this.scroller) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const row = this.rows[this.cursor];
    if (event.key in steps) this.cursor = Math.max(0, Math.min(this.rows.length - 1, this.cursor + steps[event.key]));
    else if (event.key === "ArrowRight" && row?.expandable && !row.open) this.toggled(row, event.altKey);
    else if (event.key === "ArrowLeft" && row?.expandable && row.open) this.toggled(row, event.altKey);
    else if (event.key === "ArrowLeft" && row?.item.parent) {
      const up = this.rows.findIndex((other) => other.item === (row.ownRow ? row.item : row.item.parent) && !other.ownRow);
      if (up >= 0) this.cursor = up;
    } else if ((event.key === "Enter" || event.key === " ") && row) this.picked(row);
    else return;
    event.preventDefault();
    this.reveal(this.cursor);
    this.#paint(true);
  }
}
