# Fresh Debian roots, and machines booted in them, for tests that install things. Source it; wants root,
# debootstrap, iproute2, util-linux. Whatever is mounted or runs goes with the command that started it.

# new_root SUITE FOLDER PACKAGES: a minimal Debian with these packages, comma-separated
new_root() {
  local mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' |
    head -n1)
  debootstrap --variant=minbase --include="$3" "$1" "$2" "$mirror" >"$2.log" 2>&1 || { tail "$2.log"; return 1; }
  cp -r /etc/apt/apt.conf.d/. "$2/etc/apt/apt.conf.d/"
  cp -L /etc/resolv.conf "$2/etc/"
  echo machine >"$2/etc/hostname"
  printf '127.0.0.1 localhost\n192.0.2.1 machine\n' >"$2/etc/hosts"
  echo "deb $mirror $1 main" >"$2/etc/apt/sources.list"
}

readonly clean=(env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
                DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy=$http_proxy}
                ${https_proxy:+https_proxy=$https_proxy})

# in_root ROOT COMMAND: in a shell there, with this machine's network
in_root() {
  "${clean[@]}" unshare --mount --pid --fork --kill-child bash -c '
    mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" bash -c "$2"' in_root "$@"
}

# boot ROOT: its systemd, `machine`, with a network and processes of its own; $machine is its first process
boot() {
  local root=$1
  group=$(findmnt --noheadings --types cgroup2 --output TARGET | head -n1)/thinwire-$$
  mkdir "$group"
  ( echo "$BASHPID" >"$group/cgroup.procs"
    exec "${clean[@]}" container=test unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child bash -c '
      set -e
      ip link set lo up
      ip address add 192.0.2.1/32 dev lo
      mount --rbind "$1" "$1"
      mount -t proc proc "$1/proc"
      mount -t sysfs sysfs "$1/sys"
      [[ -d $1/sys/fs/cgroup ]]
      mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
      mount -t tmpfs tmpfs "$1/run"
      mount -t tmpfs -o mode=755 tmpfs "$1/dev"
      mkdir "$1/dev/pts" "$1/dev/shm"
      mount -t devpts -o newinstance,ptmxmode=666 devpts "$1/dev/pts"
      mount -t tmpfs tmpfs "$1/dev/shm"
      ln -s pts/ptmx "$1/dev/ptmx"
      ln -s /proc/self/fd "$1/dev/fd"
      for device in null zero full random urandom tty; do
        touch "$1/dev/$device"
        mount --bind "/dev/$device" "$1/dev/$device"
      done
      cd "$1"
      mkdir -p run/old
      pivot_root . run/old
      umount -l /run/old
      exec /lib/systemd/systemd </dev/null' boot "$root"
  ) >"$root.boot" 2>&1 &
  booted=$!
  within 20 first_child "$booted" || { echo "boot: $root does not start"; cat "$root.boot"; return 1; }
  within 60 on_machine 'systemctl is-system-running 2>/dev/null | grep -qE "running|degraded"' ||
    { on_machine 'systemctl list-jobs; systemctl --failed'; tail "$root.boot"; return 1; }
}
first_child() { read -r machine _ <"/proc/$1/task/$1/children" || true; [[ -n $machine ]]; }

# on_machine COMMAND: in a shell on the machine that was booted
on_machine() {
  "${clean[@]}" nsenter --target "$machine" --mount --pid --uts --ipc --net --cgroup --root --wd bash -c "$1"
}

# shut_down: the machine that was booted, if there is one
shut_down() {
  [[ -n ${booted-} ]] || return 0
  kill -KILL "$booted" 2>/dev/null
  wait "$booted" 2>/dev/null
  within 10 rmdir_all "$group"
  booted=
}
rmdir_all() { [[ ! -d $1 ]] || find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; }
