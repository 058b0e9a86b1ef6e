"""The inspector in a real browser: each view from end to end. `make test-inspector` runs it.

It needs Chromium and the packages of ``requirements.txt`` here. With ``UNTEMPLATE_PICTURES=1`` the pictures of the
documentation are taken again.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import string
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api")

import jsonschema_rs  # noqa: E402
from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from canitoolcall.fixtures import Fixture, spec_dir  # noqa: E402
from PIL import Image  # noqa: E402

from tests.inspector.outputs import CASES, HERMES, HOSTILE, events, length_at  # noqa: E402
from tests.inspector.test_views import CALL, TEMPLATE  # noqa: E402
from untemplate import OutputParser  # noqa: E402
from untemplate._internal.inspector import Case, Inspector, alone, one_file  # noqa: E402
from untemplate._internal.inspector.server import LocalModels, make_server  # noqa: E402
from untemplate.testing import check  # noqa: E402

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
CHROMIUM = os.environ.get("UNTEMPLATE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
CORPUS = jsonschema_rs.validator_for(
    json.loads((Path(__file__).parents[2] / "vectors/cases.schema.json").read_text("utf-8"))
)
LONGEST_TASK = 2.0
"""Processor time of the longest task of the page with an output of 100,000 characters, as a multiple of a fixed loop
(`YARDSTICK`) in the same run: other work on the machine slows both. Measured: 0.5 to 1.7, and 45 ms for the loop. So
the page reacts within 200 ms on a processor that is half as fast."""
YARDSTICK = "() => { let sum = 0; for (let i = 0; i < 1e7; i += 1) sum = (sum * 31 + i) % 1000003; return sum }"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.fail("no Chromium: apt-get install chromium, or set UNTEMPLATE_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = make_server(0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with server:
        yield f"http://127.0.0.1:{server.server_port}/inspect/"
        server.shutdown()
    thread.join()


class Watched:
    """A page, and everything that it reports and requests."""

    def __init__(self, page: Any, origin: str) -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("console", lambda message: self._note(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: self.problems.append(f"dialog {dialog.message}") or dialog.dismiss())
        page.on("request", lambda r: r.url.startswith(origin) or self.problems.append(f"request {r.url}"))

    def _note(self, text: str) -> None:
        # A refused request is shown on the page.
        if not text.startswith("Failed to load resource: the server responded with a status of 400"):
            self.problems.append(text)


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(30_000)
    found = context.new_page()
    watched = Watched(found, address)
    found.goto(address)
    found.wait_for_selector("#formats option", state="attached")
    yield found
    context.close()
    assert watched.problems == []


def fill(page: Any, case: Case) -> None:
    page.evaluate("held => untemplate.page.fill(held)", json.loads(json.dumps(_plain(case))))


def _plain(case: Case) -> dict[str, Any]:
    found = {name: getattr(case, name) for name in case.__struct_fields__}
    return {**found, "tokens": [list(token) for token in case.tokens]}


def parse(page: Any, case: Case) -> dict[str, Any]:
    """Parse a case through the form, and return the view that the page has."""
    fill(page, case)
    page.click("#parse")
    page.wait_for_selector("#status:empty", state="attached")
    assert page.inner_text("#problem") == ""
    return dict(page.evaluate("untemplate.page.output.view"))


def text_of(page: Any, selector: str) -> str:
    """Return the text that a view shows, without the marks of newlines."""
    rows = page.eval_on_selector_all(f"{selector} .row", "rows => rows.map(row => row.textContent)")
    return "".join(rows).replace("↵", "")


def shown(page: Any, selector: str) -> list[list[str]]:
    """Return the pieces of a text view as (classes, text)."""
    script = "spans => spans.map(span => [span.className, span.textContent])"
    return list(page.eval_on_selector_all(f"{selector} .row > span", script))


# -- Output -------------------------------------------------------------------------------------------------------


def test_an_output(page: Any):
    parse(page, Case(text=HERMES + "</tool_call>", format="hermes"))
    assert shown(page, "#raw") == [
        ["content", "Sure."],
        ["markup", " "],
        ["markup special", "<tool_call>"],
        ["markup", "↵"],
        ["markup", '{"name": "'],
        ["name", "f"],
        ["markup", '", "arguments": '],
        ["arguments", '{"x": "a b"}'],
        ["markup", "}↵"],
        ["markup special", "</tool_call>"],
        ["dropped special noted", "</tool_call>"],
    ]
    message = page.evaluate("untemplate.page.output.view.message")
    assert text_of(page, "#message") == json.dumps(message, indent=2).replace("\n", "")
    summary = "Format hermes: content, 1 call; finish_reason tool_calls; 1 diagnostic."
    assert page.inner_text("#summary") == summary
    assert page.inner_text("#calls tr:nth-child(2)").split("\t") == ["1", "f", "ok", ""]
    note = (
        "stray_close at \nline 3, column 13\n: a closing marker with nothing to close was dropped </tool_call>"
        "Nothing is lost: the model wrote a close too many."
    )
    assert page.inner_text("#diagnostics li").replace("\n", "") == note.replace("\n", "")


def test_text_and_message_are_joined(page: Any):
    parse(page, Case(text=HERMES, format="hermes"))
    page.hover("#raw span.arguments")
    assert shown_on(page, "#message") == ['"{\\"x\\": \\"a b\\"}"']
    assert page.inner_text("#current") == 'arguments of call 1, characters 45 to 57: {"x": "a b"}'
    page.hover("#message span.content")
    assert shown_on(page, "#raw") == ["Sure."]
    page.mouse.move(0, 0)
    page.hover("h1")
    assert shown_on(page, "#raw") == []


def shown_on(page: Any, selector: str) -> list[str]:
    return [text for classes, text in shown(page, selector) if "on" in classes.split()]


def test_the_keyboard_reaches_every_region(page: Any):
    view = parse(page, Case(text=HERMES, format="hermes"))
    page.focus("#raw")
    seen = []
    for _ in range(20):
        page.keyboard.press("ArrowRight")
        seen.append(page.inner_text("#current"))
    seen = list(dict.fromkeys(seen))
    assert seen[0] == "content, characters 0 to 5: Sure."
    assert seen[2] == "markup, a special token, characters 6 to 17: <tool_call>"
    assert len(seen) == page.evaluate("untemplate.page.output.marks.length")
    assert seen[-1].startswith("markup, a special token")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#current") == seen[-2]
    assert len(view["spans"]) < len(seen)


def test_a_diagnostic_leads_to_its_place(page: Any):
    parse(page, Case(text="line\n" * 300 + CALL + "\n</tool_call>\n" + "line\n" * 300, format="hermes"))
    assert "</tool_call>" not in text_of(page, "#raw")
    page.click("#diagnostics button")
    assert "</tool_call>" in text_of(page, "#raw")
    assert "dropped" in page.inner_text("#current")


def test_regions_as_a_list(page: Any):
    parse(page, Case(text=CALL * 60, format="hermes"))
    page.click("#regions-box summary")
    page.wait_for_selector("#regions li")
    assert page.locator("#regions li").count() == 100
    page.click("#more-regions")
    assert page.locator("#regions li").count() == 200
    assert page.inner_text("#regions li:nth-child(3)") == "name of call 1: f"


@pytest.mark.parametrize("case", CASES, ids=[f"{case.format}-{i}" for i, case in enumerate(CASES)])
def test_every_view_of_every_case(page: Any, case: Case):
    """What the page shows is what the library says, in each step."""
    view = parse(page, case)
    wanted = Inspector(LocalModels()).answer("parse", _plain(case))
    assert view == wanted
    visible = page.evaluate("text => untemplate.visible(text).replaceAll('␊', '')", view["text"])
    assert text_of(page, "#raw") == visible
    page.click("#tab-time")
    steps = page.evaluate("untemplate.page.time.steps")
    for step in range(0, steps + 1, max(steps // 12, 1)):
        place = page.evaluate("step => (untemplate.page.time.go(step), untemplate.page.time.placeOf(step))", step)
        found = page.evaluate("place => untemplate.page.time.messageAt(place)", place)
        assert len(found.get("content", "").encode("utf-16-le")) // 2 == length_at(view, 1, place)
        for call, index in zip(found.get("tool_calls", []), range(99), strict=False):
            length = len(call["function"]["arguments"].encode("utf-16-le")) // 2
            assert length == length_at(view, 3 + 2 * index, place)


# -- Hostile output -----------------------------------------------------------------------------------------------


def markup_of(page: Any) -> dict[str, int]:
    """Return the number of elements of kinds that only a model's output would add."""
    tags = ["script", "img", "b", "i", "iframe", "style", "svg"]
    return {tag: n for tag in tags if (n := page.locator(f"body {tag}").count())}


