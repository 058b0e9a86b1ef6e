"""``make names`` reads the names of other projects from the files of their wheels."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import renew_names  # noqa: E402

FILES = {
    "lmdeploy/serve/parsers/tool_parser/a.py": "@M.register_module(['hermes', 'new_one'])\nclass A: ...\n",
    "lmdeploy/serve/parsers/reasoning_parser/b.py": "@M.add(name='x')\n@M.register_module('qwen3')\ndef f(): ...\n",
    "lmdeploy/other/tool_parser/c.py": "@M.register_module('elsewhere')\ndef f(): ...\n",
}


@pytest.fixture(params=["wheel", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The files as a wheel and as a folder with installed packages."""
    if request.param == "wheel":
        wheel = tmp_path / "lmdeploy-9.1-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, text in FILES.items():
                archive.writestr(name, text)
        return wheel
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_names_of_a_wheel(place: Path):
    assert renew_names.read(renew_names.SOURCES["lmdeploy"], place) == {"names": ["hermes", "new_one", "qwen3"]}


def test_a_list_that_moved_is_an_error(place: Path):
    with pytest.raises(LookupError) as caught:
        renew_names.read(renew_names.SOURCES["mlx-lm"], place)
    assert str(caught.value) == "mlx-lm: no names in mlx_lm/tool_parsers/*.py"


@pytest.mark.parametrize(
    ("reader", "text", "names"),
    [
        (renew_names.keys("A"), "A: dict[str, int] = {'x': 1, 'y': 2}\nB = {'z': 1}", ["x", "y"]),
        (
            renew_names.keys("A"),
            "A = OrderedDict([('x', ('inner', 1)), ('y', 2)])\nA.update({'z': 1})",
            ["x", "y", "z"],
        ),
        (renew_names.compared("name"), "if name == 'x' or other == 'y': ...", ["x"]),
    ],
)
def test_readers(reader: Any, text: str, names: list[str]):
    assert list(reader("a.py", renew_names.ast.parse(text))) == names


def test_what_is_new_is_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "lmdeploy-9.1.dist-info").mkdir()
    engines, others = tmp_path / "engines.json", tmp_path / "others.json"
    engines.write_text("{}", "utf-8")
    record = {"version": "9.0", "date": "2026-01-01", "names": ["hermes", "old_one"]}
    others.write_text(json.dumps({"projects": {"lmdeploy": record}}), "utf-8")
    monkeypatch.setattr(renew_names, "ENGINES", engines)
    monkeypatch.setattr(renew_names, "OTHERS", others)
    assert renew_names.renew(["lmdeploy"], [tmp_path]) == 1
    assert capsys.readouterr().out == (
        "lmdeploy 9.1 (listed: 9.0)\n"
        "  names, new: new_one, qwen3\n"
        "  names, gone: old_one\n"
        "  names, without a format or a reason: new_one\n"
    )
    written = json.loads(others.read_text("utf-8"))["projects"]["lmdeploy"]
    assert (written["version"], written["names"]) == ("9.1", ["hermes", "new_one", "qwen3"])
