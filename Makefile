# One file for people and for CI. `make demo` and `make test` are all that a newcomer types.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Tools that were not on the machine live in .tools and go with `make clean`.
export PATH := $(CURDIR)/.tools/bin:$(HOME)/.cargo/bin:$(HOME)/.local/bin:$(PATH)
export CARGO_TARGET_DIR := $(CURDIR)/target
PY := .venv/bin/python
DEMO := records/first-look
DEMO_LOGS := records/demo-logs

.PHONY: help
help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: tools
tools:
	@command -v cc >/dev/null || { echo "searchbench needs a C compiler: install gcc or clang (Debian: apt-get install gcc)"; exit 1; }
	@command -v python3 >/dev/null || { echo "searchbench needs Python 3.11 or later"; exit 1; }
	@command -v uv >/dev/null || { echo "uv is not here: getting it into .tools"; python3 -m venv .tools; .tools/bin/pip -q install uv; }
	@command -v cargo >/dev/null || { echo "the Rust toolchain is not here: getting it into .tools"; bash scripts/get-rust; }

# Spark is an extra of half a gigabyte: `make test SPARK=1` gets it, and it stays until `make clean`.
EXTRAS = $(if $(SPARK)$(wildcard .venv/lib/python3*/site-packages/pyspark),--extra spark)

# The libraries of Rust are compiled while the packages of Python are got. On a terminal Cargo shows
# how far it is; in a log its lines would be hundreds.
.PHONY: build
build: tools ## build the measuring core and the environment (first time: some minutes)
	@[ -d .venv ] || { \
	  echo "The first build compiles up to $$(grep -c '^name = ' Cargo.lock) Rust crates and gets the Python packages."; \
	  echo "On two cores that takes 3 to 8 minutes; later builds take seconds."; \
	  [ -t 2 ] && quiet= || quiet=--quiet; \
	  cargo build --release $$quiet --lib -p searchbench-core -p searchbench-hosts & \
	  uv sync --quiet --no-install-project $(EXTRAS); echo "1 of 3: the Python packages are here; Rust is compiling"; \
	  wait $$!; echo "2 of 3: the Rust crates are compiled"; \
	  echo "3 of 3: building the bindings"; }
	@uv sync --quiet --compile-bytecode $(EXTRAS)
	@[ -f .venv/.built ] || echo "done: .venv/bin/searchbench --help, or make demo"; touch .venv/.built
	@$(PY) -m compileall -q python

.PHONY: wheel
wheel: build ## one wheel in dist/, which pip installs on machines without Rust
	@rm -f dist/searchbench-*.whl
	@uv build --wheel --quiet --out-dir dist
	@ls dist/searchbench-*.whl

.PHONY: demo
demo: build ## the shipped study: a verdict and a report
	@rm -rf $(DEMO)
	@.venv/bin/searchbench run studies/first-look.toml --record $(DEMO)

.PHONY: demo-logs
demo-logs: build ## a day of generated query logs, read: findings and a page
	@.venv/bin/searchbench logs demo $(DEMO_LOGS)

LUCENE_JAR := java/lucene/target/lucene-host.jar
LUCENE10_JAR := java/lucene/target10/lucene-host.jar
ELASTICSEARCH_JAR := java/elasticsearch/target/elasticsearch-analysis.jar
SENSEI_JAR := java/sensei/target/sensei-server.jar
ORIENTDB_JAR := java/orientdb/target/orientdb-analysis.jar
FLUME_JAR := java/flume/target/lib/flume-ng-node-1.11.0.jar
# One Maven at a time: they share a repository in the home folder. It ends before C2 would help it.
export MAVEN_OPTS := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC $(MAVEN_OPTS)
MVN := mvn -q -B -Dstyle.color=never

.PHONY: java
java: ## build what runs on the JVM (Lucene, SenseiDB, the analysis of Elasticsearch and OrientDB, Flume for tests); needs JDK 17 (Lucene 10: 21 or later) and Maven
	@if command -v mvn >/dev/null && command -v javac >/dev/null; then for jar in $(LUCENE_JAR) $(ELASTICSEARCH_JAR) $(SENSEI_JAR) $(ORIENTDB_JAR) $(FLUME_JAR); do $(MAKE) --no-print-directory $$jar; done; \
	else echo "NOT RUN HERE: Lucene, SenseiDB, Elasticsearch, OrientDB and Flume need JDK 17 and Maven (Debian: apt-get install openjdk-17-jdk-headless maven)"; fi
	@if command -v mvn >/dev/null && java/with-jdk 21 newest javac -version >/dev/null 2>&1; then $(MAKE) --no-print-directory $(LUCENE10_JAR); \
	else echo "NOT RUN HERE: Lucene 10 needs a JDK 21 or later (SEARCHBENCH_JDK, or below /usr/lib/jvm) and Maven"; fi

$(LUCENE_JAR): java/lucene/pom.xml $(shell find java/lucene/src -type f)
	@echo "building the Lucene host: the first time Maven gets its libraries"
	@$(MVN) -f java/lucene/pom.xml package
	@touch $@

