"""Which columns of a table the inputs of a model are, for scikit-learn and for skl2onnx, and the texts of a column."""

import numpy as np

from .common import imported

UNKNOWN = "text that no training data had"
TEXTS = ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer")
"""Estimators that take texts alone, and not a table with a column of them."""
WORDS = 6
"""Of a random text, at most."""
MOST = 1000
"""Words that random texts are made of."""


class Columns:
    """The inputs of a model as the table that its fitted estimator takes."""

    def __init__(self, model, fitted):
        self.model, self.fitted = model, fitted
        self.known = [str(each) for each in getattr(fitted, "feature_names_in_", ())]
        widths = [put.shape[-1] if len(put.shape) > 1 and isinstance(put.shape[-1], int) else 1 for put in model.inputs]
        pools = {}
        _pools(fitted, list(range(sum(widths))), self.known, pools)
        at = 0
        for put, width in zip(model.inputs, widths):  # noqa: B905 (Python 3.9)
            if put.dtype == "string":
                put.texts = [pools[each] for each in range(at, at + width) if each in pools]
                put.texts = put.texts if len(put.texts) == width else []
            at += width

    def declared(self):
        """Name and input of each, by the name that the estimator knows the column by."""
        names = [put.name for put in self.model.inputs]
        if len(self.known) == len(names) and set(self.known) != set(names):
            # The graph gets its declared names afterwards, by their order.
            names = self.known
        return list(zip(names, self.model.inputs))  # noqa: B905 (Python 3.9)

    def table(self, feeds):
        """What the estimator is given for these inputs."""
        arrays = [feeds[put.name] for put in self.model.inputs]
        if self.known and (len(arrays) > 1 or len(self.known) == 1):
            pandas = imported("pandas", "an estimator that takes columns by name")
            names = [name for name, _ in self.declared()]
            return pandas.DataFrame({name: each.reshape(-1) for name, each in zip(names, arrays)})  # noqa: B905
        if len(arrays) == 1:
            return arrays[0].reshape(-1) if takes_texts(self.fitted) else arrays[0]
        arrays = [each.reshape(len(each), -1) for each in arrays]
        if len({each.dtype.kind in "UO" for each in arrays}) > 1:
            arrays = [each.astype(object) for each in arrays]
        return np.concatenate(arrays, axis=1)


def takes_texts(fitted):
    """Whether an estimator takes a list of texts."""
    first = fitted.steps[0][1] if hasattr(fitted, "steps") else fitted
    if hasattr(first, "transformer_list"):
        return any(takes_texts(each) for _, each in first.transformer_list)
    return takes_texts(first) if first is not fitted and hasattr(first, "steps") else type(first).__name__ in TEXTS


def _pools(part, columns, names, found):
    """Of each column that holds text: a function that draws one, from what the estimator has seen in training."""
    if hasattr(part, "steps"):
        _pools(part.steps[0][1], columns, names, found)
    elif hasattr(part, "transformer_list"):
        for _, each in part.transformer_list:
            _pools(each, columns, names, found)
    elif hasattr(part, "transformers_"):
        for _, each, chosen in part.transformers_:
            _pools(each, [columns[at] for at in _places(chosen, names, len(columns))], names, found)
    elif hasattr(part, "categories_"):
        unseen = [UNKNOWN] if getattr(part, "handle_unknown", "error") not in ("error", "auto") else []
        for column, each in zip(columns, part.categories_):  # noqa: B905 (Python 3.9)
            words = [*(str(one) for one in each), *unseen]
            found.setdefault(column, lambda source, words=words: words[source.integers(len(words))])
    elif hasattr(part, "vocabulary_"):
        words = [*sorted(map(str, part.vocabulary_))[:MOST], UNKNOWN]
        for column in columns:
            found.setdefault(column, lambda source, words=words: _sentence(source, words))


def _sentence(source, words):
    """A few words, one in three of them in capitals, or none at all."""
    drawn = [words[each] for each in source.integers(len(words), size=source.integers(WORDS + 1))]
    return " ".join(each.upper() if source.random() < 1 / 3 else each for each in drawn)


def _places(chosen, names, count):
    """Places of the columns that a part of a ColumnTransformer takes, by place, name, slice or mask."""
    if isinstance(chosen, slice) and not isinstance(chosen.start or chosen.stop, str):
        return list(range(count))[chosen]
    chosen = [chosen] if isinstance(chosen, (int, str)) else list(chosen) if not isinstance(chosen, slice) else []
    if chosen and all(isinstance(each, (bool, np.bool_)) for each in chosen):
        return [at for at, each in enumerate(chosen) if each]
    places = [names.index(each) if isinstance(each, str) and each in names else each for each in chosen]
    return [at for at in places if isinstance(at, (int, np.integer)) and at < count]
