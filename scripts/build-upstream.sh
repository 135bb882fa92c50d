#!/usr/bin/env bash
# Builds stock kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, kubelet and kubeadm for `make swap`, once,
# as one program in target/test-tools/upstream with a link for each. Takes many minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v1.36.4
parts="v0.${version#v1.}"
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/upstream/program" ] || [ "$(cat "$tools/upstream/version" 2>/dev/null)" != "$version" ] || exit 0

echo "building the control plane of Kubernetes $version"
mkdir -p "$tools/upstream-src" "$tools/upstream"
cd "$tools/upstream-src"
cat >main.go <<'EOF'
package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app/cmd"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	programs := map[string]func() *cobra.Command{
		"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
		"kube-controller-manager": func() *cobra.Command { return controllers.NewControllerManagerCommand() },
		"kube-proxy":              func() *cobra.Command { return proxy.NewProxyCommand() },
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubeadm":                 func() *cobra.Command { return kubeadm.NewKubeadmCommand(os.Stdin, os.Stdout, os.Stderr) },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	}
	program, ok := programs[filepath.Base(os.Args[0])]
	if !ok {
		os.Exit(64)
	}
	os.Exit(cli.Run(program()))
}
EOF
# The parts that upstream's own tree replaces by folders of it are modules of their own here.
whole="$(cd / && GOFLAGS=-mod=mod go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')"
{
    printf 'module upstream\n\ngo 1.26\n\nrequire k8s.io/kubernetes %s\n\n' "$version"
    sed -n "s|^\t*\(replace \)\?\(k8s.io/[a-z-]*\) => ./staging/src/.*|replace \2 => \2 $parts|p" "$whole"
} >go.mod
rm -f go.sum
# Whole when it is there: the name appears only once the build has succeeded. Versions that programs report are set as in
# upstream's releases.
base=k8s.io/component-base/version
nice -n 10 go build -mod=mod -trimpath -ldflags="-s -w -X $base.gitVersion=$version -X $base.gitMajor=1 -X $base.gitMinor=36" \
    -o ../upstream/program.new .
cd ../upstream
mv program.new program
for name in kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubeadm kubelet; do
    ln -sf program "$name"
done
echo "$version" >version
