// Colours that mean something, on light and on dark ground: the chart's SVG carries them itself.

const LIGHT = {
  ground: "#ffffff", ink: "#1b2130", quiet: "#667085", grid: "#e9ecf1", axis: "#c3c9d3", roof: "#414b5a", under: "#f5f7fa",
  flag: "#d1242f", accent: "#d9480f", halo: "#ffffff",
  compute: "#1f883d", memory: "#0b6bcb", cache: "#0e8a9c", latency: "#bf8700", communication: "#8250df", copy: "#4c8dd6",
  unmodelled: "#7c8594", unplaced: "#7c8594", unattributed: "#98a1af", data: "#d9631e", sync: "#a8456b", host: "#c0399f",
};
const DARK = {
  ground: "#1c2027", ink: "#e7eaf0", quiet: "#97a1b2", grid: "#2b313b", axis: "#454d5a", roof: "#b6bfcc", under: "#222730",
  flag: "#ff7b72", accent: "#ff8a4c", halo: "#1c2027",
  compute: "#46c35f", memory: "#5aa9ff", cache: "#3cc8d2", latency: "#e6b53c", communication: "#bd93ff", copy: "#8dbdf2",
  unmodelled: "#939caa", unplaced: "#939caa", unattributed: "#747d8b", data: "#ff9a5c", sync: "#e58aae", host: "#f07fd8",
};

export const theme = { dark: false, colours: LIGHT };

export function setTheme(dark) {
  theme.dark = dark;
  theme.colours = dark ? DARK : LIGHT;
  const root = document.documentElement;
  root.dataset.theme = dark ? "dark" : "light";
  for (const [name, colour] of Object.entries(theme.colours)) root.style.setProperty(`--${name}`, colour);
}

export function colourOf(name) {
  return theme.colours[name] ?? theme.colours.unplaced;
}
