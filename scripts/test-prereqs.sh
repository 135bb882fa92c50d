#!/usr/bin/env bash
# Installs what the tests need beside the Rust toolchain: COMMAND=PACKAGE, one line each, with who needs it.
set -euo pipefail
cd "$(dirname "$0")/.."

needs=(
    cc=build-essential # links; ring (TLS) compiles C
    etcd=etcd-server # store: the engine's peer, in the release without trustworthy progress (3.4)
    python3=python3 # plays the recorded answers, and runs the Python client
    pip3=python3-pip # installs the Python client below
    etcdctl=etcd-client # store: the command line that the etcd face must satisfy
    umoci=umoci # runtime: makes images
    skopeo=skopeo # runtime: makes images, and pushes them
    docker-registry=docker-registry # runtime: the registry that images are pulled from
    htpasswd=apache2-utils # runtime: its users
    busybox=busybox-static # runtime: what runs in the tests' containers
    runc=runc # runtime: sees the same in the same bundle
    linux.uml=user-mode-linux # runtime: a machine whose cgroups are of version 2
    containerd=containerd # runtime: the other runtime behind the same trait
    curl=curl # coracle: asks a cluster on one machine
    nsenter=util-linux # coracle: the networks of machines in tests
    ip=iproute2 # podnet: looks at the namespaces that the tests made
    /usr/lib/cni/bridge=containernetworking-plugins # podnet: foreign plugins
    nft=nftables # podnet: host ports; proxy: Services
    /usr/bin/kubectl=kubernetes-client # testkit: an older kubectl, beside the one that is built below
    curl=curl # testkit: asks the kubelet
    script=bsdutils # testkit: a terminal for kubectl
    go=golang-go # builds the etcd, kubectl, helm and the programs below
)
scripts/install.sh "${needs[@]}"
scripts/build-etcd.sh
scripts/build-kubectl.sh
scripts/build-helm.sh
scripts/build-client-go.sh
scripts/build-operator.sh
scripts/build-kube-rs.sh
scripts/install-python-client.sh
