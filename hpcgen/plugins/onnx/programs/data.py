"""On what original and converted model are compared: files of the user, and seeded random values."""

import zipfile
import zlib

import numpy as np

from .common import GIVEN, seed_of

ROWS = 300


def datasets(model, asked, findings):
    """Name and values of each set of inputs: every file, then the batches that were asked for, else the example."""
    found = [(each, read_data(each, model, findings)) for each in model.data]
    _know_texts(model, found)
    for batch in model.batches or ([] if found else [model.axes.get("batch")]):
        axes = with_batch(model, batch)
        where = "".join(f", {axis} {length}" for axis, length in axes.items())
        found.append((f"random{where}", random_feeds(model, axes, seed_of(asked))))
    if not model.axes and not model.data:
        found = [(f"random {each}", random_feeds(model, {}, seed_of(asked) + each)) for each in (1, 2)]
    return found


def many_rows(model, asked):
    """Some hundred samples, of the values that are declared and of ten times as wide, where they cost nothing.

    A label is one of few values, so that a handful of samples proves little of it.
    """
    axis = model.inputs[0].shape[0]
    if not isinstance(axis, str):
        return
    axes, seed = dict(model.axes, **{axis: ROWS}), seed_of(asked)
    yield f"random, {axis} {ROWS}", random_feeds(model, axes, seed)
    floats = [each for each in model.inputs if each.dtype.startswith("float")]
    if floats:
        feeds = random_feeds(model, axes, seed + 1)
        for each in floats:
            middle = (each.low + each.high) / 2
            feeds[each.name] = (middle + 10 * (feeds[each.name] - middle)).astype(each.dtype)
        yield f"random, {axis} {ROWS}, values ten times as wide", feeds
    if floats and model.gaps:
        feeds = random_feeds(model, axes, seed + 2)
        for at, each in enumerate(floats):
            missing = np.random.default_rng([seed, at]).random(feeds[each.name].shape) < 0.2
            feeds[each.name] = np.where(missing, np.array(np.nan, each.dtype), feeds[each.name])
        yield f"random, {axis} {ROWS}, every fifth value missing", feeds


def _know_texts(model, found):
    """Texts of which an original says nothing are those of the test data."""
    for put in model.inputs:
        if put.dtype != "string" or put.texts:
            continue
        if not found:
            raise model.wrong(
                f"the valid texts for its input {put.name} are unknown: it has neither categories nor a vocabulary",
                "name test data: data: [FILE.npz], with an array of text for each such input",
            )
        arrays = [feeds[put.name] for _, feeds in found]
        columns = zip(*(np.atleast_2d(each.T) for each in arrays))  # noqa: B905 (Python 3.9)
        put.texts = [drawn_from(np.unique(np.concatenate(each))) for each in columns]


def drawn_from(words):
    """A function that draws one of them."""
    return lambda source: str(words[source.integers(len(words))])


def with_batch(model, batch):
    """The lengths of a model's axes, with that of the axis ``batch``; None for its own."""
    return dict(model.axes, **({} if batch is None else {"batch": batch}))


def random_feeds(model, axes, seed):
    """Seeded random values for each input, with these lengths of the axes."""
    return {each.name: _random(model, each, each.lengths(axes), seed) for each in model.inputs}


def _random(model, put, shape, seed):
    source = np.random.default_rng([seed, zlib.crc32(f"{model.name} {put.name}".encode())])
    low, high = put.low, put.high
    if put.dtype == "bool":
        return source.random(shape) < 0.5
    if put.dtype == "string":
        return _texts(put, shape, source)
    if put.dtype.startswith("float"):
        return (low + (high - low) * source.random(shape)).astype(put.dtype)
    return source.integers(int(low), max(int(high), int(low) + 1), shape).astype(put.dtype)


def _texts(put, shape, source):
    """Texts of which each column has its own, from what is known of it; without that, letters."""
    made = np.empty(shape, object)
    for at in np.ndindex(*shape):
        draw = put.texts[at[-1] if len(put.texts) > 1 else 0] if put.texts else _letters
        made[at] = draw(source)
    return made.astype(str)


def _letters(source):
    return "".join("abcdefgh"[each] for each in source.integers(8, size=4))


def traced(model, asked):
    """What the model is traced with: each named axis at least 2 long, as exporters take a 1 for a constant."""
    return random_feeds(model, {name: max(2, length) for name, length in model.axes.items()}, seed_of(asked))


def read_data(path, model, findings=None):
    """The arrays of a file of test data, checked against the inputs that the ensemble file declares."""
    arrays = _arrays(path, model)
    missing = [each.name for each in model.inputs if each.name not in arrays]
    if missing:
        raise model.wrong(
            f"{path} has no array for the input {', '.join(missing)}: it has {', '.join(sorted(arrays)) or 'none'}",
            f"write it with numpy.savez({path!r}, {', '.join(f'{each.name}=…' for each in model.inputs)})",
        )
    axes = {}
    for put in model.inputs:
        _check(path, model, put, arrays[put.name], axes)
        _say_missing(path, model, put, arrays[put.name], findings)
    return {each.name: arrays[each.name] for each in model.inputs}


def _arrays(path, model):
    try:
        loaded = np.load(GIVEN / path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            if len(model.inputs) > 1:
                raise model.wrong(f"{path} is one array, and the model has {len(model.inputs)} inputs", "write a .npz")
            return {model.inputs[0].name: loaded}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except FileNotFoundError:
        raise model.wrong(f"the test data {path} are missing", "put the file next to the ensemble file") from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as failure:
        raise model.wrong(
            f"{path} cannot be read as NumPy data: {failure}",
            "write it with numpy.save or numpy.savez, no objects; texts with .astype(str)",
        ) from failure


def _check(path, model, put, array, axes):
    expected = f"the ensemble file says {put}"
    kind = "string" if array.dtype.kind == "U" else array.dtype.name
    if kind != put.dtype:
        raise model.wrong(
            f"{path}: the array {put.name} has the type {kind}, and {expected}",
            f"convert it with .astype('{'str' if put.dtype == 'string' else put.dtype}'), or correct dtype",
        )
    if array.ndim != len(put.shape):
        raise model.wrong(
            f"{path}: the array {put.name} has the shape {list(array.shape)}, and {expected}", "reshape it"
        )
    for at, (wanted, length) in enumerate(zip(put.shape, array.shape)):  # noqa: B905 (Python 3.9)
        wanted = axes.setdefault(wanted, length) if isinstance(wanted, str) else wanted
        if wanted != length or not length:
            raise model.wrong(
                f"{path}: the array {put.name} has the shape {list(array.shape)}, and {expected}: "
                f"axis {at} is {length} long and not {wanted or 'at least 1'}",
                "reshape the data, or correct shape in the ensemble file",
            )


def _say_missing(path, model, put, array, findings):
    if findings is None or array.dtype.kind != "f":
        return
    away = ~np.isfinite(array)
    if away.any():
        first = [int(each) for each in np.argwhere(away)[0]]
        findings.append(
            f"{path}: {away.sum()} of {array.size} values of {put.name} are NaN or infinite, the first at {first}; "
            "their results are compared too, but prove little"
        )
