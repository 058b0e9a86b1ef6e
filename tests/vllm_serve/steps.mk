# The steps of `make test-vllm`, which runs two at a time: the first waits for servers most of the time.
STEPS := server tests suites fixtures agreement cuts configs overhead
.PHONY: all $(STEPS)
all: $(STEPS)

IN_VLLM := HF_HUB_OFFLINE=1 VLLM_LOGGING_LEVEL=CRITICAL
server:
	@.venv-vllm/bin/python -m tests.vllm_serve.run --source build/vllm/0.33.0 --work build/vllm/work $(OPTIONS)
tests:
	@.venv-vllm/bin/python -m pytest --confcutdir=tests/vllm_serve -o addopts= -o filterwarnings=default -q tests/vllm_serve
suites:
	@.venv-vllm/bin/python -m tests.vllm_serve.suites --source build/vllm
fixtures agreement: %:
	@$(IN_VLLM) PYTHONPATH=build/vllm/0.33.0 .venv-vllm/bin/python -m tests.vllm_serve.$*
cuts overhead: %:
	@$(IN_VLLM) .venv-vllm/bin/python -m tests.vllm_serve.$*
configs:
	@for version in $(VLLM_VERSIONS); do \
	    $(IN_VLLM) PYTHONPATH=build/vllm/$$version .venv-vllm/bin/python -m tests.vllm_serve.configs $$version || exit 1; \
	done
