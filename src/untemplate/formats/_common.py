"""What several families share: headers of the assistant's turn, end tokens, and the two plainest reasoning markers.

An entry such as ``hermes`` or ``deepseek_r1`` is used with many models, so every entry accepts the headers of all of
them: the last header in a prompt is the generation prompt's, whichever family wrote it. End tokens likewise; such
entries list them all as special tokens, and those that a vocabulary does not have do not count.
"""

from __future__ import annotations

from ..format import Marker, Turn

__all__ = ["HEADERS", "TURN_ENDS", "turn"]

HEADERS = (
    "<|im_start|>assistant",  # ChatML: Qwen, Hermes, MiMo, InternLM, Olmo 3, Step 3.5, Nemotron 3, ERNIE 4.5
    "<｜Assistant｜>",  # DeepSeek
    "<｜tool▁outputs▁end｜>",  # DeepSeek R1 and V3: the turn goes on after tool results with no header of its own
    "<｜tool▁output▁end｜>",  # DeepSeek V3.1: likewise
    "<|start_header_id|>assistant<|end_header_id|>",  # Llama 3, Functionary, Firefunction
    "<|header_start|>assistant<|header_end|>",  # Llama 4
    "[/INST]",  # Mistral
    "[/TOOL_RESULTS]",  # Mistral: after tool results
    "<|assistant|>",  # GLM, Phi, Apriel 1.5, Jamba
    "<|begin_assistant|>",  # Apriel 1.6
    "<|assistant_start|>",  # Apertus
    "<|im_assistant|>assistant<|im_middle|>",  # Kimi K2
    '<|open|>message role="assistant"<|sep|>',  # Kimi K3
    "<start_of_turn>model",  # Gemma 2, 3, FunctionGemma
    "<|turn>model",  # Gemma 4
    "<tool_response|>",  # Gemma 4: the turn goes on after tool results
    "]~b]ai",  # MiniMax M2
    "<seed:bos>assistant",  # Seed-OSS
    "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",  # Cohere
    "<|start_of_role|>assistant<|end_of_role|>",  # Granite
    "<|BOT|>assistant",  # Step 3
    "<|extra_0|>",  # Hunyuan A13B: the end of the user's turn
    "<SPECIAL_11>Assistant",  # Nemotron Nano v2
    "<|start|>assistant",  # gpt-oss
    "assistant<|role_sep|>",  # GigaChat 3
    "<｜hy_Assistant｜>",  # Hunyuan dense, Hy3
    "<beginning_of_sentence>ai name=assistant",  # MiniMax M1
    "<|message_model|>",  # Inkling
)
"""Accepted spellings of ``turn.start``."""

TURN_ENDS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<｜end▁of▁sentence｜>",
)
"""Accepted spellings of ``turn.end``. None is plain prose: ``</s>`` ends honest HTML and is left to its families."""


def turn(start: str, *ends: str) -> Turn:
    """A turn with a family's own spellings first and everybody's after them."""
    return Turn(
        start=Marker(start, tuple(header for header in HEADERS if header != start.strip())),
        end=Marker(ends[0], (*ends[1:], *(end for end in TURN_ENDS if end not in ends))),
    )
