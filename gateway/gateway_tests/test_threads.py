"""Work in threads: owners take turns, and very large prompts are rendered in a process that ends with its client."""

from __future__ import annotations

import asyncio
import pickle
import pickletools
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from untemplate.formats import UnknownFormatError, named
from untemplate.templates import ChatTemplate, TemplateError, TemplateLimitError
from untemplate_gateway import processes, rendering, threads
from untemplate_gateway.errors import ApiError
from untemplate_gateway.processes import Worker, WorkerEnded, Workers, packed
from untemplate_gateway.rendering import APART, render
from untemplate_gateway.request_context import RequestContext, current
from untemplate_gateway.threads import Abandoned, go_on, in_slow_thread, in_thread

from .scripted import scripted
from .server import LONG, running, soon

TEMPLATE = ChatTemplate(
    "{{ bos_token }}{% if not messages %}{{ raise_exception('empty') }}{% endif %}"
    "{% for message in messages %}{{ message.content }}{% endfor %}{{ tools | tojson }}{{ thinking }}",
    bos_token="<s>",
    name="echo",
)
LARGE = "x" * APART


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Begin without worker processes, and end those of the test."""
    monkeypatch.setattr(rendering._WORKERS, "idle", [])
    yield
    rendering._WORKERS.close()


def test_owners_take_turns() -> None:
    """One that has many long requests delays another one by those that run."""
    done: list[str] = []
    go = threading.Event()

    async def work(owner: str) -> None:
        current.set(RequestContext(owner))
        await in_slow_thread(lambda: go.wait(LONG))
        done.append(owner)

    async def act() -> None:
        tasks = [asyncio.create_task(work("many")) for _ in range(5)]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(work("one")))
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*tasks)

    asyncio.run(act())
    assert done.index("one") <= 1
    assert len(done) == 6


def test_a_client_that_leaves_takes_its_waiting_work_with_it() -> None:
    begun, go = threading.Event(), threading.Event()
    ran: list[str] = []

    def first() -> None:
        begun.set()
        go.wait(LONG)

    async def act() -> None:
        running = asyncio.create_task(in_slow_thread(first))
        waiting = asyncio.create_task(in_slow_thread(ran.append, "waited"))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        waiting.cancel()
        go.set()
        await running
        await in_slow_thread(ran.append, "after")

    asyncio.run(act())
    assert ran == ["after"]


def test_running_work_sees_that_its_client_has_left() -> None:
    begun, left = threading.Event(), threading.Event()
    ended: list[type[BaseException]] = []

    def work() -> None:
        begun.set()
        left.wait(LONG)
        try:
            go_on()
        except Abandoned as error:
            ended.append(type(error))

    async def act() -> None:
        task = asyncio.create_task(in_slow_thread(work))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        left.set()
        await in_slow_thread(lambda: None)

    asyncio.run(act())
    assert ended == [Abandoned]


def test_work_that_nobody_waits_for_is_work_of_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else has a thread at once, and does not pay for the time of the first one."""
    monkeypatch.setattr(threads, "BUDGET", 0.5)
    go = threading.Event()

    async def act() -> None:
        current.set(RequestContext("busy"))
        left = asyncio.create_task(in_slow_thread(go.wait, LONG))
        await asyncio.sleep(0.01)
        left.cancel()
        waiting = asyncio.create_task(in_slow_thread(lambda: None))
        current.set(other := RequestContext("other"))
        await asyncio.create_task(in_slow_thread(lambda: None))
        await asyncio.sleep(0.6)
        assert not waiting.done()
        go.set()
        await waiting
        assert other.worked < 0.5

    asyncio.run(act())


def test_there_is_a_thread_for_each_place() -> None:
    """That of an owner that has no running work, too: waiting would count as work."""
    together = threading.Barrier(2)

    async def one(owner: str) -> None:
        current.set(RequestContext(owner))
        await in_slow_thread(together.wait, LONG)

    async def act() -> None:
        await asyncio.gather(*(asyncio.create_task(one(owner)) for owner in ("a", "b")))

    asyncio.run(act())


