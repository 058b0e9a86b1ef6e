"""The plugin as a file: ``--tool-parser-plugin untemplate.integrations.vllm.plugin``.

Only needed where vLLM does not load entry points, for example because ``VLLM_PLUGINS`` lists others.
"""

from untemplate.integrations.vllm import register

register()
