"""Images in the gateway's vLLM engine: they reach a real vLLM, with a tiny BLIP-2 of random weights."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("vllm")

from gateway_tests.server import LONG, Running, running, soon
from gateway_tests.tiny_mmproj import png
from untemplate_gateway.manager.loading import load_models
from untemplate_gateway.manager.model import Model
from untemplate_gateway.settings import Settings, Vllm

SPECIAL = ("<|im_start|>", "<|im_end|>", "<image>")
IMAGE_TOKENS = 4
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{% if p.type == 'image' %}<image>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
URL = "data:image/png;base64," + base64.b64encode(png()).decode()


def write_blip(folder: Path) -> None:
    """Write the configuration, tokenizer and processor of a model that sees. It needs no weights (``dummy``)."""
    import numpy as np
    import transformers
    from safetensors.numpy import save_file
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytes_only = Tokenizer(models.BPE(vocab={text: i for i, text in enumerate(alphabet)}, merges=[]))
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytes_only.decoder = decoders.ByteLevel()
    bytes_only.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bytes_only, eos_token="<|im_end|>", pad_token="<|im_end|>", model_max_length=512
    )
    size = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1}
    text = {"hidden_size": 64, "ffn_dim": 64, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 320}
    config = transformers.Blip2Config(
        vision_config={**size, "image_size": 28, "patch_size": 14},
        qformer_config={**size, "vocab_size": 320, "encoder_hidden_size": 64},
        text_config={"model_type": "opt", **text, "max_position_embeddings": 512, "word_embed_proj_dim": 64},
        num_query_tokens=IMAGE_TOKENS,
        image_token_index=bytes_only.token_to_id("<image>"),
    )
    config.architectures = ["Blip2ForConditionalGeneration"]
    config.save_pretrained(folder)
    pictures = transformers.BlipImageProcessor(size={"height": 28, "width": 28})
    transformers.Blip2Processor(pictures, tokenizer, num_query_tokens=IMAGE_TOKENS).save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    save_file({"unused": np.zeros(1, np.float32)}, str(folder / "model.safetensors"), metadata={"format": "pt"})


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("eyes")
    write_blip(folder)
    os.environ |= {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    extra = {"load_format": "dummy", "max_num_seqs": 4, "kv_cache_memory_bytes": 50_000_000}
    vllm = Vllm(dtype="float32", max_model_len=512, enforce_eager=True, extra=extra)
    settings = Settings(
        model=str(folder), engine="vllm", name="eyes", enforce_parser="passthrough", preflight="off", vllm=vllm
    )

    async def load() -> Model:
        [model] = await load_models(settings, print)
        return model

    with running(load=load, patience=600) as gateway:
        assert soon(lambda: bool(gateway.ps()))
        yield gateway


def usage(gateway: Running, path: str, **body: Any) -> dict[str, Any]:
    asked = {"model": "eyes", "max_tokens": 4, **body}
    found = httpx.post(gateway.url + path, json=asked, timeout=LONG)
    assert found.status_code == 200, found.text
    return json.loads(found.text)["usage"]


def test_an_image_becomes_its_tokens(gateway: Running) -> None:
    text = {"type": "text", "text": "Look."}
    blind = usage(gateway, "/v1/chat/completions", messages=[{"role": "user", "content": [text]}])
    image = {"type": "image_url", "image_url": {"url": URL}}
    seen = usage(gateway, "/v1/chat/completions", messages=[{"role": "user", "content": [text, image]}])
    assert seen["prompt_tokens"] - blind["prompt_tokens"] >= IMAGE_TOKENS
    assert seen["completion_tokens"] == 4
    source = {"type": "base64", "media_type": "image/png", "data": URL.partition(",")[2]}
    parts = [text, {"type": "image", "source": source}]
    seen = usage(gateway, "/v1/messages", messages=[{"role": "user", "content": parts}])
    assert seen["input_tokens"] - blind["prompt_tokens"] >= IMAGE_TOKENS


def test_more_images_than_the_model_takes_are_refused(gateway: Running) -> None:
    image = {"type": "image_url", "image_url": {"url": URL}}
    asked = {"model": "eyes", "messages": [{"role": "user", "content": [image, image]}]}
    found = httpx.post(gateway.url + "/v1/chat/completions", json=asked, timeout=LONG)
    assert (found.status_code, found.json()["error"]["message"][:24]) == (400, "vLLM: At most 1 image(s)")


def test_what_is_no_image_is_refused(gateway: Running) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    asked = {"model": "eyes", "messages": [{"role": "user", "content": [image]}]}
    found = httpx.post(gateway.url + "/v1/chat/completions", json=asked, timeout=LONG)
    assert (found.status_code, found.json()["error"]["message"]) == (400, "messages: an image cannot be read")


def test_a_vllm_that_dies_is_started_again(gateway: Running) -> None:
    import psutil

    engine = gateway.app.manager.get("eyes").engine
    for process in psutil.Process().children(recursive=True):
        if process.name().startswith("VLLM"):
            process.kill()
    assert soon(lambda: engine.ended == "vLLM has crashed")
    image = {"type": "image_url", "image_url": {"url": URL}}
    assert usage(gateway, "/v1/chat/completions", messages=[{"role": "user", "content": [image]}])["completion_tokens"]