def test_work_of_one_request_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it together, not each part."""
    monkeypatch.setattr(threads, "BUDGET", 0.3)

    async def act() -> None:
        current.set(RequestContext("one"))
        await in_thread(time.sleep, 0.2)
        with pytest.raises(ApiError) as caught:
            await in_thread(time.sleep, 0.2)
        assert (caught.value.status, caught.value.code) == (413, "request_too_large")
        current.set(RequestContext("other"))
        await in_thread(time.sleep, 0.0)

    asyncio.run(act())


def test_errors_of_workers_come_back_with_all_that_they_say() -> None:
    workers = Workers()
    try:
        with pytest.raises(UnknownFormatError, match="hermess") as caught:
            workers.do(packed(named, "hermess"))
        assert caught.value.name == "hermess"
        with pytest.raises(RuntimeError, match="Odd: no pickle"):
            workers.do(packed(_odd))
        assert workers.do(packed(len, "still there")) == 11
        assert len(workers.idle) == 1
    finally:
        workers.close()


def test_an_error_with_half_an_emoji_comes_back() -> None:
    workers = Workers()
    try:
        with pytest.raises(ValueError, match=r"^half: \?$"):
            workers.do(packed(_half))
    finally:
        workers.close()


def _half() -> None:
    raise ValueError("half: \ud800")


def _odd() -> None:
    class Odd(Exception):
        pass

    raise Odd("no pickle")


class Touch:
    """Unpickled, it makes a file: what somebody would send who controls a worker."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


def answering(answer: bytes) -> str:
    """Return the program of a worker that gives one answer to every job."""
    read = "head = sys.stdin.buffer.read(12); sys.stdin.buffer.read(int.from_bytes(head[8:], 'big'))"
    write = f"sys.stdout.buffer.write(head[:8] + {len(answer).to_bytes(4, 'big') + answer!r}); sys.stdout.flush()"
    return f"import sys\nwhile True: {read}; {write}"


@pytest.mark.parametrize("sign", [b"", b"=", b"!"])
def test_an_answer_of_a_worker_is_data(sign: bytes, tmp_path: Path) -> None:
    workers = Workers(answering(sign + pickle.dumps((Touch(str(tmp_path / "touched")), None))))
    try:
        with pytest.raises(msgspec.DecodeError):
            workers.do(b"")
        assert workers.idle == []
    finally:
        workers.close()
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_a_worker_is_one_of_the_table() -> None:
    workers = Workers(answering(b"!" + msgspec.json.encode(("SystemExit", "no", {}))))
    try:
        with pytest.raises(RuntimeError, match=r"^no$"):
            workers.do(b"")
    finally:
        workers.close()


def test_an_answer_that_is_too_long_is_not_read() -> None:
    head = ((64 << 20) + 1).to_bytes(12, "big")
    workers = Workers(f"import sys, time; sys.stdout.buffer.write({head!r}); sys.stdout.flush(); time.sleep(3600)")
    try:
        with pytest.raises(WorkerEnded, match="the worker process has ended"):
            workers.do(b"")
        assert workers.idle == []
    finally:
        workers.close()


def test_a_captured_worker_cannot_answer_the_next_client() -> None:
    """It writes the next answer in advance: the number of the next job is not known to it, and it is killed."""
    workers = Workers()
    try:
        assert workers.do(packed(_write_ahead)) == "mine"
        [worker] = workers.idle
        with pytest.raises(WorkerEnded, match="the worker process has ended"):
            workers.do(packed(len, "the next client"))
        assert workers.idle == []
        assert worker.process is not None
        assert worker.process.returncode == -9
        assert workers.do(packed(len, "after it")) == 8
    finally:
        workers.close()


def _write_ahead() -> str:
    """Answer this job at once, so that the answer of the worker itself is left for the next one."""
    frame = sys._getframe()
    while "job" not in frame.f_locals:
        assert frame.f_back is not None
        frame = frame.f_back
    number: int = frame.f_locals["job"][0]
    processes.send(sys.stdout.buffer, number, b'="mine"')
    return "of the next client"


def test_what_clients_send_goes_to_workers_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pickling eight megabytes of JSON objects would stop the event loop for a second."""
    jobs: list[bytes] = []

    async def run(self: Workers, job: bytes, *args: Any) -> Any:
        jobs.append(job)
        raise ValueError

    monkeypatch.setattr(Workers, "run", run)
    many = [{"type": "function", "function": {"name": f"f{i}", "parameters": {"type": "object"}}} for i in range(1000)]
    with running([scripted("x")]) as gateway:
        body = {"text": "x", "format": "hermes", "tools": many}
        assert httpx.post(f"{gateway.url}/parse", json=body, timeout=LONG).status_code == 400
        body = {"messages": [{"role": "user", "content": "x"}], "tools": many, "tool_choice": "required"}
        httpx.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=LONG)
    assert len(jobs) == 2
    for job in jobs:
        parts = [arg for _, arg, _ in pickletools.genops(job) if isinstance(arg, bytes)]
        assert [b'"f999"' in part for part in parts] == [True]


def test_a_worker_that_has_died_does_no_further_job() -> None:
    """The system ends processes for want of memory."""
    workers = Workers()
    try:
        assert workers.do(packed(len, "abc")) == 3
        [worker] = workers.idle
        assert worker.process is not None
        worker.process.kill()
        worker.process.wait()
        assert workers.do(packed(len, "abcd")) == 4
        assert worker not in workers.idle
    finally:
        workers.close()


def test_a_worker_that_was_ended_after_its_answer_does_no_further_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client has left at the same moment."""
    workers, ask = Workers(), Worker.ask

    def left(self: Worker, job: bytes) -> bytes:
        answer = ask(self, job)
        self.kill()
        return answer

    try:
        with monkeypatch.context() as patch:
            patch.setattr(Worker, "ask", left)
            assert workers.do(packed(len, "abc")) == 3
        assert workers.idle == []
        assert workers.do(packed(len, "abcd")) == 4
    finally:
        workers.close()