def test_hostile_output_stays_text(page: Any, browser: Any):
    before = markup_of(page)
    parse(page, Case(text=HOSTILE, format="hermes+qwen3"))
    assert "<b onclick=alert(1)>x</b><script>document.title='broken'</script><img src=x" in text_of(page, "#raw")
    assert "�gnp.exe�␇" in text_of(page, "#raw")
    page.click("#raw span.content")
    page.click("#regions-box summary")
    page.click("#tab-time")
    page.click("#every-split")
    page.wait_for_selector("#splits .good")
    page.click("#one-split")
    page.wait_for_selector("#splits table")
    page.fill("#stream", events([{"content": HOSTILE}], "stop"))
    page.click("#compare")
    page.wait_for_selector("#comparison li")
    for name in ("Corpus case", "canitoolcall fixture", "Issue text"):
        page.click("#tab-output")
        page.click(f"#copies button:text-is('{name}')")
        page.click("#copy-close")
    page.wait_for_timeout(200)
    assert page.title() == "untemplate inspector"
    assert markup_of(page) == before


def test_a_hostile_template_stays_text(page: Any):
    before = markup_of(page)
    fill(page, Case(template=TEMPLATE.replace("call>", "img src=x onerror=alert(1)>")))
    page.click("#analyse")
    page.wait_for_selector("#analysis table")
    page.wait_for_timeout(200)
    assert markup_of(page) == before


