"""Stands in for vLLM in tests: the names that the gateway uses, with the behaviour that vLLM documents."""
