# What a process can find out about itself. Run by busybox, whose shell knows all of its commands.
grep -E '^(Cap|NoNewPrivs|Uid|Gid|Groups|Umask|Seccomp)' /proc/self/status
echo "oom $(cat /proc/self/oom_score_adj), descriptors $(ls /proc/self/fd | tr '\n' ' ')"
awk '{
    kind = ""; tags = ""
    for (i = 7; i <= NF; i++) {
        if ($i == "-") { kind = $(i + 1); break }
        sub(":.*", "", $i); tags = tags " " $i
    }
    print "mount", $5, kind, $6 tags
}' /proc/self/mountinfo | sort
find /dev ! -type d ! -path '/dev/mqueue/*' ! -path '/dev/shm/*' | sort | while read node; do
    [ -L "$node" ] && echo "link $node $(readlink "$node")" || ls -l "$node" | awk '{ print "device", $1, $3, $4, $5, $6, $NF }'
done
sort /sys/fs/cgroup/devices/devices.list 2>/dev/null
pwd
env | sort
hostname
for kind in cgroup ipc mnt net pid user uts; do
    [ "$(readlink /proc/self/ns/$kind)" = "$(eval echo \$host_$kind)" ] && echo "$kind is the hosts" || echo "$kind is its own"
done
echo "first process $(cat /proc/1/comm)"
[ "$(readlink /proc/self/ns/pid)" = "$host_pid" ] || { set -- /proc/[0-9]*; echo "$# processes"; }
[ "$(readlink /proc/self/ns/net)" = "$host_net" ] || { tail -n +3 /proc/net/dev | cut -d: -f1; cat /sys/class/net/lo/flags; }
for path in /proc/keys /proc/timer_list /sys/firmware /proc/acpi /proc/kcore /proc/scsi; do
    echo "$path: $(ls -d "$path" 2>&1), $(ls "$path/" 2>&1 | wc -l), $(head -c 100 "$path" 2>/dev/null | wc -c)"
done
for path in /x /tmp/x /etc/hosts /proc/sys/kernel/x /proc/sysrq-trigger /proc/bus/x /sys/x /dev/x /dev/shm/x; do
    (true >> "$path") 2>/dev/null && echo "$path can be written" || echo "$path cannot be written"
done
for path in $(ls -d /data/* 2>/dev/null); do
    echo "$path: $(ls "$path" "$path/inner" | tr '\n' ' ')"
    (true > "$path/x" && rm "$path/x") 2>/dev/null && echo "can be written" || echo "cannot be written"
    (true > "$path/inner/x" && rm "$path/inner/x") 2>/dev/null && echo "can be written within" || echo "cannot be written within"
done
for name in kernel/msgmax kernel/shm_rmid_forced net/ipv4/ip_unprivileged_port_start net/ipv4/tcp_syncookies; do
    echo "$name $(cat /proc/sys/$name 2>&1)"
done
awk -F: '{ print "group of", $2 }' /proc/self/cgroup | sort
ls /sys/fs/cgroup | sort
cd /sys/fs/cgroup
for limit in memory/memory.limit_in_bytes memory/memory.memsw.limit_in_bytes pids/pids.max cpu/cpu.shares cpu/cpu.cfs_quota_us \
    cpuset/cpuset.cpus memory.max pids.max cpu.weight cpu.max; do
    [ -e "$limit" ] && echo "$limit $(cat "$limit")"
done
ulimit -a
for allowed in /dev/null /dev/zero /dev/full /dev/tty /dev/extra /dev/vda; do
    [ -e "$allowed" ] && echo "$allowed: $({ head -c 0 < "$allowed"; } 2>&1)"
done
true