# -- Time ---------------------------------------------------------------------------------------------------------


def test_the_scrubber(page: Any):
    parse(page, Case(text=HERMES, format="hermes"))
    page.click("#tab-time")
    page.evaluate("untemplate.page.time.go(10)")
    assert shown(page, "#time-raw")[:5] == [
        ["content", "Sure."],
        ["markup held", " "],
        ["markup special held", "<too"],
        ["markup special ahead", "l_call>"],
        ["markup ahead", "↵"],
    ]
    state = page.inner_text("#state").split("\n")
    assert state == [
        "the machine reads", "text", "in state", "content", "held back", "5 characters:  <too",
        "because", "a marker may begin here",
    ]  # fmt: skip
    assert text_of(page, "#time-message") == '{  "role": "assistant",  "content": "Sure."}'
    page.focus("#place")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#place-text") == "11 of 71 characters"
    assert page.get_attribute("#place", "aria-valuetext") == "11 of 71 characters"
    page.click("#next-change")
    assert page.inner_text("#place-text") == "17 of 71 characters"
    page.click("#back")
    assert page.inner_text("#place-text") == "16 of 71 characters"
    page.focus("#place")
    page.keyboard.press("End")
    assert page.inner_text("#place-text") == "the output has ended"


def test_the_scrubber_by_tokens(page: Any):
    case = CASES[-1]
    parse(page, case)
    page.click("#tab-time")
    page.evaluate("untemplate.page.time.go(2)")
    assert page.inner_text("#place-text") == "2 of 5 tokens"
    pieces = [text for classes, text in shown(page, "#time-raw") if "held" in classes]
    assert pieces == ["<tool_call>"]
    page.click("#tab-output")
    tokens = [text for classes, text in shown(page, "#raw") if "token" in classes.split()]
    assert len(tokens) == len(case.tokens) - 1


def test_splits(page: Any):
    parse(page, Case(text=HERMES, format="hermes"))
    page.click("#tab-time")
    page.click("#every-split")
    page.wait_for_selector("#splits .good")
    assert page.inner_text("#splits") == "All 70 cuts give the same message."
    page.evaluate("untemplate.page.time.go(3)")
    page.click("#one-split")
    page.wait_for_selector("#splits table")
    head = "Cut at 3. The message is the same as that of the whole output."
    assert page.inner_text("#splits p") == head
    assert page.inner_text("#splits tr:nth-child(1)") == 'first part\t{"content":"Sur"}'


def test_the_first_wrong_event(page: Any):
    parse(page, Case(text=HERMES, format="hermes"))
    page.click("#tab-time")
    page.fill("#stream", events([{"content": "Sure. "}, {"content": "<tool_call>"}], "stop"))
    page.click("#compare")
    page.wait_for_selector("#comparison li")
    shown = page.inner_text("#comparison li:nth-child(1)").split("\n")
    assert shown == [
        "A tool call was sent as content: the server has the wrong parser, or none: event 2 of 3",
        "where\tcontent",
        "right\t",
        "sent\t <tool_call>",
        "known reports\tvllm#33894, sglang#38297",
    ]
    page.fill("#stream", "nothing")
    page.click("#compare")
    page.wait_for_selector("#problem:not(:empty)")
    assert page.inner_text("#problem") == "line 1: not JSON: JSON is malformed: invalid character (byte 4)"


