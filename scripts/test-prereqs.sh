#!/usr/bin/env bash
# Installs test dependencies beside the Rust toolchain: COMMAND=PACKAGE, one line each, with the crate that needs it.
set -euo pipefail
cd "$(dirname "$0")/.."

needs=(
    cc=build-essential # links; ring (TLS) compiles C
    etcd=etcd-server # store: etcd 3.4, whose progress notifications cannot be trusted
    python3=python3 # replays the recorded answers, runs the Python client
    pip3=python3-pip # installs the Python client below
    etcdctl=etcd-client # store: must work on the etcd API of the embedded store
    umoci=umoci # runtime: makes images
    skopeo=skopeo # runtime: makes images, and pushes them
    docker-registry=docker-registry # runtime: registry for pull tests
    htpasswd=apache2-utils # runtime: users of that registry
    busybox=busybox-static # runtime: program of the tests' containers
    runc=runc # runtime: compared bundle by bundle
    linux.uml=user-mode-linux # runtime: a machine with cgroups v2
    containerd=containerd # runtime: the other runtime behind the same trait
    curl=curl # coracle: requests to a cluster on one machine
    mkfs.ext4=e2fsprogs # coracle: a disk that becomes full, or read-only
    promtool=prometheus # coracle: checks each page of metrics, and Prometheus scrapes them
    nsenter=util-linux # coracle: network namespaces of test machines
    ip=iproute2 # podnet: inspects the tests' namespaces
    /usr/lib/cni/bridge=containernetworking-plugins # podnet: foreign plugins
    nft=nftables # podnet: host ports; proxy: Services
    /usr/bin/kubectl=kubernetes-client # testkit: an older kubectl beside the one built below
    curl=curl # testkit: requests to the kubelet
    script=bsdutils # testkit: a terminal for kubectl
    go=golang-go # builds the etcd, kubectl, helm and the programs below
)
scripts/install.sh "${needs[@]}"
scripts/build-etcd.sh
scripts/build-kubectl.sh
scripts/build-helm.sh
scripts/build-client-go.sh
scripts/build-operator.sh
scripts/build-envtest.sh
scripts/build-cel-oracle.sh
scripts/fetch-crds.sh
scripts/build-kube-rs.sh
scripts/install-python-client.sh
