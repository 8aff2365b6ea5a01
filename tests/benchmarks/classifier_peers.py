"""What public tools say of labelled texts, run by the Python of an environment that has them.

    PYTHON tests/benchmarks/classifier_peers.py tf-idf|gopher < request > scores

The request is JSON: `train` [[text, label], …] (tf-idf alone) and `texts`; the answer is a list of
scores, higher for label 1. This file imports nothing of the project.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def tf_idf(request: dict[str, Any]) -> list[float]:
    """scikit-learn: logistic regression on tf-idf of n-grams of 2 to 5 characters in words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    texts, labels = zip(*request["train"], strict=True)
    vectors = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, max_features=500_000
    )
    model = LogisticRegression(C=10, max_iter=1000, class_weight="balanced")
    model.fit(vectors.fit_transform(texts), labels)
    found: list[float] = model.predict_proba(vectors.transform(request["texts"]))[:, 1].tolist()
    return found


def gopher(request: dict[str, Any]) -> list[float]:
    """datatrove: 1 where its Gopher repetition and quality filters both keep the text."""
    from datatrove.data import Document
    from datatrove.pipeline.filters import GopherQualityFilter, GopherRepetitionFilter

    filters = (GopherRepetitionFilter(), GopherQualityFilter())

    def kept(text: str) -> float:
        document = Document(text=text, id="0")
        return float(all(one.filter(document) is True for one in filters))

    return [kept(text) for text in request["texts"]]


PEERS = {"tf-idf": tf_idf, "gopher": gopher}

if __name__ == "__main__":
    print(json.dumps(PEERS[sys.argv[1]](json.load(sys.stdin))))
