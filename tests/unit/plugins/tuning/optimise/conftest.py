"""The model of the shipped measurements, which most requests ask: fitted once for all tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pytest

from hpcgen.plugins.tuning.measurements.records import Measurement
from hpcgen.plugins.tuning.predict import fitting


@pytest.fixture(scope="package", autouse=True)
def models_are_fitted_once() -> Iterator[None]:
    fit, known = fitting.fit, {}

    def same(rows: Iterable[Measurement], **how: Any) -> Any:
        given = list(rows)
        if sys.modules.get("sklearn", "") is None:  # a test that does without it
            return fit(given, **how)
        about = msgspec.json.encode((given, sorted(how)))
        if about not in known:
            known[about] = fit(given, **how)
        return known[about]

    with pytest.MonkeyPatch.context() as here:
        here.setattr(fitting, "fit", same)
        yield
