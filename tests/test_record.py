"""Classes of records are dataclasses that cannot be changed."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from untemplate import Policy
from untemplate.format import Format, Marker, Reasoning
from untemplate.formats import named

HERMES = named("hermes")


def test_records_are_values():
    for same in (pickle.loads(pickle.dumps(HERMES)), copy.deepcopy(HERMES), replace(HERMES)):
        assert same == HERMES
        assert hash(same) == hash(HERMES)
    assert replace(HERMES, name="other") != HERMES
    assert repr(Marker("<a>")) == "Marker(text='<a>', accepted=())"
    assert [field.name for field in fields(Reasoning)][:2] == ["open", "close"]


def test_records_cannot_be_changed():
    with pytest.raises(FrozenInstanceError, match=r"^cannot assign to field 'name'$"):
        HERMES.name = "other"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match=r"^cannot delete field 'name'$"):
        del HERMES.name


@pytest.mark.parametrize(
    ("make", "given", "named", "said"),
    [
        (Marker, (), {}, "Marker.__init__() missing a required argument: 'text'"),
        (Marker, ("a",), {"text": "b"}, "Marker.__init__() multiple values for argument 'text'"),
        (Marker, ("a", (), ()), {}, "Marker.__init__() too many positional arguments"),
        (Format, ("a",), {}, "Format.__init__() too many positional arguments"),
        (Policy, (), {"draft": "never"}, "Policy.__init__() got an unexpected keyword argument 'draft'"),
    ],
)
def test_wrong_arguments(make: Any, given: tuple[Any, ...], named: dict[str, Any], said: str):
    with pytest.raises(TypeError) as caught:
        make(*given, **named)
    assert str(caught.value) == said


def test_the_signature_is_shown():
    assert str(inspect.signature(Marker)) == "(text: 'str', accepted: 'tuple[str, ...]' = ())"
    parameters = inspect.signature(Policy).parameters
    assert parameters["drafts"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["drafts"].default == "recover"
