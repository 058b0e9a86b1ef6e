"""The chat template: messages to text, as Hugging Face's ``apply_chat_template`` renders them.

>>> from untemplate.templates import ChatTemplate
>>> template = ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}",
...                         eos_token="</s>")
>>> template.render([{"role": "user", "content": "Hi"}])
'<user>Hi</s>'

Rules of this package:

* A template is somebody else's program. It runs in Jinja's immutable sandbox, under limits of time, memory, depth and
  output that hold in every thread, and it never sees the caller's own objects.
* The same input gives the same output: what depends on the clock asks ``now``, which can be set.
* Jinja is imported when a template is first compiled, not before.
"""

from ..errors import TemplateError, TemplateLimitError, TemplateRaised
from .template import ChatTemplate

__all__ = ["ChatTemplate", "TemplateError", "TemplateLimitError", "TemplateRaised"]
