# The commands of the project; each does the set-up that it needs, and none of
# it twice. `make help` lists them.

PRESET ?= release
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
DESTDIR ?=

build_dir := build/$(PRESET)
mlxcel := $(build_dir)/mlxcel
models := .deps/models
smollm2_gguf := $(models)/SmolLM2-135M-Instruct.Q4_1.gguf
smollm2 := $(models)/SmolLM2-135M-Instruct
question := Why is the sky blue?

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build setup demo model oracles test test-slow sanitize check check-setup \
	format architectures bench install archive clean help

help: ## lists these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | \
	  expand -t 20

setup: ## installs the missing Debian packages and the MLX library
	@scripts/setup.sh

build: setup ## builds build/release/mlxcel (PRESET=debug for another)
	@test -f $(build_dir)/build.ninja || { rm -f $(build_dir)/CMakeCache.txt; \
	  cmake --preset $(PRESET); }
	@cmake --build $(build_dir) -j $(JOBS)

model: build ## fetches and converts SmolLM2-135M-Instruct
	@scripts/fetch_smollm2.sh
	@test -d $(smollm2) || $(mlxcel) convert $(smollm2_gguf) $(smollm2)

demo: model ## asks a small model a question
	$(mlxcel) run $(smollm2) -p "$(question)"

oracles:
	@scripts/oracle_env.sh

test: build oracles model ## builds and runs the fast tests
	@scripts/run_tests.py $(build_dir) --jobs $(JOBS)

test-slow: build oracles model ## builds and runs the slow tests
	@scripts/run_tests.py $(build_dir) --jobs $(JOBS) --slow

sanitize: setup ## runs tests and fuzz targets without MLX under ASan and UBSan
	@scripts/sanitize.sh $(JOBS)

check-setup:
	@scripts/setup.sh --check

check: check-setup build oracles ## format, clang-tidy, layers
	@scripts/check.sh $(build_dir) $(JOBS)

architectures: build ## writes docs/architectures.md from the registry
	$(mlxcel) arch --markdown >docs/architectures.md

format: check-setup ## formats the sources in place
	@git ls-files -z -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh' | \
	  xargs -0 clang-format -i

bench: model oracles ## measures against other programs, alternately
	@bench/peers/llama_cpp.sh
	@bench/peers/mlx_lm.sh
	@tests/oracle/fetch_published_files.sh
	@cmake --build $(build_dir) -j $(JOBS) --target mlxcel_tokenizer_bench
	@python3 bench/run.py --build $(build_dir) $(BENCH_ARGS)
	@python3 bench/convert.py --program $(mlxcel)

install: build ## installs to PREFIX (/usr/local), below DESTDIR if given
	@DESTDIR="$(DESTDIR)" cmake --install $(build_dir) --prefix "$(PREFIX)"

archive: build ## packs dist/mlxcel-VERSION-linux-x86_64.tar.xz
	@scripts/archive.sh $(build_dir)

clean: ## removes the builds and archives; keeps what was downloaded
	rm -rf build dist
