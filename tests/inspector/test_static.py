"""The inspector as static files, in a real browser, with nothing but a file server. `make test-inspector` runs it."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

sync_api = pytest.importorskip("playwright.sync_api")

from axe_playwright_python.sync_playwright import Axe  # noqa: E402

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("UNTEMPLATE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
PICTURES = ROOT / "docs/pictures"
PATIENCE = 180_000
"""Milliseconds: a busy machine starts Python slowly."""
CALL = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
MOST_BYTES = {"library.zip": 1_400_000, "pyodide.asm.wasm": 10_500_000}
MOST_IN_ALL = 16_000_000


class Files(http.server.SimpleHTTPRequestHandler):
    extensions_map: ClassVar[dict[str, str]] = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built page; what it is made of is downloaded once."""
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "site/build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    site = tmp_path_factory.mktemp("site")
    (site / "inspector").mkdir()
    found = module.files(ROOT / "build/inspector")
    for name, content in {**found, "manifest.json": module.manifest(found).encode()}.items():
        (site / "inspector" / name).write_bytes(content)
    return site


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    handler = functools.partial(Files, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/inspector/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.fail("no Chromium: apt-get install chromium, or set UNTEMPLATE_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def context(browser: Any) -> Iterator[Any]:
    found = browser.new_context(viewport={"width": 1200, "height": 900})
    found.set_default_timeout(PATIENCE)
    yield found
    found.close()


@pytest.fixture
def problems() -> list[str]:
    return []


@pytest.fixture
def page(context: Any, address: str, problems: list[str]) -> Iterator[Any]:
    found = context.new_page()
    found.on("console", lambda message: problems.append(message.text))
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.on("request", lambda r: r.url.startswith(address) or problems.append(f"request {r.url}"))
    yield found
    found.close()
    assert problems == []


def opened(page: Any, address: str, fragment: str) -> str:
    page.goto(address + fragment)
    page.wait_for_selector("#summary:not(:empty)")
    page.wait_for_selector("#status:empty", state="attached")
    assert page.inner_text("#problem") == ""
    return str(page.inner_text("#summary"))


def test_an_example_from_a_link(page: Any, address: str):
    found = opened(page, address, "#example=format/hermes")
    assert found == "Format hermes: content, 1 call; finish_reason tool_calls; 0 diagnostics."


def test_it_parses_while_one_types(page: Any, address: str):
    opened(page, address, "#example=format/hermes")
    page.fill("#text", f"Hi.{CALL}</tool_call>")
    page.wait_for_selector("#diagnostics li")
    assert page.inner_text("#diagnostics").startswith("stray_close at line 1, column 63: a closing marker with nothing")
    assert page.get_attribute("#diagnostics a", "href") == "../diagnostics/#stray_close"
    page.fill("#text", "")
    page.wait_for_selector("#views", state="hidden")


def test_a_link_holds_the_case(page: Any, address: str):
    opened(page, address, "#example=format/hermes")
    page.fill("#text", f"Naïve 🎉{CALL}")
    page.click("#link")
    page.wait_for_selector("#copy-box[open]")
    link = page.input_value("#copy-text")
    assert link.startswith(f"{address}#z=")
    assert page.inner_text("#copied").startswith("The link holds the whole output, the tools and the prompt:")
    page.goto("about:blank")
    found = opened(page, link, "")
    assert page.input_value("#text") == f"Naïve 🎉{CALL}"
    assert "content, 1 call" in found


def test_a_template(page: Any, address: str):
    opened(page, address, "#example=format/hermes")
    page.evaluate(
        "text => untemplate.page.fill({ text: '', template: text })",
        "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}<end>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}",
    )
    page.click("#analyse")
    page.wait_for_selector("#analysis table, #analysis h2")
    assert page.inner_text("#problem") == ""


def test_a_request_that_does_not_end_is_ended_with_its_worker(page: Any, address: str):
    opened(page, address, "#example=format/hermes")
    page.evaluate("() => { untemplate.browser.most = 1 }")
    page.fill("#text", "x" * 100_000)
    page.wait_for_selector("#problem:not(:empty)")
    assert page.inner_text("#problem") == "This took longer than 0.001 s, and was ended."
    page.evaluate("() => { untemplate.browser.most = 60000 }")
    page.fill("#text", f"Again.{CALL}")
    page.wait_for_selector("#problem:empty", state="attached")
    page.wait_for_selector("#status:empty", state="attached")
    assert "content, 1 call" in page.inner_text("#summary")


def test_a_long_output(page: Any, address: str):
    opened(page, address, "#example=format/hermes")
    # As a paste does: playwright's own way of filling takes minutes for so many lines.
    page.evaluate(
        "text => { const box = document.getElementById('text'); box.value = text; "
        "box.dispatchEvent(new Event('input', { bubbles: true })) }",
        "A line of text.\n" * 6_000 + CALL,
    )
    page.wait_for_function("() => untemplate.page.output.view.text.length > 90000")
    page.wait_for_selector("#status:empty", state="attached")
    assert "content, 1 call" in page.inner_text("#summary")


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (390, "light"), (390, "dark")])
def test_everybody_can_use_it(browser: Any, address: str, width: int, scheme: str):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    opened(page, address, "#example=diagnostic/stray_close")
    page.click("#examples-box summary")
    page.wait_for_selector("#examples button")
    found = Axe().run(page)
    assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found.response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    if os.environ.get("UNTEMPLATE_PICTURES") and (width, scheme) == (1200, "light"):
        page.click("#examples-box summary")
        page.screenshot(path=PICTURES / "inspector-static.png")
    context.close()


def test_later_visits_need_no_network(context: Any, page: Any, address: str):
    opened(page, address, "#example=format/hermes")
    page.evaluate("() => navigator.serviceWorker.ready.then(() => true)")
    context.set_offline(True)
    try:
        other = context.new_page()
        assert "1 call" in opened(other, address, "#example=format/qwen3_coder")
        other.close()
    finally:
        context.set_offline(False)


def test_sizes(folder: Path):
    files = json.loads((folder / "inspector/manifest.json").read_text("utf-8"))["files"]
    assert {name: size for name, size in MOST_BYTES.items() if files[name]["bytes"] > size} == {}
    assert sum(one["bytes"] for one in files.values()) <= MOST_IN_ALL
