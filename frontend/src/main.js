// Starts the page where it finds itself: in a file with its data inside, or in TensorBoard's frame.

import { App } from "./app.js";
import { h } from "./dom.js";
import * as format from "./format.js";
import { FileSource, TensorBoardSource } from "./source.js";

function start() {
  const inside = document.getElementById("torchroof-data");
  const source = inside ? new FileSource(JSON.parse(inside.textContent)) : new TensorBoardSource();
  const root = h("div", { id: "torchroof" });
  document.body.append(root);
  return new App(source, root).start();
}

globalThis.torchroof = { start, format };
if (document.getElementById("torchroof-data")) start();
