"""Estimators of scikit-learn that take text; ``strings.yaml`` says what goes in, and ``WORDS`` which texts."""

from __future__ import annotations

import numpy as np
from sklearn import compose, feature_extraction, linear_model, naive_bayes, pipeline, preprocessing, tree

CITIES = ["Ulm", "Bonn", "Köln", "Paris"]
MODELS = ["T4", "A100", "H100"]
NOTES = [
    "the queue is long today",
    "no node is free",
    "a node has failed, the job is lost",
    "Job done!",
    "job done in 10 minutes",
    "the disk is full: job failed",
    "long long job, free disk",
]
UNSEEN = ["", "GPU-node lost", "Lost   again", "x"]
WORDS = {
    "city": [*CITIES, "Rome", ""],
    "model": MODELS,
    "cell": [*CITIES, *MODELS],
    "note": [*NOTES, *UNSEEN],
    "plain": [*NOTES[:2], "job done in minutes", "long long job"],
}


def _draw(words, count=120, seed=1):
    return np.random.RandomState(seed).choice(words, count)


def one_hot():
    table = np.stack([_draw(CITIES + MODELS), _draw(CITIES + MODELS, seed=2)], 1).astype(object)
    return preprocessing.OneHotEncoder(handle_unknown="ignore").fit(table)


def ordinal():
    table = np.stack([_draw(CITIES + MODELS), _draw(CITIES + MODELS, seed=2)], 1).astype(object)
    return preprocessing.OrdinalEncoder().fit(table)


def ordinal_with_unknown():
    table = _draw(CITIES).reshape(-1, 1).astype(object)
    return preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(table)


def one_hot_of_text_labels():
    """Text in, text out."""
    table = _draw(MODELS).reshape(-1, 1).astype(object)
    labels = np.where(table[:, 0] == "T4", "old", "new")
    return pipeline.make_pipeline(preprocessing.OneHotEncoder(), tree.DecisionTreeClassifier(random_state=0)).fit(
        table, labels
    )


def mixed_columns():
    """A table with columns by name, numbers and text."""
    import pandas

    size = np.random.RandomState(3).uniform(0, 10, 120).astype("f4")
    table = pandas.DataFrame({"city": _draw(CITIES), "model": _draw(MODELS, seed=2), "size": size})
    parts = [
        ("text", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["city", "model"]),
        ("number", preprocessing.StandardScaler(), ["size"]),
    ]
    steps = [compose.ColumnTransformer(parts), linear_model.LogisticRegression()]
    return pipeline.make_pipeline(*steps).fit(table, ((size > 5) ^ (table["model"] == "T4")).astype(int))


def _texts(estimator, words=NOTES):
    texts = _draw(words)
    made = estimator.fit(texts, np.char.find(texts.astype(str), "job") >= 0)
    made.takes_texts = True
    return made


def word_counts():
    return _texts(feature_extraction.text.CountVectorizer())


def tfidf_alone():
    return _texts(feature_extraction.text.TfidfVectorizer())


def tfidf_and_line():
    steps = [feature_extraction.text.TfidfVectorizer(), linear_model.LogisticRegression()]
    return _texts(pipeline.make_pipeline(*steps))


def tfidf_of_plain_words():
    """Words of small letters and blanks alone."""
    steps = [feature_extraction.text.TfidfVectorizer(), naive_bayes.MultinomialNB()]
    return _texts(pipeline.make_pipeline(*steps), WORDS["plain"])


def pairs_of_words():
    return _texts(feature_extraction.text.CountVectorizer(ngram_range=(1, 2), stop_words=["the", "is"]))


def characters():
    return _texts(feature_extraction.text.TfidfVectorizer(analyzer="char", ngram_range=(1, 3)))


def hashed_words():
    return _texts(feature_extraction.text.HashingVectorizer(n_features=16))
