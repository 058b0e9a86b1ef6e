"""untemplate inside the real vLLM: `make test-vllm`."""
