# The recipes are in scripts/; `make` without a target lists them.
.PHONY: help run test bench fmt

help:
	@echo 'make run     install build dependencies, build, start a cluster on this machine'
	@echo 'make test    install test dependencies, run all checks and tests'
	@echo 'make bench   run all benchmarks'
	@echo 'make fmt     format the code'

run:
	@scripts/run.sh

test:
	@scripts/test.sh

bench:
	@scripts/bench.sh

fmt:
	@cargo fmt --all
