//! The system calls of the default seccomp profile, as in other container runtimes.
//!
//! Some are allowed only with a capability. Each has its 64-bit and its 32-bit number; some exist
//! only in one of them. All numbers match the tables of `golang.org/x/sys` 0.49 (64 and 32 bits)
//! and of `linux-raw-sys` 0.12 (these and x32).

/// A system call: name, 64-bit number, 32-bit number.
pub(super) type Call = (&'static str, u32, u32);

/// The system call does not exist in this ABI.
pub(super) const NO: u32 = u32::MAX;

/// Calls whose arguments are checked, or that return another errno.
pub(super) const CLONE: Call = ("clone", 56, 120);
pub(super) const CLONE3: Call = ("clone3", 435, 435);
pub(super) const SOCKET: Call = ("socket", 41, 359);
pub(super) const PERSONALITY: Call = ("personality", 135, 136);

/// 64-bit calls that have another number in x32, or do not exist there.
#[rustfmt::skip]
pub(super) const OF_X32: &[(u32, u32)] = &[
    (13, 512), (15, 513), (16, 514), (19, 515), (20, 516), (45, 517), (46, 518), (47, 519), (59, 520),
    (101, 521), (127, 522), (128, 523), (129, 524), (131, 525), (222, 526), (244, 527), (246, 528),
    (247, 529), (273, 530), (274, 531), (278, 532), (279, 533), (295, 534), (296, 535), (297, 536),
    (299, 537), (307, 538), (310, 539), (311, 540), (54, 541), (55, 542), (206, 543), (209, 544),
    (322, 545), (327, 546), (328, 547), (134, NO), (156, NO), (205, NO), (211, NO), (214, NO), (215, NO),
];

/// Allowed for all containers, whatever the arguments.
#[rustfmt::skip]
pub(super) const ALWAYS_ALLOWED: &[Call] = &[
    ("_llseek", NO, 140), ("_newselect", NO, 142), ("accept", 43, NO), ("accept4", 288, 364),
    ("access", 21, 33), ("adjtimex", 159, 124), ("alarm", 37, 27), ("arch_prctl", 158, 384),
    ("bind", 49, 361), ("brk", 12, 45), ("cachestat", 451, 451), ("capget", 125, 184),
    ("capset", 126, 185), ("chdir", 80, 12), ("chmod", 90, 15), ("chown", 92, 182), ("chown32", NO, 212),
    ("clock_adjtime", 305, 343), ("clock_adjtime64", NO, 405), ("clock_getres", 229, 266),
    ("clock_getres_time64", NO, 406), ("clock_gettime", 228, 265), ("clock_gettime64", NO, 403),
    ("clock_nanosleep", 230, 267), ("clock_nanosleep_time64", NO, 407), ("close", 3, 6),
    ("close_range", 436, 436), ("connect", 42, 362), ("copy_file_range", 326, 377), ("creat", 85, 8),
    ("dup", 32, 41), ("dup2", 33, 63), ("dup3", 292, 330), ("epoll_create", 213, 254),
    ("epoll_create1", 291, 329), ("epoll_ctl", 233, 255), ("epoll_ctl_old", 214, NO),
    ("epoll_pwait", 281, 319), ("epoll_pwait2", 441, 441), ("epoll_wait", 232, 256),
    ("epoll_wait_old", 215, NO), ("eventfd", 284, 323), ("eventfd2", 290, 328), ("execve", 59, 11),
    ("execveat", 322, 358), ("exit", 60, 1), ("exit_group", 231, 252), ("faccessat", 269, 307),
    ("faccessat2", 439, 439), ("fadvise64", 221, 250), ("fadvise64_64", NO, 272), ("fallocate", 285, 324),
    ("fanotify_mark", 301, 339), ("fchdir", 81, 133), ("fchmod", 91, 94), ("fchmodat", 268, 306),
    ("fchmodat2", 452, 452), ("fchown", 93, 95), ("fchown32", NO, 207), ("fchownat", 260, 298),
    ("fcntl", 72, 55), ("fcntl64", NO, 221), ("fdatasync", 75, 148), ("fgetxattr", 193, 231),
    ("flistxattr", 196, 234), ("flock", 73, 143), ("fork", 57, 2), ("fremovexattr", 199, 237),
    ("fsetxattr", 190, 228), ("fstat", 5, 108), ("fstat64", NO, 197), ("fstatat64", NO, 300),
    ("fstatfs", 138, 100), ("fstatfs64", NO, 269), ("fsync", 74, 118), ("ftruncate", 77, 93),
    ("ftruncate64", NO, 194), ("futex", 202, 240), ("futex_requeue", 456, 456), ("futex_time64", NO, 422),
    ("futex_wait", 455, 455), ("futex_waitv", 449, 449), ("futex_wake", 454, 454), ("futimesat", 261, 299),
    ("get_robust_list", 274, 312), ("get_thread_area", 211, 244), ("getcpu", 309, 318),
    ("getcwd", 79, 183), ("getdents", 78, 141), ("getdents64", 217, 220), ("getegid", 108, 50),
    ("getegid32", NO, 202), ("geteuid", 107, 49), ("geteuid32", NO, 201), ("getgid", 104, 47),
    ("getgid32", NO, 200), ("getgroups", 115, 80), ("getgroups32", NO, 205), ("getitimer", 36, 105),
    ("getpeername", 52, 368), ("getpgid", 121, 132), ("getpgrp", 111, 65), ("getpid", 39, 20),
    ("getppid", 110, 64), ("getpriority", 140, 96), ("getrandom", 318, 355), ("getresgid", 120, 171),
    ("getresgid32", NO, 211), ("getresuid", 118, 165), ("getresuid32", NO, 209), ("getrlimit", 97, 76),
    ("getrusage", 98, 77), ("getsid", 124, 147), ("getsockname", 51, 367), ("getsockopt", 55, 365),
    ("gettid", 186, 224), ("gettimeofday", 96, 78), ("getuid", 102, 24), ("getuid32", NO, 199),
    ("getxattr", 191, 229), ("getxattrat", 464, 464), ("inotify_add_watch", 254, 292),
    ("inotify_init", 253, 291), ("inotify_init1", 294, 332), ("inotify_rm_watch", 255, 293),
    ("io_cancel", 210, 249), ("io_destroy", 207, 246), ("io_getevents", 208, 247),
    ("io_pgetevents", 333, 385), ("io_pgetevents_time64", NO, 416), ("io_setup", 206, 245),
    ("io_submit", 209, 248), ("ioctl", 16, 54), ("ioprio_get", 252, 290), ("ioprio_set", 251, 289),
    ("ipc", NO, 117), ("kill", 62, 37), ("landlock_add_rule", 445, 445),
    ("landlock_create_ruleset", 444, 444), ("landlock_restrict_self", 446, 446), ("lchown", 94, 16),
    ("lchown32", NO, 198), ("lgetxattr", 192, 230), ("link", 86, 9), ("linkat", 265, 303),
    ("listen", 50, 363), ("listmount", 458, 458), ("listxattr", 194, 232), ("listxattrat", 465, 465),
    ("llistxattr", 195, 233), ("lremovexattr", 198, 236), ("lseek", 8, 19), ("lsetxattr", 189, 227),
    ("lsm_get_self_attr", 459, 459), ("lsm_list_modules", 461, 461), ("lsm_set_self_attr", 460, 460),
    ("lstat", 6, 107), ("lstat64", NO, 196), ("madvise", 28, 219), ("map_shadow_stack", 453, 453),
    ("membarrier", 324, 375), ("memfd_create", 319, 356), ("memfd_secret", 447, 447), ("mincore", 27, 218),
    ("mkdir", 83, 39), ("mkdirat", 258, 296), ("mknod", 133, 14), ("mknodat", 259, 297),
    ("mlock", 149, 150), ("mlock2", 325, 376), ("mlockall", 151, 152), ("mmap", 9, 90), ("mmap2", NO, 192),
    ("modify_ldt", 154, 123), ("mprotect", 10, 125), ("mq_getsetattr", 245, 282), ("mq_notify", 244, 281),
    ("mq_open", 240, 277), ("mq_timedreceive", 243, 280), ("mq_timedreceive_time64", NO, 419),
    ("mq_timedsend", 242, 279), ("mq_timedsend_time64", NO, 418), ("mq_unlink", 241, 278),
    ("mremap", 25, 163), ("mseal", 462, 462), ("msgctl", 71, 402), ("msgget", 68, 399),
    ("msgrcv", 70, 401), ("msgsnd", 69, 400), ("msync", 26, 144), ("munlock", 150, 151),
    ("munlockall", 152, 153), ("munmap", 11, 91), ("name_to_handle_at", 303, 341), ("nanosleep", 35, 162),
    ("newfstatat", 262, NO), ("open", 2, 5), ("openat", 257, 295), ("openat2", 437, 437),
    ("pause", 34, 29), ("pidfd_open", 434, 434), ("pidfd_send_signal", 424, 424), ("pipe", 22, 42),
    ("pipe2", 293, 331), ("pkey_alloc", 330, 381), ("pkey_free", 331, 382), ("pkey_mprotect", 329, 380),
    ("poll", 7, 168), ("ppoll", 271, 309), ("ppoll_time64", NO, 414), ("prctl", 157, 172),
    ("pread64", 17, 180), ("preadv", 295, 333), ("preadv2", 327, 378), ("prlimit64", 302, 340),
    ("process_mrelease", 448, 448), ("process_vm_readv", 310, 347), ("process_vm_writev", 311, 348),
    ("pselect6", 270, 308), ("pselect6_time64", NO, 413), ("ptrace", 101, 26), ("pwrite64", 18, 181),
    ("pwritev", 296, 334), ("pwritev2", 328, 379), ("read", 0, 3), ("readahead", 187, 225),
    ("readlink", 89, 85), ("readlinkat", 267, 305), ("readv", 19, 145), ("recvfrom", 45, 371),
    ("recvmmsg", 299, 337), ("recvmmsg_time64", NO, 417), ("recvmsg", 47, 372),
    ("remap_file_pages", 216, 257), ("removexattr", 197, 235), ("removexattrat", 466, 466),
    ("rename", 82, 38), ("renameat", 264, 302), ("renameat2", 316, 353), ("restart_syscall", 219, 0),
    ("rmdir", 84, 40), ("rseq", 334, 386), ("rt_sigaction", 13, 174), ("rt_sigpending", 127, 176),
    ("rt_sigprocmask", 14, 175), ("rt_sigqueueinfo", 129, 178), ("rt_sigreturn", 15, 173),
    ("rt_sigsuspend", 130, 179), ("rt_sigtimedwait", 128, 177), ("rt_sigtimedwait_time64", NO, 421),
    ("rt_tgsigqueueinfo", 297, 335), ("sched_get_priority_max", 146, 159),
    ("sched_get_priority_min", 147, 160), ("sched_getaffinity", 204, 242), ("sched_getattr", 315, 352),
    ("sched_getparam", 143, 155), ("sched_getscheduler", 145, 157), ("sched_rr_get_interval", 148, 161),
    ("sched_rr_get_interval_time64", NO, 423), ("sched_setaffinity", 203, 241),
    ("sched_setattr", 314, 351), ("sched_setparam", 142, 154), ("sched_setscheduler", 144, 156),
    ("sched_yield", 24, 158), ("seccomp", 317, 354), ("select", 23, 82), ("semctl", 66, 394),
    ("semget", 64, 393), ("semop", 65, NO), ("semtimedop", 220, NO), ("semtimedop_time64", NO, 420),
    ("sendfile", 40, 187), ("sendfile64", NO, 239), ("sendmmsg", 307, 345), ("sendmsg", 46, 370),
    ("sendto", 44, 369), ("set_robust_list", 273, 311), ("set_thread_area", 205, 243),
    ("set_tid_address", 218, 258), ("setfsgid", 123, 139), ("setfsgid32", NO, 216), ("setfsuid", 122, 138),
    ("setfsuid32", NO, 215), ("setgid", 106, 46), ("setgid32", NO, 214), ("setgroups", 116, 81),
    ("setgroups32", NO, 206), ("setitimer", 38, 104), ("setpgid", 109, 57), ("setpriority", 141, 97),
    ("setregid", 114, 71), ("setregid32", NO, 204), ("setresgid", 119, 170), ("setresgid32", NO, 210),
    ("setresuid", 117, 164), ("setresuid32", NO, 208), ("setreuid", 113, 70), ("setreuid32", NO, 203),
    ("setrlimit", 160, 75), ("setsid", 112, 66), ("setsockopt", 54, 366), ("setuid", 105, 23),
    ("setuid32", NO, 213), ("setxattr", 188, 226), ("setxattrat", 463, 463), ("shmat", 30, 397),
    ("shmctl", 31, 396), ("shmdt", 67, 398), ("shmget", 29, 395), ("shutdown", 48, 373),
    ("sigaltstack", 131, 186), ("signalfd", 282, 321), ("signalfd4", 289, 327), ("sigprocmask", NO, 126),
    ("sigreturn", NO, 119), ("socketcall", NO, 102), ("socketpair", 53, 360), ("splice", 275, 313),
    ("stat", 4, 106), ("stat64", NO, 195), ("statfs", 137, 99), ("statfs64", NO, 268),
    ("statmount", 457, 457), ("statx", 332, 383), ("symlink", 88, 83), ("symlinkat", 266, 304),
    ("sync", 162, 36), ("sync_file_range", 277, 314), ("syncfs", 306, 344), ("sysinfo", 99, 116),
    ("tee", 276, 315), ("tgkill", 234, 270), ("time", 201, 13), ("timer_create", 222, 259),
    ("timer_delete", 226, 263), ("timer_getoverrun", 225, 262), ("timer_gettime", 224, 261),
    ("timer_gettime64", NO, 408), ("timer_settime", 223, 260), ("timer_settime64", NO, 409),
    ("timerfd_create", 283, 322), ("timerfd_gettime", 287, 326), ("timerfd_gettime64", NO, 410),
    ("timerfd_settime", 286, 325), ("timerfd_settime64", NO, 411), ("times", 100, 43), ("tkill", 200, 238),
    ("truncate", 76, 92), ("truncate64", NO, 193), ("ugetrlimit", NO, 191), ("umask", 95, 60),
    ("uname", 63, 122), ("unlink", 87, 10), ("unlinkat", 263, 301), ("uretprobe", 335, NO),
    ("utime", 132, 30), ("utimensat", 280, 320), ("utimensat_time64", NO, 412), ("utimes", 235, 271),
    ("vfork", 58, 190), ("vmsplice", 278, 316), ("wait4", 61, 114), ("waitid", 247, 284),
    ("waitpid", NO, 7), ("write", 1, 4), ("writev", 20, 146),
];

/// Allowed to those who have a capability.
#[rustfmt::skip]
pub(super) const WITH_CAPABILITY: &[(&str, &[Call])] = &[
    ("DAC_READ_SEARCH", &[
        ("open_by_handle_at", 304, 342),
    ]),
    ("SYS_ADMIN", &[
        ("bpf", 321, 357), ("clone", 56, 120), ("clone3", 435, 435), ("fanotify_init", 300, 338),
        ("fsconfig", 431, 431), ("fsmount", 432, 432), ("fsopen", 430, 430), ("fspick", 433, 433),
        ("lookup_dcookie", 212, 253), ("mount", 165, 21), ("mount_setattr", 442, 442),
        ("move_mount", 429, 429), ("open_tree", 428, 428), ("perf_event_open", 298, 336),
        ("quotactl", 179, 131), ("quotactl_fd", 443, 443), ("setdomainname", 171, 121),
        ("sethostname", 170, 74), ("setns", 308, 346), ("syslog", 103, 103), ("umount", NO, 22),
        ("umount2", 166, 52), ("unshare", 272, 310),
    ]),
    ("SYS_BOOT", &[
        ("reboot", 169, 88),
    ]),
    ("SYS_CHROOT", &[
        ("chroot", 161, 61),
    ]),
    ("SYS_MODULE", &[
        ("delete_module", 176, 129), ("finit_module", 313, 350), ("init_module", 175, 128),
    ]),
    ("SYS_PACCT", &[
        ("acct", 163, 51),
    ]),
    ("SYS_PTRACE", &[
        ("kcmp", 312, 349), ("pidfd_getfd", 438, 438), ("process_madvise", 440, 440),
        ("process_vm_readv", 310, 347), ("process_vm_writev", 311, 348), ("ptrace", 101, 26),
    ]),
    ("SYS_RAWIO", &[
        ("ioperm", 173, 101), ("iopl", 172, 110),
    ]),
    ("SYS_TIME", &[
        ("clock_settime", 227, 264), ("clock_settime64", NO, 404), ("settimeofday", 164, 79),
        ("stime", NO, 25),
    ]),
    ("SYS_TTY_CONFIG", &[
        ("vhangup", 153, 111),
    ]),
    ("SYS_NICE", &[
        ("get_mempolicy", 239, 275), ("mbind", 237, 274), ("set_mempolicy", 238, 276),
        ("set_mempolicy_home_node", 450, 450),
    ]),
    ("SYSLOG", &[
        ("syslog", 103, 103),
    ]),
    ("BPF", &[
        ("bpf", 321, 357),
    ]),
    ("PERFMON", &[
        ("perf_event_open", 298, 336),
    ]),
];
