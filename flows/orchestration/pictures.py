"""The loss of a training step as a picture in the UI, drawn again while the step goes on."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate

from stages.engine.figures import Axis, CurveFigure, Figure, Series

PICTURE_SECONDS = 20.0
AWAY_SECONDS = 60.0
"""Between attempts while the API is away: each lasts as long as the client's own retries."""
MOST_POINTS = 2000
LOSSES = ("loss", "held_out/")


@dataclass
class LossPicture:
    """One artifact for a training step, drawn from its metrics; a warning where it cannot be."""

    key: str
    points: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    _id: Any = None
    _last: float = -PICTURE_SECONDS
    _is_away: bool = False

    def take(self, metric: Mapping[str, Any]) -> None:
        """Take in a metric event, and draw if the last picture is old."""
        for name, value in metric.items():
            if name.startswith(LOSSES) and isinstance(value, int | float):
                series = self.points.setdefault(name, [])
                series.append((float(metric["training_step"]), float(value)))
                if len(series) > MOST_POINTS:
                    del series[1::2]
        if self.points and time.monotonic() - self._last > PICTURE_SECONDS:
            self.show()

    def show(self) -> None:
        """Draw what there is; nothing for a while after the API did not answer."""
        if self._is_away and time.monotonic() - self._last <= PICTURE_SECONDS:
            return
        self._last = time.monotonic()
        if not any(len(series) > 1 for series in self.points.values()):
            return
        try:
            self._put(picture_page(self._figure()))
            self._is_away = False
        except Exception as error:
            self._is_away = True
            self._last = time.monotonic() + AWAY_SECONDS - PICTURE_SECONDS
            logging.getLogger(__name__).warning("the loss is not shown: %s", error)

    def _figure(self) -> CurveFigure:
        series = tuple(
            Series(name, tuple(x for x, _ in points), tuple(y for _, y in points))
            for name, points in self.points.items()
        )
        return CurveFigure("loss", Axis("training step", format=",.0f"), Axis("loss"), series)

    def _put(self, page: str) -> None:
        if self._id is None:
            self._id = create_markdown_artifact(page, key=self.key, description="Loss")
        else:
            with get_client(sync_client=True) as client:
                client.update_artifact(self._id, ArtifactUpdate(data=page))


def loss_figure(figures: list[Figure]) -> CurveFigure | None:
    """The curve of a page that shows a loss."""
    for figure in figures:
        if isinstance(figure, CurveFigure) and "loss" in figure.title.lower():
            return figure
    return None


def picture_page(figure: CurveFigure) -> str:
    """A drawn figure as Markdown that holds the picture itself: nobody is asked for it."""
    from flows.report.draw import draw_svg

    data = base64.b64encode(draw_svg(figure).encode()).decode()
    return f"![loss](data:image/svg+xml;base64,{data})"
