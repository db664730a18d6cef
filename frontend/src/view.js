// What the reader chose to see. All of it goes into the address, so that a link shows the same.

export const DEFAULTS = {
  by: "layer",
  shape: "tree",
  fold: true,
  sort: "headroom",
  up: false,
  q: "",
  types: [],
  bounds: [],
  phase: "",
  top: 0,
  apart: false,
  sel: "",
};

const PLACES = ["run", "tag", "step", "base_run", "base_tag", "base_step"];
const WORDS = { by: ["layer", "op", "kernel"], shape: ["tree", "flat"] };

/** The view and the windows that an address tells. What it does not tell, or tells wrongly, is as by default. */
export function parsed(pairs) {
  const told = new Map(pairs);
  const view = { ...DEFAULTS };
  for (const [key, usual] of Object.entries(DEFAULTS)) {
    const value = told.get(key);
    if (value === undefined) continue;
    if (Array.isArray(usual)) view[key] = value.split("\n").filter(Boolean);
    else if (typeof usual === "boolean") view[key] = value === "1";
    else if (typeof usual === "number") view[key] = Math.max(0, Number.parseInt(value, 10) || 0);
    else if (!WORDS[key] || WORDS[key].includes(value)) view[key] = value;
  }
  const places = Object.fromEntries(PLACES.map((key) => [key, told.get(key) ?? null]));
  return { view, window: placed(places, ""), base: placed(places, "base_"), byTold: told.has("by") };
}

function placed(told, prefix) {
  const run = told[`${prefix}run`];
  const step = Number.parseInt(told[`${prefix}step`], 10);
  return run === null ? null : { run, tag: told[`${prefix}tag`], step: Number.isNaN(step) ? null : step };
}

export function written(view, window, base, usualTag) {
  const pairs = [];
  const add = (prefix, place) => {
    if (!place) return;
    pairs.push([`${prefix}run`, place.run]);
    if (place.tag !== usualTag) pairs.push([`${prefix}tag`, place.tag]);
    pairs.push([`${prefix}step`, place.step]);
  };
  add("", window);
  add("base_", base);
  for (const [key, usual] of Object.entries(DEFAULTS)) {
    const value = view[key];
    if (Array.isArray(usual)) {
      if (value.length) pairs.push([key, value.join("\n")]);
    } else if (value !== usual) pairs.push([key, typeof value === "boolean" ? Number(value) : value]);
  }
  return pairs;
}
