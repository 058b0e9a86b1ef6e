"""Export a checkpoint as a GGUF file, and check that llama.cpp computes the same as torch.

* The file relies on no defaults of llama.cpp: it contains token types, the pre-tokenizer, both end tokens and the chat
  template.
* ``--check`` compares token ids and greedy outputs of both on generated conversations.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import gguf
import numpy as np
import torch
from chat import prompt, render
from conversations import Side, Writer
from model import Llama, Shape
from tokenizers import Tokenizer
from vocabulary import CONTROL, MARKUP

TEMPLATE = Path(__file__).resolve().parent.parent / "src" / "untemplate_demo" / "chat_template.jinja"
END = "<|im_end|>"


def load(path: Path) -> Llama:
    """Return the model of a checkpoint."""
    state = torch.load(path, weights_only=True)
    model = Llama(Shape(**state["shape"]))
    model.load_state_dict(state["model"])
    return model.eval()


def neighbours(weight: np.ndarray, heads: int) -> np.ndarray:
    """Return the rows of a projection in llama.cpp's order, in which each rotated pair is adjacent."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write(model: Llama, tokenizer: Tokenizer, path: Path, kind: str) -> None:
    """Write the GGUF file; ``kind`` is "F16" or "Q8_0"."""
    shape = model.shape
    quantized = gguf.GGMLQuantizationType[kind]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("untemplate demo")
    writer.add_description("A demonstration model with three million parameters for untemplate. It knows nothing.")
    writer.add_license("apache-2.0")
    writer.add_size_label("3M")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16 if kind == "F16" else gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_rope_freq_base(shape.rope_base)

    described = json.loads(tokenizer.to_str())["model"]
    tokens = [token for token, _ in sorted(described["vocab"].items(), key=lambda item: item[1])]
    kinds = {**dict.fromkeys(CONTROL, gguf.TokenType.CONTROL), **dict.fromkeys(MARKUP, gguf.TokenType.USER_DEFINED)}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([kinds.get(token, gguf.TokenType.NORMAL) for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in described["merges"]])
    writer.add_bos_token_id(tokens.index("<|im_start|>"))
    writer.add_eos_token_id(tokens.index(END))
    writer.add_eot_token_id(tokens.index(END))
    writer.add_pad_token_id(tokens.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE.read_text())

    def add(name: str, tensor: np.ndarray) -> None:
        data = np.ascontiguousarray(tensor, dtype=np.float32)
        if data.ndim == 2:
            writer.add_tensor(name, gguf.quants.quantize(data, quantized), raw_dtype=quantized)
        else:
            writer.add_tensor(name, data)

    weights = {name: parameter.detach().float().numpy() for name, parameter in model.named_parameters()}
    add("token_embd.weight", weights["embedding.weight"])
    add("output_norm.weight", weights["norm.weight"])
    for i in range(shape.layers):
        ours, theirs = f"blocks.{i}.", f"blk.{i}."
        q, k, v = np.split(weights[ours + "qkv.weight"], 3)
        gate, up = np.split(weights[ours + "gate_up.weight"], 2)
        add(theirs + "attn_norm.weight", weights[ours + "attention_norm.weight"])
        add(theirs + "attn_q.weight", neighbours(q, shape.heads))
        add(theirs + "attn_k.weight", neighbours(k, shape.heads))
        add(theirs + "attn_v.weight", v)
        add(theirs + "attn_output.weight", weights[ours + "out.weight"])
        add(theirs + "ffn_norm.weight", weights[ours + "feed_forward_norm.weight"])
        add(theirs + "ffn_gate.weight", gate)
        add(theirs + "ffn_up.weight", up)
        add(theirs + "ffn_down.weight", weights[ours + "down.weight"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@torch.no_grad()
def greedy(model: Llama, ids: list[int], end: int, most: int) -> list[int]:
    """Return the tokens that torch generates greedily after a prompt."""
    out: list[int] = []
    while len(out) < most:
        token = int(model(torch.tensor([ids + out]))[0, -1].argmax())
        if token == end:
            break
        out.append(token)
    return out


def check(model: Llama, tokenizer: Tokenizer, path: Path, count: int) -> None:
    """Compare the token ids and greedy outputs of llama.cpp and torch."""
    from engine import Engine

    engine = Engine(path)
    end = tokenizer.token_to_id(END)
    same_tokens = same_texts = 0
    for n in range(count):
        conversation = Writer(random.Random(f"check:{n}"), Side(values=True, tools=n % 2 == 0)).conversation()
        for text in (render(conversation), f"Zürich  is\n\n\n 12.5°\t'm {n} 東京 \U0001f600 don't  x"):
            ours, theirs = tokenizer.encode(text, add_special_tokens=False).ids, engine.tokenize(text)
            if ours != theirs:
                raise SystemExit(f"tokens differ in {text!r}:\n{ours}\n{theirs}")
        same_tokens += 1
        asked = prompt(conversation)
        ids = greedy(model, tokenizer.encode(asked, add_special_tokens=False).ids, end, 120)
        expected = tokenizer.decode(ids, skip_special_tokens=False)
        written = engine.complete(asked, n_predict=120, temperature=0)["content"]
        same_texts += written == expected
        if written != expected:
            print(f"differs:\n  torch     {expected!r}\n  llama.cpp {written!r}")
    print(f"{same_tokens} of {count} tokenized alike, {same_texts} of {count} written alike")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--type", choices=["F16", "Q8_0"], default="F16")
    parser.add_argument("--check", type=int, default=0, metavar="COUNT")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    model = load(options.checkpoint)
    write(model, tokenizer, options.out, options.type)
    print(f"{options.out.name}: {options.out.stat().st_size} bytes")
    if options.check:
        check(model, tokenizer, options.out, options.check)


if __name__ == "__main__":
    main()
