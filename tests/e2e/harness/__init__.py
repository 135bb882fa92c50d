"""What the targets of upstream's suite and `make ecosystem` share.

cache      where everything that is built once is kept
gobuild    programs from Go modules
debian     files from Debian packages; busybox from Debian's source package
image      image archives, without a daemon
images     the images that upstream's specs ask for
registry   a registry on loopback in the namespace of a cluster
origin     registry.k8s.io in the namespace of a cluster
cluster    a cluster in a network namespace without a way out
wait       waiting for a condition
lanes      the suite in parallel, resumable
verdicts   what a log of the suite says about each spec
ledger     tests/e2e/ledger.tsv
report     docs/conformance.md
"""
