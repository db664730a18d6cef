// Builds the page into the package: one classic script, its style, TensorBoard's entry module, the licences.
// The same sources give the same bytes; the script's first line has their digest, by which a test sees a stale build.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "torchroof", "views", "static");

/** The digest of everything a build depends on: as tests/board/test_bundle.py computes it. */
function digest() {
  const names = [...readdirSync(join(here, "src")).map((name) => `src/${name}`), "build.mjs", "package.json", "package-lock.json"].sort();
  const hash = createHash("sha256");
  for (const name of names) hash.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");
  return hash.digest("hex");
}

const common = { bundle: true, minify: true, legalComments: "none", target: ["chrome111", "firefox113", "safari16.4"], write: false, charset: "utf8", absWorkingDir: here };
const script = await build({ ...common, entryPoints: ["src/main.js"], format: "iife", metafile: true });
const style = await build({ ...common, entryPoints: ["src/style.css"] });
const text = `/* torchroof's page; sources ${digest()}; licences in LICENSES.txt */\n${script.outputFiles[0].text.trim()}\n`;
const css = style.outputFiles[0].text.trim() + "\n";
for (const [name, content] of [["script", text], ["style", css]]) {
  const found = content.match(/<\/(?:script|style)|<script|<!--/i);
  if (found) throw new Error(`the ${name} contains ${found[0]}, and could not stand in an HTML file`);
}

const packages = new Set(Object.keys(script.metafile.inputs).map((file) => file.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean));
const licences = [...packages].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, homepage } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  if (!file) throw new Error(`${name} has no licence file`);
  return `${name} ${version}\n${homepage ?? ""}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
});

writeFileSync(join(out, "torchroof.js"), text);
writeFileSync(join(out, "torchroof.css"), css);
writeFileSync(join(out, "index.js"), readFileSync(join(here, "src", "index.mjs"), "utf8"));
writeFileSync(join(out, "LICENSES.txt"), `The page contains these packages.\n\n${licences.join(`\n${"-".repeat(72)}\n\n`)}`);
console.log(`torchroof.js ${(text.length / 1024).toFixed(0)} KiB, torchroof.css ${(css.length / 1024).toFixed(0)} KiB, ${packages.size} packages`);
