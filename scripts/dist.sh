#!/usr/bin/env bash
# Builds a release: a tarball and a Debian package of the static program, with checksums, licences and a bill of
# materials. Environment: TARGET (default: musl's of this machine), OUT (default dist).
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
scripts/install.sh cc=build-essential dpkg-deb=dpkg

machine=$(uname -m)
target=${TARGET:-$machine-unknown-linux-musl}
case $machine in
    x86_64) architecture=amd64 ;;
    aarch64) architecture=arm64 ;;
    *) architecture=$machine ;;
esac

# A program for musl is static; its C parts need musl's compiler.
if [[ $target == *-musl ]]; then
    scripts/install.sh musl-gcc=musl-tools
    command -v rustup >/dev/null && rustup target add "$target"
    compiler=CC_${target//-/_}
    export "$compiler=${!compiler:-musl-gcc}"
fi
cargo build --locked --release --target "$target" -p coracle

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=coracle-$version-$target
out=${OUT:-dist}
when=@$(git log -1 --format=%ct) # the same source gives the same files
mkdir -p "$out"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

program=${CARGO_TARGET_DIR:-target}/$target/release/coracle
if [[ $target == *-musl ]] && readelf --program-headers "$program" | grep -q INTERP; then
    echo "$program is not static" >&2
    exit 1
fi

mkdir "$stage/$name"
install "$program" "$stage/$name/coracle"
install --mode=644 LICENSE README.md CHANGELOG.md "$stage/$name"
cargo xtask notices "$target" >"$stage/$name/NOTICES"
cargo xtask sbom "$target" >"$stage/$name/sbom.cdx.json"
tar --create --directory "$stage" --sort=name --mtime="$when" --owner=0 --group=0 --numeric-owner "$name" |
    gzip --no-name --best >"$out/$name.tar.gz"
cp "$stage/$name/sbom.cdx.json" "$out/$name.cdx.json"

package=$stage/package
documents=$package/usr/share/doc/coracle
mkdir -p "$package/DEBIAN" "$documents" "$package/usr/bin"
install "$program" "$package/usr/bin/coracle"
install --mode=644 "$stage/$name/NOTICES" "$stage/$name/sbom.cdx.json" "$documents"
install --mode=644 LICENSE "$documents/copyright"
cat >"$package/DEBIAN/control" <<CONTROL
Package: coracle
Version: $version
Architecture: $architecture
Maintainer: The Coracle authors <coracle@localhost>
Installed-Size: $(du --summarize --block-size=1K "$package/usr" | cut -f1)
Section: admin
Priority: optional
Description: complete Kubernetes in one program
 API server, store, controllers, scheduler, kubelet, container runtime, pod network, service proxy and cluster DNS.
CONTROL
find "$package" -exec touch --no-dereference --date="$when" {} +
SOURCE_DATE_EPOCH=${when#@} dpkg-deb --root-owner-group --build "$package" "$out/coracle_${version}_$architecture.deb" >/dev/null

(cd "$out" && sha256sum "$name.tar.gz" "$name.cdx.json" "coracle_${version}_$architecture.deb" >SHA256SUMS && cat SHA256SUMS)
