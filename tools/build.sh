# shellcheck shell=bash
# Sourced by tools/demo and tools/check: installs what is missing, configures and builds.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '== %s\n' "$*"; }

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Installs the packages of tools/packages.txt that are not there. Does nothing when all are.
install_missing() {
  local missing=() package
  while read -r package; do
    case $package in '' | '#'*) continue ;; esac
    [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null)" = 'ii ' ] ||
      missing+=("$package")
  done <"$root/tools/packages.txt"
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing with apt-get: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "not root and no sudo; as root, run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -q </dev/null
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null
}

# build_into FOLDER "CMAKE OPTIONS" TARGET...: configures once, then builds with progress.
build_into() {
  local folder=$1 options=$2
  shift 2
  say "configuring $folder"
  mkdir -p "$folder"
  # shellcheck disable=SC2086  # options are words
  cmake -S "$root" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release $options \
    >"$folder/configure.log" 2>&1 || {
    cat "$folder/configure.log" >&2
    fail "cmake could not configure $folder"
  }
  say "building $*"
  NINJA_STATUS='[%f/%t, %e s] ' cmake --build "$folder" --target "$@"
}
