"""The plugin as a file, for both options: ``--tool-parser-plugin untemplate.integrations.vllm.plugin
--reasoning-parser-plugin untemplate.integrations.vllm.plugin``.

Only needed where vLLM does not load the entry point. If ``VLLM_PLUGINS`` is set, add ``untemplate`` to it instead.
"""

from untemplate.integrations.vllm import register

register()
