"""A TensorBoard that runs and a tab that is open, as the tests speak to them."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchroof.device.roof import Ceiling

if TYPE_CHECKING:
    from playwright.sync_api import Page

GIVEN: dict[str, Any] = {"origin": "given", "source": "a test"}
CEILINGS = (
    Ceiling(kind="compute", precision="float32", pipe="vector", value=4e11, unit="FLOP/s", **GIVEN),
    Ceiling(kind="compute", precision="float32", pipe="matrix", value=5e11, unit="FLOP/s", **GIVEN),
    Ceiling(kind="bandwidth", level="dram", value=4e10, unit="byte/s", **GIVEN),
    Ceiling(kind="launch", value=1e-6, unit="s", **GIVEN),
)
STARTED = re.compile(r"at (http://\S+/) \(Press")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@dataclass
class Server:
    """A TensorBoard process and where it listens."""

    url: str
    log: list[str]

    def get(self, route: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a request to the plugin, or to ``/…`` of TensorBoard."""
        import urllib.error
        import urllib.request

        address = self.url + (route[1:] if route.startswith("/") else f"data/plugin/torchroof/{route}")
        request = urllib.request.Request(address, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, dict(answer.headers), answer.read()


@dataclass
class Tab:
    """The torchroof tab in an opened TensorBoard."""

    page: Page
    frame: Any

    def root(self) -> Any:
        return self.frame.locator("#torchroof")

    def row(self, key: str) -> Any:
        return self.frame.locator(f".t-row[data-key={_quoted(key)}]")

    def cell(self, key: str, column: str) -> str:
        text: str = self.row(key).locator(f"[data-column={_quoted(column)}]").inner_text()
        return text.strip()

    def listed(self) -> list[str]:
        """The rows as they are two frames from now: what a click has asked for is drawn by then."""
        self.root().evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        rows: list[str] = self.frame.locator(".t-row").evaluate_all("rows => rows.map(row => row.dataset.key)")
        return rows

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def control(self, name: str) -> Any:
        return self.frame.locator(f"[data-control={_quoted(name)}]")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\a ") + '"'