$(LUCENE10_JAR): java/lucene/pom.xml $(shell find java/lucene/src -type f)
	@echo "building the Lucene 10 host: the first time Maven gets its libraries"
	@java/with-jdk 21 newest $(MVN) -f java/lucene/pom.xml -Plucene10 package 2>&1 | { grep -v 'WARNING: ' || true; }
	@touch $@

$(ELASTICSEARCH_JAR): java/elasticsearch/pom.xml $(shell find java/elasticsearch/src -type f)
	@echo "building the declared analysis for Elasticsearch"
	@$(MVN) -f java/elasticsearch/pom.xml package
	@touch $@

$(SENSEI_JAR): java/sensei/pom.xml $(shell find java/sensei/src -type f)
	@echo "building SenseiDB: the first time Maven gets its libraries"
	@$(MVN) -f java/sensei/pom.xml package
	@touch $@

$(ORIENTDB_JAR): java/orientdb/pom.xml $(shell find java/orientdb/src -type f)
	@echo "building the declared analysis for OrientDB"
	@$(MVN) -f java/orientdb/pom.xml package
	@touch $@

$(FLUME_JAR): java/flume/pom.xml
	@echo "getting Apache Flume, beside which the collector is tested"
	@$(MVN) -f java/flume/pom.xml package
	@touch $@

# More workers than cores, because many tests wait for servers and for windows of load.
WORKERS = $(shell echo $$(($$(nproc) + 2)))

# First what is got and compiled, side by side; then the tests, those last that need the machine
# for themselves. How long all of it may take stands in CONTRIBUTING.md.
.PHONY: test
test: ## everything the project can check about itself
	@$(MAKE) --no-print-directory -j3 build java browser
	@$(MAKE) --no-print-directory -j3 servers rust-tests lint-python
	@$(MAKE) --no-print-directory wheel
	@$(MAKE) --no-print-directory test-rust test-python
	@$(MAKE) --no-print-directory test-timed

# The core's tests have deadlines, which four other workers on two cores would break.
.PHONY: test-python test-timed test-rust
test-python:
	@$(PY) -m pytest -q -m "not timed" -n $(WORKERS) --dist loadfile --no-loadscope-reorder || { \
	  echo "What failed is tried once more with the machine to itself; what fails again has failed."; \
	  $(PY) -m pytest -q -m "not timed" --last-failed --last-failed-no-failures none; }

test-timed:
	@$(PY) -m pytest -q -m timed $$(grep -rl 'mark\.timed' tests --include='test_*.py') || { \
	  echo "What failed is tried once more; what fails again has failed."; \
	  $(PY) -m pytest -q -m timed --last-failed --last-failed-no-failures none; }

test-rust:
	$(CARGO_TEST) || { \
	  echo "What failed is tried once more; what fails again has failed."; \
	  $(CARGO_TEST); }

INPUTS := 100000000
FUZZ := cargo test --config rust/fuzz.toml --release --quiet --no-fail-fast -p searchbench-core \
  -p searchbench-collect -p searchbench-logs --test fuzz --
.PHONY: fuzz
fuzz: ## spoiled bytes by hand: INPUTS=N for each target (10^8: two hours), TARGET= a part of its name
	@echo "compiling may take a minute; then each target says every minute how far it is"
	@$(FUZZ) --list $(TARGET) | grep ': test$$' >/dev/null \
	  || { echo "no target has $(TARGET) in its name; there are:"; $(FUZZ) --list | sed -n 's/: test$$//p'; exit 1; }
	SEARCHBENCH_FUZZ=$(INPUTS) $(FUZZ) --nocapture --test-threads=1 $(TARGET)

.PHONY: lint
lint: lint-rust lint-python ## format, lint, types, import rules

.PHONY: lint-rust
lint-rust: build
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --release --quiet -- -D warnings

# All but examples, which the lint has compiled.
CARGO_TEST := cargo test --config rust/tests.toml --workspace --exclude searchbench-py --release --quiet \
  --lib --bins --tests

# After the lint, because Cargo does one thing at a time in a folder.
.PHONY: rust-tests
rust-tests: lint-rust
	@$(CARGO_TEST) --no-run

.PHONY: lint-python
lint-python: build
	.venv/bin/ruff format --check --quiet python tests benches
	.venv/bin/ruff check --quiet python tests benches
	.venv/bin/mypy --no-error-summary
	.venv/bin/lint-imports --no-cache >/dev/null || .venv/bin/lint-imports --no-cache

.PHONY: browser
browser:
	@bash scripts/get-browser

.PHONY: servers
servers: build
	@bash scripts/get-engines

.PHONY: bench
bench: build ## the figures that we hold ourselves to, measured here and now, into BENCHMARKS.md
	cargo build --release --quiet -p searchbench-core -p searchbench-collect --examples
	cargo build --release --quiet -p searchbench-hosts --bins --examples
	$(PY) benches/figures.py --markdown BENCHMARKS.md

.PHONY: bench-peers
bench-peers: build ## get the clients that `make bench` sets beside ours
	$(PY) benches/peers/install.py

.PHONY: format
format: build ## put everything into shape
	cargo fmt --all
	.venv/bin/ruff format python tests benches
	.venv/bin/ruff check --fix --quiet python tests benches

.PHONY: clean
clean: ## remove what was built, not what was measured
	rm -rf .venv .tools target dist python/searchbench/_core*.so
