"""ServiceNow Apriel 1.5 and 1.6: a JSON list in ``<tool_calls>``; reasoning up to ``[BEGIN FINAL RESPONSE]``.

* 1.5 ends the answer with ``[END FINAL RESPONSE]`` (template of Apriel 1.5, ``reasoning_prompt``). Its reasoning begins
  with a fixed sentence, which the outputs show and the template lacks.
* 1.6 has that sentence in the generation prompt (template of Apriel 1.6, ``reasoning_asst_turn_start``): reasoning
  begins with the output and only its close is marked. The sentence in the prompt counts as the open marker. A prompt
  without it, as the template writes for earlier turns, does not begin in reasoning.
"""

from __future__ import annotations

from ...format import Format, JsonBody, Marker, Reasoning, Tools
from .._family import Entry, report, template, turn

TOOLS = Tools(
    section_open=Marker("\n<tool_calls>"),
    section_close=Marker("</tool_calls>"),
    list_open=Marker("["),
    list_close=Marker("]"),
    separator=Marker(", "),
    body=JsonBody(id_key="id"),
)
SENTENCE = Marker("Here are my reasoning steps:\n")
BEGIN = Marker("\n[BEGIN FINAL RESPONSE]\n")

# The end of the answer counts as the end of the turn: both count in text only at the end of the output.
ENDS = (
    "\n<|end|>\n",
    "</s>",
    "<|end|>\n</s>",
    "[END FINAL RESPONSE]",
    "[END FINAL RESPONSE]\n<|end|>",
    "[END FINAL RESPONSE]\n<|end|>\n</s>",
)
V15_TURN = turn("<|assistant|>\n", *ENDS)
V16_TURN = turn("\n<|begin_assistant|>\n", *ENDS)

ENTRIES = (
    Entry(
        name="apriel_1.5",
        kind="reasoning",
        format=Format(
            name="apriel_1.5",
            turn=V15_TURN,
            reasoning=Reasoning(open=SENTENCE, close=BEGIN),
            special_tokens=("<|end|>",),
        ),
        models=("ServiceNow-AI/Apriel-1.5-15b-Thinker",),
        evidence=(
            template("unsloth-Apriel-1.5.jinja"),
            report("jrp2014/check_models src/output/results.md", "an output begins with the sentence"),
        ),
    ),
    Entry(
        name="apriel_1.6",
        kind="reasoning",
        format=Format(
            name="apriel_1.6",
            turn=V16_TURN,
            reasoning=Reasoning(open=SENTENCE, close=BEGIN, start="open"),
            special_tokens=("<|end|>",),
        ),
        models=("ServiceNow-AI/Apriel-1.6-15b-Thinker",),
        evidence=(template("Apriel-1.6-15b-Thinker-fixed.jinja"),),
    ),
    Entry(
        name="apriel_1.5",
        kind="tool",
        format=Format(name="apriel_1.5", turn=V15_TURN, tools=(TOOLS,), special_tokens=("<|end|>",)),
        models=("ServiceNow-AI/Apriel-1.5-15b-Thinker",),
        evidence=(template("unsloth-Apriel-1.5.jinja"),),
    ),
    Entry(
        name="apriel_1.6",
        kind="tool",
        format=Format(name="apriel_1.6", turn=V16_TURN, tools=(TOOLS,), special_tokens=("<|end|>",)),
        models=("ServiceNow-AI/Apriel-1.6-15b-Thinker",),
        headers=("<|begin_assistant|>",),
        evidence=(template("Apriel-1.6-15b-Thinker-fixed.jinja"),),
    ),
)
