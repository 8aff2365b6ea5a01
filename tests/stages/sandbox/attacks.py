"""Programs that try to get out of a sandbox, and what each prints if it could not."""

PREAMBLE = """
import ctypes, errno, os, resource, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)

def trying(function, *arguments):
    try:
        value = function(*arguments)
    except (OSError, ValueError) as error:
        name = errno.errorcode.get(getattr(error, "errno", None), type(error).__name__)
        print(name)
    else:
        print("got", value)

def calling(name, *arguments):
    result = getattr(libc, name)(*arguments)
    print(errno.errorcode[ctypes.get_errno()] if result < 0 else f"got {result}")
"""

ATTACKS = {
    "fork": ("trying(os.fork)", "EAGAIN"),
    "thread": (
        "import threading\ntry: threading.Thread(target=print).start()\n"
        "except RuntimeError as error: print(error)",
        "can't start new thread",
    ),
    "exec a shell": ('trying(os.execv, "/bin/sh", ["sh", "-c", "echo got"])', "ENOENT"),
    "exec a program of its own": (
        'open("/tmp/x", "w").write("#!/bin/sh\\n"); os.chmod("/tmp/x", 0o4755)\n'
        'trying(os.execv, "/tmp/x", ["x"])',
        "EACCES",
    ),
    "read users": ('trying(open, "/etc/passwd")', "ENOENT"),
    "read by a symlink": (
        'os.symlink("/etc/shadow", "/tmp/link")\ntrying(open, "/tmp/link")\n'
        'trying(open, "/tmp/../../../../etc/shadow")',
        "ENOENT\nENOENT",
    ),
    "read the starter's environment": ('trying(open, "/proc/1/environ")', "ENOENT"),
    "read its own environment": (
        'print(sorted(set(os.environ) - {"LD_LIBRARY_PATH"}))',
        "['PYTHONCOERCECLOCALE', 'PYTHONHASHSEED', 'PYTHONUTF8']",
    ),
    "list devices": (
        'print(sorted(os.listdir("/dev")))\ntrying(open, "/dev/tty")',
        "['null', 'urandom']\nENOENT",
    ),
    "make a device": ('trying(os.mknod, "/tmp/disk", 0o60600, os.makedev(8, 0))', "EPERM"),
    "write into the library": (
        "try: open(os.__file__, 'a')\nexcept OSError as e: print(e.errno in (13, 30))\n"
        "trying(open, '/x', 'w')\ntrying(open, __file__, 'w')\ntrying(os.remove, __file__)",
        "True\nEROFS\nEROFS\nEROFS",
    ),
    "fill the disk": (
        "def fill():\n"
        "    for number in range(100):\n"
        "        with open(f'/tmp/{number}', 'wb') as file: file.write(bytes(1 << 20))\n"
        "trying(fill)\nprint(sum(os.stat(f'/tmp/{n}').st_size for n in range(17)) <= 16 << 20)",
        "ENOSPC\nTrue",
    ),
    "fill the disk with names": (
        "def fill():\n    for number in range(5_000): open(f'/tmp/{number}', 'w').close()\n"
        "trying(fill)",
        "ENOSPC",
    ),
    "one endless file": (
        "def fill():\n    with open('/tmp/x', 'wb') as file: file.truncate(1 << 40)\ntrying(fill)",
        "EFBIG",
    ),
    "memory": (
        "try: bytearray(1 << 30)\nexcept MemoryError: print('MemoryError')",
        "MemoryError",
    ),
    "files in memory": (
        "def fill():\n"
        "    with open(os.memfd_create('x'), 'wb') as file: file.write(bytes(17 << 20))\n"
        "trying(fill)",
        "EFBIG",
    ),
    "memory outside of a process": ("calling('shmget', 0, 1 << 20, 0o1600)", "ENOSPC"),
    "higher limits": (
        "trying(resource.setrlimit, resource.RLIMIT_AS, (1 << 40, 1 << 40))\n"
        "trying(resource.setrlimit, resource.RLIMIT_NPROC, (99, 99))",
        "ValueError\nValueError",
    ),
    "become root": (
        "for change in (os.setuid, os.setgid):\n"  # Where it is root already, that is powerless.
        "    try: change(0)\n"
        "    except PermissionError: pass\n"
        "capabilities = (ctypes.c_uint32 * 6)()\n"
        "libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), capabilities)\n"
        "print(set(capabilities))\ntrying(os.setgroups, [0])",
        "{0}\nEPERM",
    ),
    "a user namespace of its own": (
        "calling('unshare', 0x10000000)\ncalling('unshare', 0x00020000)",
        "ENOSPC\nEPERM",
    ),
    "mount": (
        "calling('mount', b'proc', b'/tmp', b'proc', ctypes.c_ulong(0), None)\n"
        "calling('mount', None, b'/program', None, ctypes.c_ulong(32), None)\n"
        "calling('umount2', b'/tmp', 2)\ncalling('pivot_root', b'/tmp', b'/tmp')",
        "EPERM\nEPERM\nEPERM\nEPERM",
    ),
    "chroot": ('trying(os.chroot, "/tmp")', "EPERM"),
    "packets": (
        "trying(socket.socket, socket.AF_PACKET, socket.SOCK_RAW)\n"
        "trying(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)",
        "EPERM\nEPERM",
    ),
    "the machine": (
        "calling('reboot', 0x01234567)\ncalling('swapoff', b'/x')\n"
        "calling('sethostname', b'x', 1)\n"
        "trying(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))",
        "EPERM\nEPERM\nEPERM\nEPERM",
    ),
    "descriptors": (
        "def is_open(number):\n"
        "    try: os.fstat(number)\n"
        "    except OSError: return False\n"
        "    return True\n"
        "print([number for number in range(4096) if is_open(number)])",
        "[0, 1, 2]",
    ),
}
"""Name → program, and its whole output."""
