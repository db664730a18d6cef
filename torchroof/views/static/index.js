// TensorBoard imports this module into the tab's frame and calls `render`.
import "./torchroof.js";

export async function render() {
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = "./static/torchroof.css";
  const styled = new Promise((done) => {
    style.onload = done;
    style.onerror = done;
  });
  document.head.append(style);
  await styled;
  await globalThis.torchroof.start();
}
