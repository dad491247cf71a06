"""The live view in a notebook: a widget that draws the state which the kernel sends."""

import time
from pathlib import Path

import anywidget
import traitlets

from daskls.live.record import FitRecord


class FitView(anywidget.AnyWidget):  # type: ignore[misc]
    """The numbers of `FitRecord.snapshot`, and a map's `to_json`, empty until space is cut."""

    _esm = Path(__file__).with_name("view.js")
    _css = Path(__file__).with_name("view.css")
    numbers = traitlets.Dict().tag(sync=True)
    map = traitlets.Dict().tag(sync=True)


class Widget:
    draws, reads = True, True

    def __init__(self) -> None:
        self.view = FitView()

    def display(self) -> None:
        """Show the widget; call it in the thread of the fit, so that it appears below that cell."""
        from IPython.display import display

        display(self.view)

    def show(self, record: FitRecord) -> None:
        if record.map is not None and not self.view.map:
            self.view.map = record.map.to_json()
        self.view.numbers = record.snapshot(time.time())
