"""Images: in the real llama.cpp with a projector, in vLLM, and refused by engines that see none."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import anthropic
import httpx
import ollama
import openai
import pytest

from untemplate import OutputParser
from untemplate.templates import ChatTemplate
from untemplate_gateway.engines.base import Takes
from untemplate_gateway.engines.llamacpp import LlamaCppEngine
from untemplate_gateway.images import taken_out
from untemplate_gateway.manager.model import Model
from untemplate_gateway.settings import LlamaCpp

from .scripted import scripted
from .server import LONG, Running, running
from .tiny_gguf import ENDLESS, tiny_gguf
from .tiny_mmproj import TOKENS, png, tiny_mmproj

IMAGE = base64.b64encode(png()).decode()
URL = f"data:image/png;base64,{IMAGE}"
PART = {"type": "image_url", "image_url": {"url": URL}}


def asked(*parts: Any) -> list[Any]:
    return [{"role": "user", "content": [{"type": "text", "text": "Look."}, *parts]}]


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("seeing")
    engine = LlamaCppEngine(tiny_gguf(folder), LlamaCpp(n_ctx=512, mmproj=str(tiny_mmproj(folder))))

    async def load() -> Model:
        await engine.start()
        parser = OutputParser.named("hermes", reasoning="qwen3", tokenizer=engine.vocabulary())
        return Model(name="eyes", engine=engine, parser=parser, template=engine.template(), context_length=512)

    with running(load=load) as gateway:
        yield gateway


class TestLlamaCpp:
    def test_each_api(self, seeing: Running) -> None:
        """The prompt has more tokens with an image than without one, and all APIs agree on their number."""
        with (
            openai.OpenAI(base_url=f"{seeing.url}/v1", api_key="none", max_retries=0, timeout=LONG) as chat,
            anthropic.Anthropic(base_url=seeing.url, api_key="none", max_retries=0, timeout=LONG) as claude,
            ollama.Client(host=seeing.url, timeout=LONG) as llama,
        ):

            def tokens(*parts: Any) -> int:
                found = chat.chat.completions.create(
                    model="eyes", messages=asked(*parts), max_tokens=4, logit_bias=ENDLESS
                )
                assert found.usage is not None
                assert found.usage.completion_tokens == 4
                return found.usage.prompt_tokens

            plain, one, two = tokens(), tokens(PART), tokens(PART, PART)
            assert two - one == one - plain > TOKENS
            source: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}
            message = claude.messages.create(model="eyes", messages=asked(source), max_tokens=4)
            assert message.usage.input_tokens + (message.usage.cache_read_input_tokens or 0) == one
            response = chat.responses.create(
                model="eyes", max_output_tokens=4,
                input=[{"role": "user", "content": [
                    {"type": "input_text", "text": "Look."},
                    {"type": "input_image", "image_url": URL, "detail": "auto"},
                ]}],
            )  # fmt: skip
            assert response.usage is not None
            assert response.usage.input_tokens == one
            told = llama.chat(
                "eyes", [{"role": "user", "content": "Look.", "images": [IMAGE]}], options={"num_predict": 4}
            )
            assert told.prompt_eval_count == one

    @pytest.mark.parametrize(
        ("part", "status", "problem"),
        [
            ({"type": "image_url", "image_url": {"url": "http://169.254.169.254/x.png"}}, 400,
             "messages[0].content[1].image_url: must be a data URL of an image in base64: the gateway fetches nothing"),
            ({"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}, 400,
             "messages[0].content[1].image_url: must be a data URL of an image in base64: the gateway fetches nothing"),
            ({"type": "input_audio", "input_audio": {}}, 400,
             "messages[0].content[1]: parts of type 'input_audio' need an engine that renders messages itself"),
        ],
    )  # fmt: skip
    def test_what_is_refused(self, seeing: Running, part: Any, status: int, problem: str) -> None:
        found = httpx.post(f"{seeing.url}/v1/chat/completions", json={"messages": asked(part)}, timeout=LONG)
        assert (found.status_code, found.json()["error"]["message"]) == (status, problem)

    def test_a_picture_that_is_none_is_refused(self, seeing: Running) -> None:
        part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        found = httpx.post(f"{seeing.url}/v1/chat/completions", json={"messages": asked(part)}, timeout=LONG)
        assert found.status_code == 400

    def test_text_that_spells_the_marker_is_refused(self, seeing: Running) -> None:
        marker = seeing.app.manager.get().engine.takes.images
        messages = [{"role": "user", "content": f"See {marker}"}]
        found = httpx.post(f"{seeing.url}/v1/chat/completions", json={"messages": messages}, timeout=LONG)
        problem = f"messages: contain {marker!r}, which stands for an image"
        assert (found.status_code, found.json()["error"]["message"]) == (400, problem)


def test_an_engine_without_images_refuses_them() -> None:
    with running([scripted("x")]) as gateway:
        for part in (PART, {"type": "image"}):
            found = httpx.post(f"{gateway.url}/v1/chat/completions", json={"messages": asked(part)}, timeout=LONG)
            kind = part["type"]
            problem = f"messages[0].content[1]: parts of type {kind!r} need an engine that renders messages itself"
            assert (found.status_code, found.json()["error"]["message"]) == (400, problem)


def test_an_engine_gets_the_images_next_to_the_prompt() -> None:
    model = scripted("x", takes=Takes(images="<image>"))
    with running([model]) as gateway:
        found = httpx.post(f"{gateway.url}/v1/chat/completions", json={"messages": asked(PART)}, timeout=LONG)
    assert found.status_code == 200
    [job] = model.engine.jobs  # type: ignore[attr-defined]
    assert job.prompt == "<|im_start|>user\nLook.\n<image><|im_end|>\n<|im_start|>assistant\n"
    assert job.images == (png(),)


def test_a_template_that_writes_the_place_gets_parts() -> None:
    changed, images = taken_out(asked(PART, "more"), "")
    assert changed[0]["content"] == [{"type": "text", "text": "Look."}, {"type": "image"}, "more"]
    assert images == [png()]


PARTS = "{% for p in m.content %}{% if p.type == 'image' %}<image>{% else %}{{ p.text }}{% endif %}{% endfor %}"
ONE = "{% if m.content is string %}{{ m.content }}{% else %}" + PARTS + "{% endif %}"


@pytest.mark.parametrize("content", [PARTS, ONE])
def test_the_template_writes_the_place_of_an_image(content: str) -> None:
    """Most templates of models that see take content as text, too."""
    model = replace(
        scripted("x", takes=Takes(images="")),
        template=ChatTemplate("{% for m in messages %}" + content + ";{% endfor %}"),
    )
    messages = [{"role": "system", "content": "Hi."}, *asked(PART, {"type": "text", "text": "Now."})]
    with running([model]) as gateway:
        found = httpx.post(f"{gateway.url}/v1/chat/completions", json={"messages": messages}, timeout=LONG)
    assert (found.status_code, found.json().get("error")) == (200, None)
    [job] = model.engine.jobs  # type: ignore[attr-defined]
    assert (job.prompt, job.images) == ("Hi.;Look.<image>Now.;", (png(),))


@pytest.mark.parametrize("content", ["{{ m.content }}", "{% for p in m.content %}{{ p.text }}{% endfor %}"])
def test_a_template_that_knows_no_images_refuses_them(content: str) -> None:
    model = replace(
        scripted("x", takes=Takes(images="")),
        template=ChatTemplate("{% for m in messages %}" + content + ";{% endfor %}"),
    )
    with running([model]) as gateway:
        found = httpx.post(f"{gateway.url}/v1/chat/completions", json={"messages": asked(PART)}, timeout=LONG)
    assert (found.status_code, found.json()["error"]["message"]) == (
        400, "messages[0].content[1]: parts of type 'image' need an engine that renders messages itself",
    )  # fmt: skip
