"""A model's vocabulary, as the parser needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from untemplate.templates._gguf_file import Gguf, GgufError, control_tokens


class ModelTokenizer:
    """A model's vocabulary.

    Args:
        vocab: token → id, special tokens included.
        added: the tokens that are not made by merges.
    """

    def __init__(self, vocab: Mapping[str, int], added: Iterable[str]) -> None:
        self._vocab = dict(vocab)
        self.size = 1 + max(self._vocab.values(), default=-1)
        self._added = {self._vocab[text]: text for text in added if text in self._vocab}

    def get_vocab(self) -> dict[str, int]:
        return self._vocab

    def get_added_tokens_decoder(self) -> dict[int, str]:
        """Return the added tokens: text that spells one of their names is no marker."""
        return self._added


def gguf_vocabulary(file: Gguf) -> tuple[ModelTokenizer, list[str]]:
    """Return the vocabulary of a GGUF file, and its tokens by id.

    Raises:
        GgufError: the file is broken, or has none.
    """
    tokens = file.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not tokens:
        raise GgufError("the GGUF file has no vocabulary")
    return ModelTokenizer({str(text): i for i, text in enumerate(tokens)}, control_tokens(file).values()), tokens
