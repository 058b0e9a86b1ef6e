"""Files of rows: every kind of file, order, damage, and runs that are resumed."""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib.util
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from untemplate.batch import Progress, parse_files, read_records, settings_for
from untemplate.batch import _sources as sources
from untemplate.batch._many import in_processes
from untemplate.batch._summary import Summary

from .conftest import output, read, rows

SETTINGS = settings_for("hermes")
NEEDS_PYARROW = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
KINDS = [
    ".jsonl",
    ".jsonl.gz",
    pytest.param(".jsonl.zst", marks=NEEDS_PYARROW),
    pytest.param(".parquet", marks=NEEDS_PYARROW),
]


def write(path: Path, values: list[dict[str, Any]]) -> str:
    """Write rows as a file of the kind that its name has."""
    data = b"".join(json.dumps(row).encode() + b"\n" for row in values)
    if path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        flat = [{**row, "tools": json.dumps(row["tools"])} for row in values]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(flat), path)
    elif path.suffix == ".zst":
        import pyarrow

        path.write_bytes(pyarrow.compress(data, codec="zstd", asbytes=True))
    else:
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut files into many pieces."""
    monkeypatch.setattr(sources, "_SIZE", 2_000)
    monkeypatch.setattr(sources, "_ROWS", 7)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("of", KINDS)
def test_every_kind_of_file(of: str, to: str, tmp_path: Path):
    given = write(tmp_path / f"rows{of}", rows(50))
    out = str(tmp_path / f"out{to}")
    summary = parse_files([given], out, SETTINGS, processes=1)
    plain = tmp_path / "plain.jsonl"
    parse_files([write(tmp_path / "again.jsonl", rows(50))], str(plain), SETTINGS, processes=1)
    records = list(read_records(out))
    assert [record.row for record in records] == list(range(1, 51))
    calls = [record.message["tool_calls"][0]["function"] for record in records if record.message]
    assert [json.loads(call["arguments"]) for call in calls] == [{"x": i} for i in range(50)]
    assert summary.tables()["rows"] == {"clean": 50, "errors": 0, "flawed": 0}
    if to != ".parquet":  # where `role` and the difference between null and no content are not written
        assert records == list(read_records(str(plain)))
    assert sorted(os.listdir(tmp_path)) == sorted({f"rows{of}", f"out{to}", "plain.jsonl", "again.jsonl"})


def test_records_that_are_read_have_the_columns_that_were_kept(tmp_path: Path, jsonl: Callable[..., str]):
    kept = [{"id": 2**53 + 1, "note": "a"}, {"id": 2, "note": ["b", None]}, {"id": 3, "note": "half \ud83d"}]
    given = jsonl([{**row, **one} for row, one in zip(rows(3), kept, strict=True)])
    out = str(tmp_path / "out.jsonl")
    parse_files([given], out, settings_for("hermes", keep=["id", "note"]), processes=1)
    assert [record.kept for record in read_records(out)] == kept


@NEEDS_PYARROW
def test_parquet_keeps_everything(tmp_path: Path):
    given = write(tmp_path / "rows.parquet", [*rows(2), {"id": 2, "output": output("{"), "tools": []}])
    settings = settings_for("hermes", keep=["id"], spans=True)
    parse_files([given], str(tmp_path / "out.parquet"), settings, processes=1)
    parse_files([given], str(tmp_path / "out.jsonl"), settings, processes=1)
    lines, records = read(tmp_path / "out.jsonl"), list(read_records(str(tmp_path / "out.parquet")))
    assert [record.kept for record in records] == [{"id": line["id"]} for line in lines]
    for record, line in zip(records, lines, strict=True):
        assert (record.row, record.statuses, [s.start for s in record.spans]) == (
            line["row"], line.get("statuses", []), [s["start"] for s in line["spans"]]
        )  # fmt: skip
        assert record.message is not None
        assert record.message["content"] == line["message"]["content"]


def test_two_processes_write_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jsonl: Callable[..., str]):
    monkeypatch.setattr(sources, "_SIZE", 20_000)
    given = jsonl([*rows(300), b"broken", *rows(200)])
    one, two = str(tmp_path / "one.jsonl"), str(tmp_path / "two.jsonl")
    assert parse_files([given], one, SETTINGS, processes=1) == parse_files([given], two, SETTINGS, processes=2)
    assert Path(one).read_bytes() == Path(two).read_bytes()


def test_processes_leave_no_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jsonl: Callable[..., str]):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    parse_files([jsonl(rows(50))], str(tmp_path / "o.jsonl"), settings_for("hermes"), processes=2)
    assert os.listdir(tmp_path / "tmp") == []


def test_a_file_that_becomes_shorter_is_an_error(jsonl: Callable[..., str]):
    path = jsonl(rows(50))
    (piece,) = sources.pieces(path)
    os.truncate(path, 100)
    with pytest.raises(OSError, match=f"^{re.escape(path)}: the file became shorter while it was read$"):
        list(sources.rows_of(piece))


def test_several_files_and_blank_lines(tmp_path: Path, jsonl: Callable[..., str]):
    first = jsonl([{"output": "a"}, b"", b"  \r", {"output": "b"}], "first.jsonl")
    second = jsonl([{"output": "c"}], "second.jsonl")
    parse_files([first, second], str(tmp_path / "out.jsonl"), SETTINGS, processes=1)
    lines = read(tmp_path / "out.jsonl")
    assert [(line["row"], line["file"], line["message"]["content"]) for line in lines] == [
        (1, first, "a"), (4, first, "b"), (1, second, "c")
    ]  # fmt: skip


def test_a_last_line_without_its_end(tmp_path: Path):
    given = tmp_path / "rows.jsonl"
    given.write_bytes(b'{"output": "a"}\n{"output": "b"}')
    parse_files([str(given)], str(tmp_path / "out.jsonl"), SETTINGS, processes=1)
    assert [line["message"]["content"] for line in read(tmp_path / "out.jsonl")] == ["a", "b"]


def test_an_empty_file(tmp_path: Path, jsonl: Callable[..., str]):
    assert parse_files([jsonl([])], str(tmp_path / "out.jsonl"), SETTINGS, processes=1) == Summary()
    assert read(tmp_path / "out.jsonl") == []


@pytest.mark.parametrize("size", [2_000, 1 << 20])
def test_a_truncated_gzip_file(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jsonl: Callable[..., str]):
    monkeypatch.setattr(sources, "_SIZE", size)
    given = jsonl(rows(200), "rows.jsonl.gz")
    data = Path(given).read_bytes()
    Path(given).write_bytes(data[: len(data) // 2])
    after = jsonl(rows(1), "after.jsonl")
    parse_files([given, after], str(tmp_path / "out.jsonl"), SETTINGS, processes=1)
    lines = read(tmp_path / "out.jsonl")
    whole = [line for line in lines if "error" not in line]
    assert [line["row"] for line in whole] == [*range(1, len(whole)), 1]
    assert len(whole) > 20
    cut, end = [line for line in lines if "error" in line]
    assert (cut["row"], cut["error"]["code"], cut["error"]["input"][:6]) == (len(whole), "json", '{"id":')
    assert end["row"] == len(whole) + 1
    assert end["error"] == {
        "code": "file",
        "problem": f"{given}: cannot be read any further: Compressed file ended before the end-of-stream marker was "
        "reached",
    }


@NEEDS_PYARROW
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", [".jsonl.zst", ".parquet"])
def test_other_damaged_files(kind: str, tmp_path: Path):
    given = write(tmp_path / f"rows{kind}", rows(200))
    data = Path(given).read_bytes()
    Path(given).write_bytes(data[: len(data) // 2])
    summary = parse_files([given], str(tmp_path / "out.jsonl"), SETTINGS, processes=1)
    last = read(tmp_path / "out.jsonl")[-1]
    assert last["error"]["problem"].startswith(f"{given}: cannot be read any further: ")
    assert summary.problems["file"] == 1


def test_a_row_beyond_all_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jsonl: Callable[..., str]):
    monkeypatch.setattr(sources, "_SIZE", 1_000)
    monkeypatch.setattr(sources, "LONGEST_ROW", 5_000)
    given = jsonl([{"output": "a"}, {"output": "b" * 10_000}, {"output": "c"}])
    parse_files([given], str(tmp_path / "out.jsonl"), SETTINGS, processes=1)
    assert [line.get("error", {}).get("code") for line in read(tmp_path / "out.jsonl")] == [None, "file"]


class Stop(Exception):
    """Interrupts a run."""


class Interrupting:
    """Takes reports, and interrupts the run at one of them."""

    def __init__(self, stop: int) -> None:
        self.stop = stop
        self.rows: list[int] = []

    def __call__(self, progress: Progress) -> None:
        self.rows.append(progress.summary.rows)
        if len(self.rows) == self.stop:
            raise Stop


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("of", KINDS)
@pytest.mark.parametrize("to", KINDS)
def test_an_interrupted_run_is_resumed(of: str, to: str, tmp_path: Path):
    inputs = [write(tmp_path / f"a{of}", rows(40)), write(tmp_path / f"b{of}", rows(30))]
    wanted = str(tmp_path / f"wanted{to}")
    summary = parse_files(inputs, wanted, SETTINGS, processes=1)
    for stop in (1, 4, 9):
        out = str(tmp_path / f"out{stop}{to}")
        reports = Interrupting(stop)
        with pytest.raises(Stop):
            parse_files(inputs, out, SETTINGS, processes=1, report=reports)
        assert not os.path.exists(out)
        with open(f"{out}.partial", "ab") as file:
            file.write(b"half a piece that was written after the last note")
        with pytest.raises(
            FileExistsError, match=r"an unfinished run is there; resume it \(--resume\), or remove the file"
        ):
            parse_files(inputs, out, SETTINGS, processes=1)
        resumed = Interrupting(-1)
        assert parse_files(inputs, out, SETTINGS, processes=1, resume=True, report=resumed) == summary
        assert resumed.rows[0] > reports.rows[-1]
        assert list(read_records(out)) == list(read_records(wanted))


def test_resuming_another_job_is_refused(tmp_path: Path, jsonl: Callable[..., str]):
    given, out = jsonl(rows(3)), str(tmp_path / "out.jsonl")

    with pytest.raises(Stop):
        parse_files([given], out, SETTINGS, processes=1, report=Interrupting(1))
    with pytest.raises(ValueError, match=r"out\.jsonl\.partial: the unfinished run had other values of: spans$"):
        parse_files([given], out, settings_for("hermes", spans=True), processes=1, resume=True)


@pytest.mark.parametrize("notes", ["", '{"job": "{}", "row": 1}'])
def test_notes_that_cannot_be_read_are_named(notes: str, tmp_path: Path, jsonl: Callable[..., str]):
    out = tmp_path / "out.jsonl"
    (tmp_path / "out.jsonl.partial").write_text("")
    (tmp_path / "out.jsonl.progress").write_text(notes)
    problem = (
        f"{out}.progress: cannot be read, perhaps another version wrote it; remove it and the .partial file, "
        "and begin again without --resume"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        parse_files([jsonl(rows(1))], str(out), SETTINGS, processes=1, resume=True)


@pytest.mark.parametrize("name", ["-", "memory://results.jsonl"])
def test_an_output_that_is_no_local_file_is_refused(name: str, jsonl: Callable[..., str]):
    with pytest.raises(ValueError, match=f"output: '{name}' is no file; results are written to a local file"):
        parse_files([jsonl([{"output": "Hi."}])], name, SETTINGS)


def test_an_output_that_exists_is_never_touched(tmp_path: Path, jsonl: Callable[..., str]):
    out = tmp_path / "out.jsonl"
    out.write_text("mine")
    with pytest.raises(FileExistsError):
        parse_files([jsonl(rows(1))], str(out), SETTINGS, processes=1)
    assert (out.read_text(), sorted(os.listdir(tmp_path))) == ("mine", ["out.jsonl", "rows.jsonl"])


def test_progress(tmp_path: Path, jsonl: Callable[..., str]):
    seen: list[Progress] = []
    given = jsonl(rows(50))
    parse_files([given], str(tmp_path / "out.jsonl"), SETTINGS, processes=1, report=seen.append)
    assert (seen[-1].summary.rows, seen[-1].done, seen[-1].total) == (
        50,
        os.stat(given).st_size,
        os.stat(given).st_size,
    )
    assert seen[-1].rate > 0


def test_files_that_are_not_results(tmp_path: Path, jsonl: Callable[..., str]):
    with pytest.raises(ValueError, match=r"rows\.jsonl, row 1: not a result: Object missing required field `row`$"):
        list(read_records(jsonl(rows(1))))


# -- Other inputs -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_csv(name: str, tmp_path: Path):
    path = tmp_path / name
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["id", "output", "tools"])
    writer.writerows([row["id"], row["output"], json.dumps(row["tools"])] for row in rows(50))
    text.write("one value only\r\n")
    data = ("\ufeff" + text.getvalue()).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    out = tmp_path / "out.jsonl"
    parse_files([str(path)], str(out), settings_for("hermes", keep=["id"]), processes=1)
    records = read(out)
    assert [record["row"] for record in records] == list(range(1, 52))
    assert [record["id"] for record in records[:50]] == [str(i) for i in range(50)]
    assert [record["statuses"] for record in records[:50]] == [["ok"]] * 50
    assert records[50]["error"] == {
        "code": "json",
        "problem": "not a JSON object: Expected `object`, got `array`",
        "input": '["one value only"]',
    }


@pytest.mark.skipif(importlib.util.find_spec("fsspec") is None, reason="needs fsspec")
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("processes", [1, 2])
def test_a_file_of_another_file_system(processes: int, tmp_path: Path):
    import fsspec

    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows(50))
    with fsspec.open("memory://bucket/rows.jsonl.gz", "wb") as file:
        file.write(gzip.compress(data))
    out = tmp_path / "out.jsonl"
    parse_files(["memory://bucket/rows.jsonl.gz"], str(out), SETTINGS, processes=processes)
    assert [record["statuses"] for record in read(out)] == [["ok"]] * 50
    with pytest.raises(FileNotFoundError, match=r"memory://bucket/none\.jsonl"):
        parse_files(["memory://bucket/none.jsonl"], str(tmp_path / "x"), SETTINGS)


def test_another_file_system_needs_fsspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ModuleNotFoundError, match=r"^s3://bucket/rows\.jsonl: needs fsspec: pip install fsspec$"):
        parse_files(["s3://bucket/rows.jsonl"], str(tmp_path / "x"), SETTINGS)


def test_half_a_character_is_a_row(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id": "\\udc80", "output": "\\ud83d Hi.\\ude00"}\n{"output": "\\ud83d\n')
    out = tmp_path / "out.jsonl"
    parse_files([str(path)], str(out), settings_for("hermes", keep=["id"]), processes=1)
    first, second = read(out)
    assert (first["id"], first["message"]["content"]) == ("\udc80", "\ud83d Hi.\ude00")
    assert second["error"]["code"] == "json"
    assert [record.error is None for record in read_records(str(out))] == [True, False]


@NEEDS_PYARROW
@pytest.mark.usefixtures("small")
def test_kept_columns_have_their_type(tmp_path: Path):
    import pyarrow.parquet

    given = [
        {**row, "score": None if i < 20 else i / 2, "mixed": i if i % 2 else str(i), "tags": [str(i)]}
        for i, row in enumerate(rows(50))
    ]
    path = write(tmp_path / "rows.jsonl", given)
    out = str(tmp_path / "out.parquet")
    settings = settings_for("hermes", keep=["id", "score", "mixed", "tags"])
    parse_files([path], out, settings, processes=1)
    table = pyarrow.parquet.read_table(out)
    assert [str(table.schema.field(name).type) for name in settings.keep] == [
        "int64",
        "double",
        "string",
        "list<element: string>",
    ]
    assert table.column("id").to_pylist() == list(range(50))
    assert table.column("score").to_pylist() == [row["score"] for row in given]
    assert [json.loads(text) for text in table.column("mixed").to_pylist()] == [row["mixed"] for row in given]
    assert len(list(read_records(out))) == 50
    with pytest.raises(ValueError, match=r"^keep: 'content' is a column of the results$"):
        parse_files([path], str(tmp_path / "x.parquet"), settings_for("hermes", keep=["content"]))


@NEEDS_PYARROW
def test_objects_of_parquet_have_their_own_members(tmp_path: Path):
    """A column of objects has the members of all of them, and those that an object has not are null."""
    import pyarrow.parquet

    def tool(name: str, *keys: str) -> dict[str, Any]:
        properties = {key: {"type": "string"} for key in keys}
        return {"type": "function", "function": {"name": name, "parameters": {"properties": properties}}}

    tools = [[tool("f", "x")], [tool("g", "y"), tool("h")]]
    given = [{"output": output(), "note": None, "tools": one} for one in tools]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(given), tmp_path / "rows.parquet")
    out = tmp_path / "out.jsonl"
    parse_files([str(tmp_path / "rows.parquet")], str(out), settings_for("hermes", keep=["tools", "note"]), processes=1)
    assert [(line["tools"], line["note"]) for line in read(out)] == [(tools[0], None), (tools[1], None)]


@NEEDS_PYARROW
@pytest.mark.usefixtures("small")
def test_columns_of_parquet_keep_their_types(tmp_path: Path):
    import pyarrow.parquet

    table = pyarrow.table(
        {
            "output": [output()] * 20,
            "n": pyarrow.array(range(20), pyarrow.int16()),
            "when": pyarrow.array(range(20), pyarrow.timestamp("ms", "UTC")),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    out = str(tmp_path / "out.parquet")
    parse_files([str(tmp_path / "rows.parquet")], out, settings_for("hermes", keep=["n", "when"]), processes=1)
    found = pyarrow.parquet.read_table(out)
    assert found.select(["n", "when"]) == table.select(["n", "when"])


_KILLED = """
import sys, time
from untemplate.batch import parse_many
if __name__ == "__main__":
    rows = ({"output": "Hi."} for _ in iter(int, 1))
    for i, record in enumerate(parse_many(rows, "hermes", processes=2)):
        if i == 0:
            print("started", flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def _held(parser: object, piece: int) -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows sends no signals")
def test_processes_get_no_ctrl_c_while_they_start():
    """Only their parent reports that it was interrupted."""
    assert all(in_processes(_held, range(4), SETTINGS, 2))
    assert not _held(None, 0)


def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path):
    script = tmp_path / "run.py"
    script.write_text(_KILLED)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"started\n"
        children = _children(parent.pid)
        assert len(children) >= 2
        parent.kill()
    deadline = time.monotonic() + 10
    while any(map(_runs, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_runs, children))


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[1] == str(pid):
                found.append(int(stat.parent.name))
    return found


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
