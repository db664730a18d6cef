"""What the tests of the TensorBoard tab share: runs that were really profiled, a real TensorBoard, a real Chromium."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "report"))  # its made-up reports

from served import CEILINGS, CHROMIUM, FLAGS, STARTED, Server, Tab

import torchroof

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A logdir as training leaves it: ``first`` with three windows, ``second`` with another head and one window."""
    folder = tmp_path_factory.mktemp("runs")
    _train(folder, "first", wide=False, windows=3)
    _train(folder, "second", wide=True, windows=1)
    return folder


def _train(folder: Path, name: str, *, wide: bool, windows: int) -> None:
    import torch
    import torch._inductor  # torch's profiler brings it in at its first start, and it adds a warning filter
    from torch import nn

    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    block = [nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()) for _ in range(4)]
    head = nn.Sequential(nn.Linear(64, 256), nn.Linear(256, 10)) if wide else nn.Linear(64, 10)
    model = nn.Sequential()
    model.add_module("blocks", nn.Sequential(*block))
    model.add_module("head", head)
    optimizer = torch.optim.Adam(model.parameters())
    plan = torchroof.schedule(warmup=1, active=2, repeat=windows)
    with torchroof.profile(model, logdir=folder, name=name, schedule=plan, ceilings=CEILINGS) as prof:
        for _ in range(3 * windows):
            model(torch.randn(32, 64)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    torch.set_num_threads(threads)
    assert prof.notes == ()


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts TensorBoard on a logdir, with options. All are ended with the session."""
    environment = _with_plugin(tmp_path_factory.mktemp("plugin"))
    processes = []

    def started(logdir: Path, *options: str) -> Server:
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", "0"]
        process = subprocess.Popen(
            [*command, "--reload_interval", "1", *options], stderr=subprocess.PIPE, text=True, env=environment
        )
        processes.append(process)
        assert process.stderr is not None
        log: list[str] = []
        for line in process.stderr:
            log.append(line)
            if found := STARTED.search(line):
                threading.Thread(target=log.extend, args=(process.stderr,), daemon=True).start()
                return Server(found[1], log)
        raise AssertionError("".join(log))

    yield started
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()
        if process.stderr:
            process.stderr.close()


def _with_plugin(folder: Path) -> dict[str, str]:
    """The environment in which TensorBoard finds the plugin: as installed, or where it is not, by the same words."""
    environment = dict(os.environ)
    if not any(found.name == "torchroof" for found in entry_points(group="tensorboard_plugins")):
        told = folder / "told-0.dist-info"
        told.mkdir()
        (told / "METADATA").write_text("Metadata-Version: 2.1\nName: told\nVersion: 0\n")
        (told / "entry_points.txt").write_text(
            "[tensorboard_plugins]\ntorchroof = torchroof.views.tensorboard.plugin:Loader\n"
        )
        root = Path(torchroof.__file__).resolve().parent.parent
        environment["PYTHONPATH"] = os.pathsep.join((str(root), str(folder), environment.get("PYTHONPATH", "")))
    return environment


@pytest.fixture(scope="session")
def board(start: Callable[..., Server], runs: Path) -> Server:
    """TensorBoard on the profiled runs."""
    return start(runs)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here (Debian: apt install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages. What a page reports as an error, or asks of another place than its own, fails the test."""
    contexts = []
    bad: list[str] = []

    def watched(**options: Any) -> Page:
        context = chromium.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        contexts.append(context)
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.on("pageerror", lambda error: bad.append(f"page error: {error}"))
        page.on("console", lambda m: bad.append(f"console: {m.text} @ {m.location['url']}") if _counts(m) else None)
        page.on("request", lambda r: None if _is_own(r.url) else bad.append(f"request to {r.url}"))
        return page

    yield watched
    for context in contexts:
        for page in context.pages:
            page.wait_for_timeout(1)  # what has happened is told only while the driver runs
        context.close()
    assert bad == []


def _counts(message: Any) -> bool:
    """Errors, but for fonts of TensorBoard's own that it misses under a path prefix."""
    return (
        message.type == "error" and "/font-" not in message.location["url"] and ".woff2" not in message.location["url"]
    )


def _is_own(url: str) -> bool:
    return url.startswith(("http://localhost:", "file://", "data:", "blob:", "about:"))


@pytest.fixture
def tab(opened: Callable[..., Page], board: Server) -> Callable[..., Tab]:
    """Opens the tab, with a hash behind its name; waits until its report is whole."""

    def shown(view: str = "", server: Server | None = None, ready: str = "[data-details=ready]", **options: Any) -> Tab:
        page = opened(**options)
        page.goto(f"{(server or board).url}#torchroof{view}")
        frame = page.frame_locator('iframe[src*="name=torchroof"]')
        frame.locator(f"#torchroof{ready}" if ready.startswith("[") else ready).first.wait_for()
        return Tab(page, frame)

    return shown
