"""Rows into a linear model, by scikit-learn's Bayesian ridge regression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpcgen._version import __version__
from hpcgen.core.errors import InputError
from hpcgen.core.support.extras import extra
from hpcgen.core.support.file_formats import MODEL
from hpcgen.plugins.tuning.measurements.cited import cited
from hpcgen.plugins.tuning.measurements.records import Measurement
from hpcgen.plugins.tuning.predict.columns import TermColumn, places, seen_in
from hpcgen.plugins.tuning.predict.held_out import held_out_tests
from hpcgen.plugins.tuning.predict.left_out import Fit, spreads
from hpcgen.plugins.tuning.predict.linear import Coefficients, Column, Level, LinearModel, ModelRow
from hpcgen.plugins.tuning.predict.observations import Observation, observations
from hpcgen.plugins.tuning.predict.terms import identity

if TYPE_CHECKING:
    import numpy as np

FEWEST = 3
"""Rows without which nothing is fitted."""
_SAME = 1e-9
_TWO_SIDED = 1.96


def fit(rows: Iterable[Measurement], *, doubtful: bool = False) -> LinearModel:
    """The model of all rows that say how fast something was, and how far off it is for rows it does not know.

    doubtful: take rows, too, that nobody should trust.
    InputError: there are fewer than three such rows, or they do not differ in anything that is a term.
    MissingToolError: scikit-learn is not installed.
    """
    given = list(rows)
    taken = observations(given, doubtful=doubtful)
    # The errors and the tests leave out the same rows.
    fitted = _fitted_once()
    found = fitted(taken)
    if found is None:
        raise InputError(
            f"{len(taken)} rows say how fast something was, and they differ in nothing that a model could rest on",
            expected=f"at least {FEWEST} rows that differ in workload, software, machine or layout",
            remedy="add measurements to a collection's measurements/, or name more of them",
        )
    return LinearModel(
        columns=found.columns,
        seen=found.seen,
        levels=found.levels,
        spreads=spreads(taken, fitted),
        rows=[
            ModelRow(row=cited(each.row), level=each.level, position=_rounded(found.parts(each.terms)))
            for each in taken
        ],
        workloads={identity(each.case.workload): each.case.workload for each in reversed(taken)},
        machines={each.case.hardware.name: each.case.hardware for each in reversed(taken)},
        left_out=len(given) - len(taken),
        tests=held_out_tests(taken, fitted),
        model=MODEL.newest,
        hpcgen=__version__,
    )


def _fitted_once() -> Fit:
    """:func:`coefficients` that remembers what it was asked; the rows live as long as it does."""
    known: dict[tuple[int, ...], Coefficients | None] = {}

    def fitted(rows: Sequence[Observation]) -> Coefficients | None:
        key = tuple(map(id, rows))
        if key not in known:
            known[key] = coefficients(rows)
        return known[key]

    return fitted


def coefficients(rows: Sequence[Observation]) -> Coefficients | None:
    """The fit alone; None where there are too few rows, or no two differ in any term."""
    with extra("model", "fit models"):
        import numpy as np
        from sklearn.linear_model import BayesianRidge
    if len(rows) < FEWEST:
        return None
    seen = seen_in(rows)
    columns = places(rows, seen)
    raw = np.array([_values(row, columns) for row in rows]).reshape(len(rows), len(columns))
    speeds = np.array([row.speed for row in rows])
    levels = _levels(rows)
    compared, target = raw.copy(), speeds.copy()
    # An intercept of its own for each unit, which nothing shrinks: take the means away.
    for members in levels.values():
        compared[members] -= raw[members].mean(axis=0)
        target[members] -= speeds[members].mean()
    scale = np.sqrt((compared**2).mean(axis=0))
    varies = scale > _SAME
    if not varies.any():
        return None
    kept = [column for column, used in zip(columns, varies, strict=True) if used]
    ridge = BayesianRidge(fit_intercept=False).fit(compared[:, varies] / scale[varies], target)
    slopes = ridge.coef_ / scale[varies]
    errors = _TWO_SIDED * np.sqrt(np.diag(ridge.sigma_)) / scale[varies]
    return Coefficients(
        columns=[_column(*each) for each in zip(kept, slopes, errors, strict=True)],
        seen=seen,
        levels=[_level(name, rows, members, speeds - raw[:, varies] @ slopes) for name, members in levels.items()],
    )


def _values(row: Observation, columns: Sequence[TermColumn]) -> list[float]:
    values = [column.value(row.terms) for column in columns]
    if row.baseline_terms is None:
        return values
    return [value - column.value(row.baseline_terms) for value, column in zip(values, columns, strict=True)]


def _levels(rows: Sequence[Observation]) -> Mapping[str, list[int]]:
    names = sorted({row.level for row in rows if row.level})
    return {name: [index for index, row in enumerate(rows) if row.level == name] for name in names}


def _level(name: str, rows: Sequence[Observation], members: list[int], rest: np.ndarray[Any, Any]) -> Level:
    workloads = sorted({identity(rows[index].case.workload) for index in members})
    return Level(name=name, intercept=rounded(rest[members].mean()), workloads=workloads)


def _column(place: TermColumn, slope: float, error: float) -> Column:
    return Column(
        term=place.term,
        category=place.category,
        typical=rounded(place.typical),
        coefficient=rounded(slope),
        low=rounded(slope - error),
        high=rounded(slope + error),
    )


def _rounded(values: Iterable[float]) -> list[float]:
    return [rounded(value) for value in values]


def rounded(value: float) -> float:
    """A number as far as every machine gives the same: sums of floats differ in their last digits."""
    return float(f"{float(value):.8g}")
