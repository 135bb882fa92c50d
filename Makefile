# The recipes are in scripts/; `make` alone lists the targets.
.PHONY: help run test bench fmt

help:
	@echo 'make run     install what the build needs, build, start a cluster on this machine'
	@echo 'make test    install what the tests need, check and test everything'
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