# -- Templates ----------------------------------------------------------------------------------------------------


def test_a_template(page: Any):
    fill(page, Case(template=TEMPLATE))
    page.click("#analyse")
    page.wait_for_selector("#analysis table")
    assert page.get_attribute("#tab-template", "aria-selected") == "true"
    assert ": certified, score 1, " in page.inner_text("#analysis p")
    rows = page.inner_text("#analysis table").split("\n")
    assert "parallel_calls\tyes\tyes" in rows
    assert "<call>" in text_of(page, "#analysis .text")
    page.click("#analysis summary:text-is('Grammar: gbnf')")
    page.wait_for_selector("#analysis details[open] .row")
    assert "root ::=" in text_of(page, "#analysis details[open]")


def test_a_broken_template(page: Any):
    fill(page, Case(template="{% if %}"))
    page.click("#analyse")
    page.wait_for_selector("#problem:not(:empty)")
    problem = "template: template, line 1: not a template that Jinja can read: "
    assert page.inner_text("#problem").startswith(problem)


# -- Copies and links ---------------------------------------------------------------------------------------------


def copied(page: Any, name: str) -> str:
    page.click("#tab-output")
    page.click(f"#copies button:text-is('{name}')")
    text = page.input_value("#copy-text")
    page.click("#copy-close")
    return str(text)


@pytest.mark.parametrize("case", [case for case in CASES if not case.policy and not case.tokens])
def test_a_copied_corpus_case_passes_every_law(page: Any, case: Case):
    parse(page, case)
    record = json.loads(copied(page, "Corpus case"))
    CORPUS.validate([record])
    assert (record["raw"], record["format"]) == (case.text, case.format)
    context = {name: record[name] for name in ("tools", "prompt", "finish_reason") if name in record}
    parsed = check(record["format"], record["raw"], **context)
    calls = [(call.function.name, call.function.arguments, call.status) for call in parsed.tool_calls]
    assert record["expect"] == {
        "reasoning": parsed.reasoning or "",
        "content": parsed.content or "",
        "tool_calls": [{"name": name, "arguments": text, "status": status} for name, text, status in calls],
        "finish_reason": parsed.finish_reason,
    }


def test_a_copied_fixture_is_one(page: Any):
    schema = json.loads((spec_dir() / "fixture.schema.json").read_text("utf-8"))
    for case in (CASES[0], CASES[1], CASES[-1]):
        parse(page, case)
        record = json.loads(copied(page, "canitoolcall fixture"))
        assert [error.message for error in jsonschema_rs.validator_for(schema).iter_errors(record)] == []
        fixture = Fixture.from_dict(record)
        assert fixture.raw_output == (case.text or "".join(text for _, text in case.tokens))
        assert fixture.expected is not None
        assert [call.name for call in fixture.expected.tool_calls] == ["f"]


def test_the_text_of_an_issue(page: Any):
    parse(page, Case(text="```\nx\n```</tool_call>", format="hermes"))
    text = copied(page, "Issue text")
    assert text.startswith("**Raw output**\n\n````\n```\nx\n```</tool_call>\n````\n\n**Parsed as** `hermes`")


def test_a_link_holds_the_case(page: Any, address: str):
    view = parse(page, CASES[1])
    page.click("#link")
    page.wait_for_selector("#copy-box[open]")
    link = page.input_value("#copy-text")
    assert link.startswith("#z=")  # nobody else can open a loopback address
    assert page.inner_text("#copied").endswith("Put it behind the address of an inspector.")
    page.click("#copy-close")
    page.goto("about:blank")
    page.goto(address + link)
    page.wait_for_selector("#raw .row")
    assert page.evaluate("untemplate.page.output.view") == view
    assert page.input_value("#text") == HOSTILE.replace("\x07", "\x07")


def test_a_link_leads_to_the_site_that_is_known(page: Any):
    page.evaluate("() => { untemplate.page.site = 'https://example' }")
    fill(page, CASES[1])
    page.click("#link")
    page.wait_for_selector("#copy-box[open]")
    assert page.input_value("#copy-text").startswith("https://example/inspector/#z=")


@pytest.mark.parametrize("fragment", ["case=AAAA", "case=e30x", "case=bnVsbA", "z=AAAA", "z=bnVsbA"])
def test_a_broken_link(page: Any, address: str, fragment: str):
    page.evaluate("fragment => { location.hash = fragment }", fragment)
    page.wait_for_selector("#problem:not(:empty)")
    assert page.inner_text("#problem") == "The link is broken: it holds no case."


