"""Takes the README's pictures of TensorBoard's torchroof tab: profiles the demo's transformer, looks at it.

Needs torch, playwright and Debian's chromium; the typeface is Inter where it is installed (fonts-inter).
``--logdir`` takes runs that are there already.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE = {"width": 1360, "height": 1080}
SELECTED = "&p.torchroof.apart=1&p.torchroof.sel="
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


@contextmanager
def tensorboard(logdir: Path) -> Iterator[str]:
    """Its address, while it runs."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield next(found[1] for line in process.stderr if (found := re.search(r"at (http://\S+/) \(Press", line)))
    finally:
        process.terminate()
        process.wait()


def picture(browser: Browser, url: str, view: str, *, dark: bool, target: Path) -> None:
    context = browser.new_context(viewport=SIZE, color_scheme="dark" if dark else "light")
    page = context.new_page()
    page.goto(f"{url}#torchroof{view}")
    frame = page.frame_locator('iframe[src*="name=torchroof"]')
    frame.locator("#torchroof[data-details=ready]").wait_for(timeout=60_000)
    if view.endswith("sel="):
        frame.locator(".starts button").first.click()
    page.wait_for_timeout(400)
    Image.open(io.BytesIO(page.screenshot())).convert("RGB").save(target, optimize=True)
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logdir", type=Path, help="runs to look at, the last written first")
    given: Path | None = parser.parse_args().logdir
    with tempfile.TemporaryDirectory() as scratch:
        logdir = given or Path(scratch)
        if given is None:
            command = [sys.executable, "-m", "torchroof", "demo", "--model", "transformer", "--logdir"]
            subprocess.run([*command, str(logdir / "transformer")], check=True, stdout=subprocess.DEVNULL)
        IMAGES.mkdir(exist_ok=True)
        with tensorboard(logdir) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
            picture(browser, url, SELECTED, dark=False, target=IMAGES / "tensorboard-light.png")
            picture(browser, url, "", dark=True, target=IMAGES / "tensorboard-dark.png")
            browser.close()


if __name__ == "__main__":
    main()
