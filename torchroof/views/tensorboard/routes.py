"""What the plugin answers: the page's files, the windows that were recorded, and what it shows of one.

Everything is under ``/data/plugin/torchroof/``. GET and HEAD only; names in queries are looked up, never opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec
from tensorboard import plugin_util
from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from torchroof.errors import ReportFileError
from torchroof.report import board, codec
from torchroof.report.model import ReportData
from torchroof.views import page
from torchroof.views.tensorboard.names import PLUGIN
from torchroof.views.tensorboard.windows import Place, Windows

_LOG = logging.getLogger(__name__)
_JSON = "application/json"


class _Refused(Exception):
    """A request that cannot be answered: its status and one line why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Unreadable(msgspec.Struct, frozen=True):
    """In place of what was asked for: a summary that is no report of this version. Not an error of the request."""

    unreadable: str


class TorchroofPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    plugin_name = PLUGIN

    def __init__(self, context: Any) -> None:
        self._windows = Windows(context.data_provider)

    def is_active(self) -> bool:
        """Data of ours activates the tab without this being asked."""
        return False

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(es_module_path="/static/index.js", tab_name="torchroof")

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        answers: dict[str, Callable[[wrappers.Request], wrappers.Response]] = {
            "/static/*": self._static,
            "/windows": self._list,
            "/report": self._report,
            "/page": lambda request: self._shown(request, "page", board.board),
            "/details": lambda request: self._shown(request, "details", board.details),
            "/comparison": self._comparison,
        }
        return {route: _served(answer) for route, answer in answers.items()}

    def _static(self, request: wrappers.Request) -> wrappers.Response:
        """A file of the page, by its name alone: there are no folders."""
        file = page.static_file(request.path.rpartition("/static/")[2])
        if file is None:
            raise _Refused(404, "no such file")
        content, kind = file
        return http_util.Respond(request, content, kind)

    def _list(self, request: wrappers.Request) -> wrappers.Response:
        context, experiment = plugin_util.context(request.environ), plugin_util.experiment_id(request.environ)
        return _json(request, self._windows.listed(context, experiment))

    def _report(self, request: wrappers.Request) -> wrappers.Response:
        """The report as it was written."""
        return _json(request, self._data(request, ""))

    def _shown(
        self, request: wrappers.Request, kind: str, show: Callable[[ReportData], msgspec.Struct]
    ) -> wrappers.Response:
        data = self._data(request, "")
        if isinstance(data, Unreadable):
            return _json(request, data)
        return http_util.Respond(request, self._windows.answer(kind, data, show), _JSON)

    def _comparison(self, request: wrappers.Request) -> wrappers.Response:
        data, baseline = self._data(request, ""), self._data(request, "base_")
        if isinstance(data, Unreadable):
            return _json(request, data)
        return _json(request, baseline if isinstance(baseline, Unreadable) else board.comparison(data, baseline))

    def _data(self, request: wrappers.Request, prefix: str) -> ReportData | Unreadable:
        place = _place(request, prefix)
        context, experiment = plugin_util.context(request.environ), plugin_util.experiment_id(request.environ)
        try:
            data = self._windows.report(context, experiment, place)
        except ReportFileError as why:
            return Unreadable(str(why))
        if data is None:
            raise _Refused(404, "there is no such window")
        return data


def _place(request: wrappers.Request, prefix: str) -> Place:
    """Which window a request means. Raises _Refused."""
    run, tag = request.args.get(f"{prefix}run"), request.args.get(f"{prefix}tag")
    try:
        step = int(request.args.get(f"{prefix}step", ""))
    except ValueError:
        step = None
    if run is None or tag is None or step is None:
        raise _Refused(400, f"give {prefix}run, {prefix}tag and {prefix}step")
    return Place(run, tag, step)


def _json(request: wrappers.Request, value: msgspec.Struct) -> wrappers.Response:
    return http_util.Respond(request, codec.encode(value), _JSON)


def _served(answer: Callable[[wrappers.Request], wrappers.Response]) -> Callable[..., Any]:
    """A WSGI application around an answer: methods checked, and no fault of ours reaches TensorBoard."""

    @wrappers.Request.application  # type: ignore[untyped-decorator]
    def application(request: wrappers.Request) -> wrappers.Response:
        if request.method not in ("GET", "HEAD"):
            allow = [("Allow", "GET, HEAD")]
            return http_util.Respond(request, "only GET and HEAD\n", "text/plain", code=405, headers=allow)
        try:
            return answer(request)
        except _Refused as why:
            return http_util.Respond(request, f"{why}\n", "text/plain", code=why.status)
        except Exception as why:
            _LOG.exception("torchroof: %s could not be answered", request.path)
            return http_util.Respond(request, f"torchroof failed: {type(why).__name__}\n", "text/plain", code=500)

    served: Callable[..., Any] = application
    return served