# -- One file, and the gateway --------------------------------------------------------------------------------------


def test_one_file_needs_no_server(browser: Any, tmp_path: Path):
    parser = OutputParser.named("hermes+qwen3")
    file = tmp_path / "view.html"
    file.write_text(one_file(alone(parser, Case(text=HOSTILE, format="hermes+qwen3"))), "utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    watched = Watched(page, file.as_uri())
    page.goto(file.as_uri())
    page.wait_for_selector("#raw .row")
    assert page.locator("#case, #stream, #tab-template").locator("visible=true").count() == 0
    assert "<script>document.title='broken'</script>" in text_of(page, "#raw")
    page.click("#tab-time")
    assert page.inner_text("#splits") == f"All {len(HOSTILE) - 1} cuts give the same message."
    page.click("#back")
    page.click("#back")
    page.click("#tab-output")
    page.click("#copies button:text-is('Corpus case')")
    page.wait_for_timeout(100)
    assert (page.title(), watched.problems) == ("untemplate inspector", [])
    context.close()


# -- Speed, access, looks -----------------------------------------------------------------------------------------

LONG_OUTPUT = (
    "<think>"
    + "A word and another. " * 2_000
    + "</think>\n"
    + "A line with <b>markup</b>, `code` and 😀.\n" * 700
    + '<tool_call>\n{"name": "f", "arguments": {"code": "'
    + "x = 1; " * 5_000
    + '"}}\n</tool_call>'
)


@pytest.mark.parametrize("size", [0, 4, 1])
def test_a_long_output_stays_responsive(browser: Any, page: Any, size: int):
    """More than 100,000 characters: as text, as tokens of 4 characters, and as tokens of one."""
    assert len(LONG_OUTPUT) > 100_000
    text = LONG_OUTPUT
    tokens = [(i % 50_000, text[i : i + size]) for i in range(0, len(text), size)] if size else []
    case = Case(text="" if tokens else text, tokens=tokens, format="hermes+qwen3")
    page.evaluate("held => { window.held = held }", json.dumps(_plain(case)))
    loops = [measured_loop(browser, page)]
    browser.start_tracing(page=page, categories=["toplevel"])
    page.evaluate("untemplate.page.fill(JSON.parse(window.held))")
    page.click("#parse")
    page.wait_for_selector("#raw .row", timeout=120_000)
    page.wait_for_selector("#status:empty", state="attached", timeout=120_000)
    for top in (10_000, 30_000, 1_000_000, 0):
        page.eval_on_selector("#raw", "(view, top) => { view.scrollTop = top }", top)
        page.wait_for_timeout(50)
    page.hover("#raw span")
    page.focus("#raw")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.click("#regions-box summary")
    page.click("#tab-time")
    page.focus("#place")
    for key in ("Home", "PageUp", "PageUp", "ArrowRight", "ArrowRight", "End", "PageDown"):
        page.keyboard.press(key)
        page.wait_for_timeout(30)
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_timeout(300)
    assert page.locator("#time-raw .row").count() < 100
    copied(page, "Issue text")
    page.click("#link")
    page.wait_for_selector("#copy-box[open], #problem:not(:empty)")
    tasks = longest_tasks(browser.stop_tracing())
    loops.append(measured_loop(browser, page))
    print(f"tokens of {size} characters: the longest tasks took {tasks[:5]} ms of processor time, a loop {loops}")
    assert tasks[0] < LONGEST_TASK * max(loops)


def measured_loop(browser: Any, page: Any) -> float:
    """Return the processor time of `YARDSTICK` in the page, in milliseconds."""
    browser.start_tracing(page=page, categories=["toplevel"])
    page.evaluate(YARDSTICK)
    return longest_tasks(browser.stop_tracing())[0]


def longest_tasks(trace: bytes) -> list[float]:
    """Return the processor time of the longest tasks of the pages, in milliseconds, the longest first."""
    events = json.loads(trace)["traceEvents"]
    names = [event for event in events if event["name"] == "thread_name"]
    pages = {(e["pid"], e["tid"]) for e in names if e["args"]["name"] == "CrRendererMain"}
    spent = [e["tdur"] / 1000 for e in events if (e["pid"], e["tid"]) in pages and "tdur" in e]
    return sorted(spent, reverse=True)[:20]


def test_a_long_copy_is_shown_in_part_and_copied_whole(page: Any):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    parse(page, Case(text="word " * 10_000, format="hermes"))
    page.click("#copies button:text-is('Corpus case')")
    note = page.inner_text("#copied")
    assert note.startswith("The first 20000 of ")
    assert note.endswith(" characters are shown. “Copy” takes all.")
    assert len(page.input_value("#copy-text")) == 20_000
    page.click("#copy-now")
    page.wait_for_selector("#copied:text-is('Copied.')")
    assert json.loads(page.evaluate("navigator.clipboard.readText()"))["raw"] == "word " * 10_000


def test_a_case_may_be_too_long_for_a_link(page: Any):
    letters = random.Random(1).choices(string.ascii_letters + string.digits, k=1_200_000)  # they do not compress well
    fill(page, Case(text="".join(letters), format="hermes"))
    page.click("#link")
    page.wait_for_selector("#problem:not(:empty)")
    taken = "of which browsers take 1000000\\. Copy it as a corpus case\\."
    assert re.fullmatch(rf"The case is too long for a link: \d{{7}} characters, {taken}", page.inner_text("#problem"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_axe_finds_nothing(browser: Any, address: str, scheme: str, width: int):
    """axe-core: names, roles, contrast, keyboard. All of its rules, in every view."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(address)
    found: dict[str, list[str]] = {}

    def look(where: str) -> None:
        for problem in Axe().run(page).response["violations"]:
            found[f"{where}: {problem['id']}"] = [node["html"][:160] for node in problem["nodes"]][:3]
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width, where

    look("form")
    parse(page, Case(text=HOSTILE, format="hermes+qwen3"))
    page.evaluate("document.querySelector('#case details').open = true")
    look("output")
    page.click("#tab-time")
    page.evaluate("untemplate.page.time.go(20)")
    page.click("#every-split")
    page.wait_for_selector("#splits .good")
    page.fill("#stream", events([{"content": "x"}], "stop"))
    page.click("#compare")
    page.wait_for_selector("#comparison li")
    look("time")
    fill(page, Case(template=TEMPLATE))
    page.click("#analyse")
    page.wait_for_selector("#analysis table")
    look("template")
    context.close()
    assert found == {}


def test_the_keyboard_reaches_everything(page: Any):
    parse(page, Case(text=HERMES, format="hermes"))
    page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.slice(0, 20)"))
    for wanted in ("text", "format", "parse", "link", "tab-output", "raw", "message", "Corpus case"):
        assert wanted in reached, wanted
    page.focus("#tab-output")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-time"
    assert page.is_visible("#view-time")


# -- Pictures -----------------------------------------------------------------------------------------------------

SHOWN = (
    "<think>\nThe user wants a forecast. I have a tool for that.\n</think>\n\nLet me look.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>\n</tool_call>'
)


def test_pictures(browser: Any, address: str, tmp_path: Path):
    """The pictures of the documentation can be taken, and with UNTEMPLATE_PICTURES=1 they are replaced."""
    into = PICTURES if os.environ.get("UNTEMPLATE_PICTURES") else tmp_path
    into.mkdir(exist_ok=True)
    context = browser.new_context(viewport={"width": 1000, "height": 640})
    page = context.new_page()
    page.goto(address)
    parse(page, Case(text=SHOWN, format="hermes+qwen3"))
    page.hover("#raw span.arguments")
    _picture(page, "#view-output", into / "inspector-output.png")
    page.click("#tab-time")
    page.evaluate("untemplate.page.time.go(100)")
    _picture(page, "#view-time", into / "inspector-time.png")
    fill(page, Case(template=TEMPLATE))
    page.click("#analyse")
    page.wait_for_selector("#analysis table")
    _picture(page, "#view-template", into / "inspector-template.png")
    context.close()
    phone = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = phone.new_page()
    page.goto(address)
    parse(page, Case(text=SHOWN, format="hermes+qwen3"))
    _picture(page, "#view-output", into / "inspector-phone.png")
    phone.close()
    for name in ("output", "time", "template", "phone"):
        assert (into / f"inspector-{name}.png").stat().st_size < 120_000


def _picture(page: Any, selector: str, file: Path) -> None:
    page.wait_for_timeout(200)
    page.locator(selector).screenshot(path=file)
    with Image.open(file) as image:
        top = image.crop((0, 0, image.width, min(image.height, 620))).convert("P", palette=Image.Palette.ADAPTIVE)
        top.save(file, optimize=True)
