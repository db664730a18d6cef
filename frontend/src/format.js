// Quantities as text, in the words and digits of torchroof/units.py: the page and the command line read alike.

const LARGE = ["", "k", "M", "G", "T", "P", "E"];
const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const SCALES = [[1e10, 1e9, "s"], [1e6, 1e6, "ms"], [1e3, 1e3, "µs"], [0, 1, "ns"]];
export const UNKNOWN = "?";

const known = (value) => value !== null && value !== undefined;

/** So many decimals, a tie to the even digit. */
export function fixed(value, decimals) {
  const text = value.toFixed(decimals);
  const long = value.toFixed(Math.min(100, decimals + 30));
  const rest = long.slice(long.indexOf(".") + 1 + decimals);
  if (!/^50*$/.test(rest)) return text;
  const below = long.slice(0, long.indexOf(".") + (decimals ? 1 + decimals : 0));
  return "02468".includes(below.at(-1)) ? below : text;
}

export function digits(value, significant = 3) {
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  if (magnitude >= 10 ** (significant - 1)) return fixed(value, 0);
  const decimals = Math.min(60, significant - 1 - Math.floor(Math.log10(magnitude)));
  let text = fixed(value, Math.max(0, decimals));
  if (Math.abs(Number(text)) >= 10 ** (significant - 1)) text = fixed(value, 0);
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

export function quantity(value, unit = "", significant = 3) {
  if (!known(value)) return UNKNOWN;
  let scaled = value, step = 0;
  while (Math.abs(scaled) >= 999.5 && step < LARGE.length - 1) {
    scaled /= 1e3;
    step += 1;
  }
  const text = step === 0 && Number.isInteger(scaled) ? String(scaled) : digits(scaled, significant);
  return `${text} ${LARGE[step]}${unit}`.trim();
}

export function duration(ns, significant = 3) {
  if (!known(ns)) return UNKNOWN;
  for (const [scale, unit] of TIMES) {
    if (Math.abs(ns) >= 0.9995 * scale) return `${digits(ns / scale, significant)} ${unit}`;
  }
  return ns ? `${digits(ns, significant)} ns` : "0 ns";
}

export function percent(fraction) {
  if (!known(fraction)) return UNKNOWN;
  const value = fraction * 100;
  if (value === 0) return "0%";
  if (Math.abs(value) < 0.05) return "<0.1%";
  return `${fixed(value, Math.abs(value) < 9.95 ? 1 : 0)}%`;
}

/** A percentage for a column: one decimal, so that the column adds up. */
export function share(fraction) {
  if (!known(fraction)) return UNKNOWN;
  if (fraction === 0) return "0";
  return fraction >= 0.0005 ? fixed(fraction * 100, 1) : "<0.1";
}

export function age(iso, now = Date.now()) {
  const seconds = Math.max(0, (now - Date.parse(iso)) / 1000);
  if (Number.isNaN(seconds)) return `at ${iso}`;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${fixed(seconds / 60, 0)} min ago`;
  if (seconds < 2 * 86400) return `${fixed(seconds / 3600, 0)} h ago`;
  return `${fixed(seconds / 86400, 0)} days ago`;
}

/** One unit and one number of decimals for all times of a table. */
export function timeScale(largest) {
  const [, ns, unit] = SCALES.find(([from]) => largest >= from);
  const whole = fixed(largest / ns, 0).length;
  const decimals = unit === "ns" ? 0 : Math.max(0, 4 - whole);
  return {
    unit,
    ns,
    text(value) {
      if (!known(value)) return UNKNOWN;
      if (!value) return "0";
      const rounded = fixed(value / ns, decimals);
      if (Number(rounded) === 0) return `${value < 0 ? "−" : ""}<${fixed(10 ** -decimals, decimals)}`;
      return rounded;
    },
  };
}

/** A change with its sign; no change is 0. */
export function signed(value, text) {
  if (!known(value)) return UNKNOWN;
  if (value === 0) return "0";
  return (value > 0 ? "+" : "−") + text(Math.abs(value)).replace("−", "");
}

export function ceiling(one, now) {
  const plain = one.kind === "compute" ? `${one.precision} ${one.pipe}` : one.level ?? one.kind;
  const what = one.pattern ? `${plain} ${one.pattern}` : plain;
  const unit = { "FLOP/s": "FLOP/s", "byte/s": "B/s" }[one.unit] ?? one.unit;
  const origin = one.measured_at ? `${one.origin} ${age(one.measured_at, now)}` : one.origin;
  return { what, value: quantity(one.value, unit), origin };
}

export function shape(tensor) {
  return `${tensor.shape.join("×") || "scalar"} ${tensor.dtype ?? UNKNOWN}`;
}