def test_killing_a_worker_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop does it. The thread that asks waits until a large process has ended."""
    worker = Worker("import time; time.sleep(3600)")
    waited: list[str] = []
    ended: list[str] = []

    def ask() -> None:
        try:
            worker.ask(b"")
        except WorkerEnded as error:
            ended.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    assert soon(lambda: worker.process is not None)
    assert worker.process is not None
    wait = worker.process.wait
    monkeypatch.setattr(worker.process, "wait", lambda: (waited.append(threading.current_thread().name), wait()))
    worker.kill()
    thread.join(LONG)
    assert ended == ["the worker process has ended"]
    assert waited == [thread.name]


def rendered(messages: list[dict[str, Any]], template: ChatTemplate = TEMPLATE, **arguments: Any) -> str:
    async def act() -> str:
        return await in_thread(render, template, messages, **arguments)

    return asyncio.run(act())


def test_a_process_renders_what_the_template_would() -> None:
    messages = [{"role": "user", "content": LARGE}, {"role": "user", "content": "é\N{GRINNING FACE}"}]
    arguments: dict[str, Any] = {"tools": [{"type": "function", "function": {"name": "f"}}], "thinking": True}
    wanted = TEMPLATE.render(messages, **arguments)
    assert wanted.startswith("<s>xxx")
    assert rendered(messages, **arguments) == wanted
    [worker] = rendering._WORKERS.idle
    assert rendered(messages, **arguments) == wanted
    assert rendering._WORKERS.idle == [worker]


def test_small_prompts_need_no_process() -> None:
    assert rendered([{"role": "user", "content": "x"}]) == "<s>xnull"
    timed = ChatTemplate("{{ messages[0].content }}", now=lambda: 0)  # cannot be sent
    assert rendered([{"role": "user", "content": LARGE}], timed) == LARGE
    assert rendering._WORKERS.idle == []


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("{{ raise_exception('no') }}", TemplateError),
        ("{% for i in range(99999) %}{{ messages[0].content }}{% endfor %}", TemplateLimitError),
    ],
)
def test_errors_of_templates_come_back(source: str, kind: type[TemplateError]) -> None:
    messages = [{"role": "user", "content": LARGE}]
    template = ChatTemplate(source, name="wrong")
    with pytest.raises(TemplateError) as wanted:
        template.render(messages)
    with pytest.raises(TemplateError) as caught:
        rendered(messages, template)
    assert str(caught.value) == str(wanted.value)
    assert type(caught.value) is type(wanted.value)
    assert isinstance(caught.value, kind)
    assert len(rendering._WORKERS.idle) == 1


def test_a_client_that_leaves_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering._WORKERS, "program", "import time; time.sleep(3600)")
    workers: list[Worker] = []
    ask = Worker.ask

    def noted(self: Worker, job: bytes) -> bytes:
        workers.append(self)
        return ask(self, job)

    monkeypatch.setattr(Worker, "ask", noted)

    async def act() -> None:
        task = asyncio.create_task(in_thread(render, TEMPLATE, [{"role": "user", "content": LARGE}]))
        while not (workers and workers[0].process):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(act())
    [worker] = workers
    assert worker.process is not None
    until = time.monotonic() + LONG
    while worker.process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    assert worker.process.poll() is not None
    assert rendering._WORKERS.idle == []


def test_a_very_large_request_is_rendered_in_a_process() -> None:
    with running([scripted("Hello.")]) as gateway:
        body = {"messages": [{"role": "user", "content": LARGE}]}
        answer = httpx.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=LONG)
        assert answer.json()["choices"][0]["message"]["content"] == "Hello."
        [job] = gateway.app.manager.get("scripted").engine.jobs  # type: ignore[attr-defined]
        assert job.prompt == f"<|im_start|>user\n{LARGE}<|im_end|>\n<|im_start|>assistant\n"
        assert len(rendering._WORKERS.idle) == 1
