"""The tokenizer: byte-level BPE in which a value has the same tokens wherever it occurs.

A model this small copies by finding the last place where a token occurred, and writing the token that followed it.
This works if a value has the same tokens in the question, in the reasoning and in the JSON. So:

* No letter is ever merged with a space: ``" Oslo"`` is a space and ``Oslo``, as after a quote.
* Every digit is a token (llama.cpp's pre-tokenizer ``smollm``, which this is made for, splits them).
* Punctuation is merged only into the pieces of JSON listed here, which begin and end outside of values.

Run as a program, it learns the merges of letters from generated conversations and writes ``tokenizer.json``.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
from collections import Counter
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKUP = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tools>", "</tools>"]
# Ġ is the space. Each merge joins two tokens that exist: letters of the alphabet, or results of a line above.
JSON = [
    ('"', ":"), ('"', ","), ("Ġ", '"'), ("{", '"'), ("Ġ", '{"'), ("[", '"'), ("Ġ", '["'), ('"', "}"),
    ('"}', "}"), ('"}}', "}"), ('"', "]"), ('"]', "}"), ("}", "}"), ("}}", "}"), ("}}", ","), ("}", ","),
    ("Ġ", "{"), ("Ġ", "["), ("]", "}"), ("]}", "}"), ("]", ","), ('"]', ","), ('"}', ","), ('"}}', ","),
]  # fmt: skip
SIZE = 1024


def alphabet() -> list[str]:
    """Return the characters that represent bytes, in a fixed order."""
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def assemble(merges: list[tuple[str, str]]) -> Tokenizer:
    """Return the tokenizer of these merges."""
    vocabulary: dict[str, int] = {}
    for token in [*CONTROL, *MARKUP, *alphabet(), *("".join(m) for m in merges)]:
        vocabulary.setdefault(token, len(vocabulary))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    # The pre-tokenizer that llama.cpp calls "smollm": digits first, then GPT-2's words.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r"\p{N}"), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in CONTROL])
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=False) for t in MARKUP])
    return tokenizer


def train(texts: list[str], size: int = SIZE) -> Tokenizer:
    """Return a tokenizer that merges the most frequent pairs of letters. Frequent words get less weight, so that rare
    ones count.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(re.findall(r"[A-Za-z]+", text))
    words = {w: [*w] for w in counts}
    weight = {w: c**0.75 for w, c in counts.items()}
    merges = list(JSON)
    while len(CONTROL) + len(MARKUP) + 256 + len(merges) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in words.items():
            for pair in itertools.pairwise(parts):
                pairs[pair] += weight[word]  # type: ignore[assignment]
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        for word, parts in words.items():
            if len(parts) < 2:
                continue
            merged, i = [], 0
            while i < len(parts):
                if i + 1 < len(parts) and (parts[i], parts[i + 1]) == best:
                    merged.append(parts[i] + parts[i + 1])
                    i += 2
                else:
                    merged.append(parts[i])
                    i += 1
            words[word] = merged
    return assemble(merges)


def main() -> None:
    from chat import render
    from conversations import Writer

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--conversations", type=int, default=4000)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    texts = [render(Writer(rng).conversation()) for _ in range(options.conversations)]
    tokenizer = train(texts)
    tokenizer.save(str(options.out))
    lengths = sorted(len(tokenizer.encode(t).ids) for t in texts[:1000])
    print(
        f"{tokenizer.get_vocab_size()} tokens; conversations of {lengths[500]} (median), {lengths[950]} (95 %) tokens"
    )


if __name__ == "__main__":
    main()
