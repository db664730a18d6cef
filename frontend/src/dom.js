// Elements are made here and nowhere else: text is set as text, so no name from a report becomes markup.

const SVG = "http://www.w3.org/2000/svg";
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** A name fit to be shown: what steers a terminal or reorders text becomes "?". */
export function clean(text) {
  return String(text).replace(UNSAFE, "?");
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [kind, listener] of Object.entries(value)) element.addEventListener(kind, listener);
    else if (name === "style") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A path that is cut at its beginning where it is too long: the end tells layers apart. */
export function tail(path) {
  return h("span", { class: "tail" }, h("bdi", { dir: "ltr" }, path));
}

/** An icon from a path on a 16 × 16 grid, drawn in the colour of the text around it. */
export function icon(path, size = 16) {
  return s(
    "svg",
    { viewBox: "0 0 16 16", width: size, height: size, class: "icon", "aria-hidden": "true" },
    s("path", { d: path, fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" }),
  );
}

export const ICONS = {
  flag: "M4 14V2.5M4 3h7.5l-1.8 2.8 1.8 2.7H4",
  close: "M4 4l8 8M12 4l-8 8",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4L6 8l4 4",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  download: "M8 2.5v7.5M4.8 7L8 10.2 11.2 7M2.5 13.5h11",
  plus: "M8 3.5v9M3.5 8h9",
  minus: "M3.5 8h9",
  reset: "M3 8a5 5 0 1 0 1.6-3.7M3 2.5v2.7h2.7",
  box: "M2.5 5v-2.5H5M11 2.5h2.5V5M13.5 11v2.5H11M5 13.5H2.5V11",
  hand: "M8 2v12M2 8h12M8 2L6.3 3.7M8 2l1.7 1.7M8 14l-1.7-1.7M8 14l1.7-1.7M2 8l1.7-1.7M2 8l1.7 1.7M14 8l-1.7-1.7M14 8l-1.7 1.7",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.2 3.2",
  help: "M6 6.2a2 2 0 1 1 2.8 1.9c-.6.3-.8.7-.8 1.4M8 11.8v.1M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13z",
  link: "M6.7 9.3a2.6 2.6 0 0 0 3.7 0l2.3-2.3a2.6 2.6 0 0 0-3.7-3.7l-.8.8M9.3 6.7a2.6 2.6 0 0 0-3.7 0L3.3 9a2.6 2.6 0 0 0 3.7 3.7l.8-.8",
  moon: "M13 9.5A5.6 5.6 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  compare: "M5 2.5v11M5 2.5L2.5 5M5 2.5L7.5 5M11 13.5v-11M11 13.5L8.500 11M11 13.5l2.5-2.5",
  layers: "M8 2L2 5.2l6 3.2 6-3.200L8 2zM2 8.300l6 3.200 6-3.200M2 11.200l6 3.200 6-3.200",
};
