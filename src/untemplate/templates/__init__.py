"""Renders chat templates: messages to text, as Hugging Face's ``apply_chat_template`` does.

>>> from untemplate.templates import ChatTemplate
>>> template = ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}",
...                         eos_token="</s>")
>>> template.render([{"role": "user", "content": "Hi"}])
'<user>Hi</s>'

* A template is a program from an untrusted source. It runs in Jinja's immutable sandbox, with limits of time, memory,
  depth and output that hold in every thread, and it never sees the caller's own objects.
* The same input gives the same output. The clock can be set (``now``).
* Jinja is imported when a template is first compiled.
"""

from ..errors import TemplateError, TemplateLimitError, TemplateRaised
from ._generation import generation_ranges
from ._template import ChatTemplate

__all__ = ["ChatTemplate", "TemplateError", "TemplateLimitError", "TemplateRaised", "generation_ranges"]
