"""All errors travel between processes: one that can't be made again hangs `multiprocessing.Pool` for ever."""

from __future__ import annotations

import copy
import pickle

import pytest

from structgen import errors
from structgen.correction.values import Correction, CorrectionError
from structgen.errors import StructgenError

KINDS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, StructgenError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_errors_are_made_again(kind: type[StructgenError]) -> None:
    error = kind("what", where="/place", remedy="Do.")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is kind
        assert (str(twin), twin.args, vars(twin)) == (str(error), error.args, vars(error))
    assert str(error.within("file")) == "what (file/place). Do."
    assert str(error) == "what (/place). Do."


def test_errors_with_more_than_a_text() -> None:
    so_far = Correction("[1", complete=False, ended_by="", events=(), pieces=(), replies=())
    error = CorrectionError("what", correction=so_far)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), error.within("row 1")):
        assert isinstance(twin, CorrectionError)
        assert twin.correction == so_far
