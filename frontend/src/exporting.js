// Out of the page: text to the clipboard, pictures to disk. Nothing goes anywhere else.

import { h } from "./dom.js";

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No secure context, as under a plain host name, or no focus: the older way.
    const area = h("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function download(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function svgText(svg) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.querySelectorAll("[data-live]").forEach((element) => element.remove());
  // What the page reads there is no part of the picture, and a name may hold characters that XML forbids.
  for (const element of copy.querySelectorAll("*")) {
    for (const { name } of [...element.attributes]) if (/^(class|tabindex|role|aria-.*|data-.*)$/.test(name)) element.removeAttribute(name);
  }
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
}

export function saveSvg(svg, name) {
  download(`${name}.svg`, new Blob([svgText(svg)], { type: "image/svg+xml" }));
}

export async function savePng(svg, name, ground, factor = 2) {
  const { width, height } = svg.viewBox.baseVal;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await image.decode();
  const canvas = h("canvas", { width: Math.round(width * factor), height: Math.round(height * factor) });
  const pen = canvas.getContext("2d");
  pen.fillStyle = ground;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  download(`${name}.png`, blob);
}

const quoted = (cell) => (/[",\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

/** A cell that a spreadsheet would take for a formula is kept text. */
const harmless = (cell) => (typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell);

export function csv(rows) {
  return `${rows.map((row) => row.map((cell) => (cell === null || cell === undefined ? "" : quoted(String(harmless(cell))))).join(",")).join("\r\n")}\r\n`;
}

export function markdown(heads, rows) {
  const plain = (cell) => String(cell ?? "").replaceAll("|", "\\|").replaceAll("`", "'").replaceAll("<", "&lt;");
  const line = (cells) => `| ${cells.map(plain).join(" | ")} |`;
  return `${[line(heads.map((head) => head.text)), `|${heads.map((head) => (head.left ? " :-- " : " --: ")).join("|")}|`, ...rows.map(line)].join("\n")}\n`;
}
