#!/usr/bin/env bash
# Builds flannel's VXLAN with its Kubernetes subnet manager, for the benchmark of the network between nodes, once, into
# target/test-tools/flanneld. Not its own main package: that links the clients of clouds.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v0.28.4
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/flanneld" ] || [ "$(cat "$tools/flanneld.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building flannel $version"
mkdir -p "$tools/flannel-src"
cd "$tools/flannel-src"
cat >main.go <<'EOF'
package main

import (
	"context"
	"os"
	"sync"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
)

// Arguments: kubeconfig, network configuration, interface. The node is $NODE_NAME.
func main() {
	ctx := context.Background()
	manager, err := kube.NewSubnetManager(ctx, "", os.Args[1], "flannel.alpha.coreos.com", os.Args[2], false)
	check(err)
	config, err := manager.GetNetworkConfig(ctx)
	check(err)
	stack, err := ipmatch.GetIPFamily(true, false)
	check(err)
	uplink, err := ipmatch.LookupExtIface(os.Args[3], "", "", stack, ipmatch.PublicIPOpts{})
	check(err)
	vxlan, err := backend.NewManager(ctx, manager, uplink).GetBackend(config.BackendType)
	check(err)
	var group sync.WaitGroup
	network, err := vxlan.RegisterNetwork(ctx, &group, config)
	check(err)
	network.Run(ctx)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
EOF
cat >go.mod <<EOF
module flanneld

go 1.25

require github.com/flannel-io/flannel $version
EOF
rm -f go.sum
# Whole when it is there: the name appears only once the build has succeeded.
CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags='-s -w' -o ../flanneld.new .
mv ../flanneld.new ../flanneld
echo "$version" >../flanneld.version
