# The recipes are in scripts/; `make` without a target lists them.
.PHONY: help run dist test bench fmt flags e2e e2e-build e2e-ledger e2e-check e2e-smoke conformance ecosystem swap

help:
	@echo 'make run     install build dependencies, build, start a cluster on this machine'
	@echo 'make dist    build a release: static program, Debian package, checksums, licences, SBOM'
	@echo 'make test    install test dependencies, run all checks and tests'
	@echo 'make bench   run all benchmarks'
	@echo 'make fmt     format the code'
	@echo 'make flags   write docs/flags.md from the declarations'
	@echo "make conformance               run upstream's conformance specs, write docs/conformance.md"
	@echo "make e2e FOCUS=RE SKIP=RE      run other specs of upstream's suite"
	@echo 'make e2e-ledger [PART=N/M]     run what the ledger marks as passing'
	@echo 'make swap                      our components with upstream'"'"'s, and upstream'"'"'s with ours'
	@echo 'make e2e-build, e2e-check      build the suite; check the ledger'
	@echo 'make e2e-smoke                 some thirty specs of all areas, with the newest build'
	@echo 'make ecosystem [NAME=PROGRAM]  programs of other projects; writes docs/compatibility.md'

run:
	@scripts/run.sh

dist:
	@scripts/dist.sh

test:
	@scripts/test.sh

bench:
	@scripts/bench.sh

fmt:
	@cargo fmt --all

flags:
	@WRITE_FLAGS=1 cargo test -q -p coracle --bin coracle the_page_of_flags_is_current

conformance:
	@scripts/e2e.sh conformance

e2e:
	@scripts/e2e.sh e2e --focus '$(FOCUS)' --skip '$(SKIP)'

e2e-ledger:
	@scripts/e2e.sh ledger --part '$(or $(PART),1/1)'

e2e-build:
	@scripts/e2e.sh build

e2e-check:
	@python3 tests/e2e/main.py check

e2e-smoke:
	@scripts/e2e.sh smoke

ecosystem:
	@scripts/e2e.sh ecosystem $(NAME)

swap:
	@scripts/swap.sh
