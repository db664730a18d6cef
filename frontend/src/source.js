// Where reports come from, and what surrounds the page: TensorBoard's frame, or the file itself.

const POLL_MS = 10_000;
const PREFIX = "p.torchroof.";

async function fetched(route, query) {
  const address = query ? `./${route}?${new URLSearchParams(query)}` : `./${route}`;
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${route}: ${response.status} ${(await response.text()).trim()}`);
  return response.json();
}

const place = (window, prefix = "") => ({
  [`${prefix}run`]: window.run,
  [`${prefix}tag`]: window.tag,
  [`${prefix}step`]: window.step,
});

/** In TensorBoard: reports by request, the view in the parent's hash, its dark mode, its reload button. */
export class TensorBoardSource {
  live = true;

  list() {
    return fetched("windows");
  }

  page(window) {
    return fetched("page", place(window));
  }

  details(window) {
    return fetched("details", place(window));
  }

  comparison(window, base) {
    return fetched("comparison", { ...place(window), ...place(base, "base_") });
  }

  /** Calls when the list may have changed: on a timer while the tab is shown, and on TensorBoard's reload. */
  watch(changed) {
    setInterval(() => window.innerHeight > 0 && changed(), POLL_MS);
    try {
      const channel = new MessageChannel();
      channel.port1.onmessage = ({ data }) => {
        const message = JSON.parse(data);
        if (message.isReply) return;
        channel.port1.postMessage(JSON.stringify({ type: message.type, id: message.id, payload: null, error: null, isReply: true }));
        if (message.type === "experimental.DataReloaded" || message.type === "experimental.RunsChanged") changed();
      };
      window.parent.postMessage("experimental.bootstrap", "*", [channel.port2]);
    } catch {
      // Without the port the timer does.
    }
  }

  read() {
    try {
      return entries(window.parent.location.hash).filter(([key]) => key.startsWith(PREFIX))
        .map(([key, value]) => [key.slice(PREFIX.length), value]);
    } catch {
      return [];
    }
  }

  write(view) {
    try {
      const parent = window.parent;
      const others = parent.location.hash.replace(/^#/, "").split("&").filter((part) => part && !part.startsWith(PREFIX));
      if (!others.length) others.push("torchroof");
      const ours = view.map(([key, value]) => `${PREFIX}${encodeURIComponent(key)}=${encodeURIComponent(value)}`);
      const hash = `#${[...others, ...ours].join("&")}`;
      if (hash !== parent.location.hash) parent.history.replaceState(parent.history.state, "", hash);
    } catch {
      // A parent of another origin: the view is not kept.
    }
  }

  address() {
    try {
      return window.parent.location.href;
    } catch {
      return window.location.href;
    }
  }

  onView(changed) {
    try {
      const listener = () => changed();
      window.parent.addEventListener("hashchange", listener);
      window.addEventListener("unload", () => window.parent.removeEventListener("hashchange", listener));
    } catch {
      // As above.
    }
  }

  theme(apply) {
    try {
      const body = window.parent.document.body;
      const look = () => apply(body.classList.contains("dark-mode"));
      new MutationObserver(look).observe(body, { attributes: true, attributeFilter: ["class"] });
      look();
    } catch {
      systemTheme(apply);
    }
  }
}

/** A file from disk: one report, the view in its own hash, the system's dark mode. */
export class FileSource {
  live = false;

  constructor(contents) {
    this.contents = contents;
  }

  async list() {
    const steps = this.contents.page.per_step;
    return { series: [{ run: "", tag: "", windows: [{ step: steps.at(-1)?.index ?? 0, wall_time: 0 }] }], notes: [] };
  }

  async page() {
    return this.contents.page;
  }

  async details() {
    return this.contents.details;
  }

  watch() {}

  read() {
    return entries(window.location.hash);
  }

  write(view) {
    const hash = view.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join("&");
    if (`#${hash}` !== window.location.hash) window.history.replaceState(null, "", hash ? `#${hash}` : window.location.pathname + window.location.search);
  }

  address() {
    return window.location.href;
  }

  onView(changed) {
    window.addEventListener("hashchange", () => changed());
  }

  theme(apply) {
    systemTheme(apply);
  }
}

function systemTheme(apply) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => apply(dark.matches));
  apply(dark.matches);
}

function entries(hash) {
  const found = [];
  for (const part of hash.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at < 1) continue;
    try {
      found.push([decodeURIComponent(part.slice(0, at)), decodeURIComponent(part.slice(at + 1))]);
    } catch {
      // Not an entry of ours.
    }
  }
  return found;
}
