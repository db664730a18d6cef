"""Measures the page on a made-up report of 1,000 layers and 20,000 kernels, in headless Chromium.

In TensorBoard (from the request to what is on the screen) and as a file from disk: first paint, then sorting and
filtering the layers and the kernels, each until the frame after it. Prints the median and the range of ``--times``,
and the CPU time of the page's main thread beside them: a busy machine makes the first longer, not the second.
Needs playwright and Debian's chromium.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from big_report import big_report
from playwright.sync_api import Page, Playwright, sync_playwright

from torchroof.reports import Report

FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
ACT = """async ([selector, text]) => {
    const element = document.querySelector(selector);
    const start = performance.now();
    if (text === null) element.click();
    else { element.value = text; element.dispatchEvent(new Event("input")); }
    if (text !== null) await new Promise((done) => setTimeout(done, 41));   // the field waits 40 ms for the next key
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    return performance.now() - start - (text === null ? 0 : 40);
}"""
ACTIONS = (
    ("sort layers by time", "[data-sort=time]", None),
    ("filter layers", ".search", "blocks.7"),
    ("kernels: sort by name", "[data-sort=label]", None),
    ("kernels: filter", ".search", "gelu"),
)


class Meter:
    """Wall time and the main thread's CPU time of what a page does, in milliseconds."""

    def __init__(self, page: Page, found: dict[str, list[tuple[float, float]]]) -> None:
        self.page = page
        self.session = page.context.new_cdp_session(page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.found = found

    def cpu(self) -> float:
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")

    def take(self, name: str, wall: Callable[[], float]) -> None:
        before = self.cpu()
        taken = wall()
        self.found.setdefault(name, []).append((taken, self.cpu() - before))

    def print(self) -> None:
        for name, pairs in self.found.items():
            wall, cpu = zip(*pairs, strict=True)
            span = f"({min(wall):.0f} to {max(wall):.0f})"
            print(f"{name:36} {statistics.median(wall):7.0f} ms {span:16} CPU {statistics.median(cpu):5.0f} ms")


def first_paint(page: Page, url: str) -> float:
    """Milliseconds from the navigation of the page's own document to rows and points on the screen."""
    start = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.locator(".t-row").first.wait_for()
    page.locator(".chart path.point").first.wait_for()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
    return 1000 * (time.perf_counter() - start)


def act(meter: Meter, times: int) -> None:
    page = meter.page
    page.locator("#torchroof[data-details=ready]").wait_for()
    page.locator("[data-control=shape] [data-value=flat]").click()
    page.locator("label.check input").uncheck()
    for name, selector, text in ACTIONS:
        if name.startswith("kernels: sort"):
            page.locator("[data-control=by] [data-value=kernel]").click()
        for turn in range(times):
            given = text if turn % 2 == 0 else text and ""
            meter.take(name, lambda selector=selector, given=given: page.evaluate(ACT, [selector, given]))
        if text is not None:
            page.locator(".search").fill("")


@contextmanager
def opened(playwright: Playwright, logdir: Path) -> Iterator[tuple[Page, str]]:
    """A page of a new browser, and the address of our page in a new TensorBoard."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url = next(found[1] for line in process.stderr if (found := re.search(r"at (http://\S+/) \(Press", line)))
    browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
    try:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.goto("about:blank")
        yield page, f"{url}data/plugin_entry.html?name=torchroof"
    finally:
        browser.close()
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--cold", type=int, default=5, help="TensorBoards that are started for a first view each")
    parser.add_argument("--layers", type=int, default=1000)
    parser.add_argument("--kernels", type=int, default=20_000)
    options = parser.parse_args()
    report = Report(big_report(options.layers, options.kernels))
    print(f"{len(report.data.layers)} layers, {len(report.data.rows)} rows, {len(report.data.kernels)} kernels")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = Path(scratch)
        (folder / "report.html").write_bytes(report.to_html().encode())
        report.write_logdir(folder / "runs")
        found: dict[str, list[tuple[float, float]]] = {}
        for _ in range(options.cold):
            with opened(playwright, folder / "runs") as (page, frame):
                Meter(page, found).take("first paint in TensorBoard, cold", lambda: first_paint(page, frame))
        with opened(playwright, folder / "runs") as (page, frame):
            meter = Meter(page, found)
            first_paint(page, frame)
            for name, address in (
                ("first paint in TensorBoard", frame),
                ("first paint of the file", (folder / "report.html").as_uri()),
            ):
                for _ in range(options.times):
                    page.goto("about:blank")
                    meter.take(name, lambda address=address: first_paint(page, address))
            act(meter, options.times)
            meter.print()


if __name__ == "__main__":
    main()
