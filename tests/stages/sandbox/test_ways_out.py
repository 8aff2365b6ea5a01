"""Ways out of a sandbox: each program prints what the kernel answered."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from stages.sandbox.sandbox import Limits, run_program
from tests.stages.sandbox.attacks import ATTACKS, PREAMBLE

HERE = Path(__file__).parents[3]


def printed(program, **options):
    outcome = run_program(PREAMBLE + program, **options)
    assert outcome.reason == "exited", outcome
    assert outcome.stderr == b""
    return outcome.stdout.decode().rstrip("\n")


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("name", ATTACKS)
def test_no_way_out(name):
    program, expected = ATTACKS[name]
    assert printed(program) == expected


@pytest.mark.usefixtures("namespaces")
def test_a_user_who_is_not_root_gets_the_same_walls(team):
    """Under root the program is another user; else it is the same one, without privileges."""
    script = (
        "import json, sys\nfrom stages.sandbox.sandbox import run_program\n"
        "programs = json.load(open(sys.argv[1]))\n"
        "print(json.dumps({n: run_program(p).stdout.decode() for n, p in programs.items()}))"
    )
    programs = team.folder / "programs.json"
    programs.write_text(json.dumps({n: PREAMBLE + program for n, (program, _) in ATTACKS.items()}))
    outputs = json.loads(team.carol.python_run("-c", script, str(programs)))
    assert {name: text.rstrip("\n") for name, text in outputs.items()} == {
        name: expected for name, (_, expected) in ATTACKS.items()
    }


@pytest.mark.usefixtures("namespaces")
def test_init_can_be_neither_traced_nor_killed():
    text = printed("calling('ptrace', 16, 1, None, None)\ntrying(os.kill, 1, signal.SIGKILL)")
    assert text == "EPERM\nEPERM"


@pytest.mark.usefixtures("namespaces")
def test_processes_outside_do_not_exist_inside():
    program = (
        f"trying(os.kill, {os.getpid()}, signal.SIGKILL)\n"
        "trying(os.kill, -1, signal.SIGKILL)\n"  # To all but init and itself.
        "print(os.getpid(), os.getppid())"
    )
    assert printed(program) == "ESRCH\nESRCH\n2 1"


@pytest.mark.usefixtures("namespaces")
def test_servers_of_this_machine_are_out_of_reach():
    """On loopback, and by a name in the abstract space, which no file system guards."""
    name = f"\0ingot-{os.getpid()}"
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as local:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        local.bind(name)
        local.listen()
        program = (
            f"trying(socket.socket().connect, ('127.0.0.1', {tcp.getsockname()[1]}))\n"
            "trying(socket.socket().connect, ('192.0.2.1', 80))\n"
            f"trying(socket.socket(socket.AF_UNIX).connect, {name!r})\n"
            "trying(socket.getaddrinfo, 'example.org', 80)"
        )
        *answers, lookup = printed(program).splitlines()
        assert answers == ["ENETUNREACH", "ENETUNREACH", "ECONNREFUSED"]
        assert "got" not in lookup
        # The same program gets through without namespaces, so it is they that stop it.
        free = printed(program, isolation="limits").splitlines()
        assert free[0] == "got None"
        assert free[2] == "got None"


@pytest.mark.usefixtures("namespaces")
def test_nothing_of_this_machine_is_in_the_root_folder(tmp_path):
    (tmp_path / "secret").write_text("x")
    program = (
        "names = [os.path.join(a, f) for a, _, fs in os.walk('/') for f in fs]\n"
        f"print(len(names), {str(tmp_path / 'secret')!r} in names)\n"
        "print(sorted({n for n in names if 'python' not in n and '/lib' not in n}))\n"
        "print(any('site-packages/' in n for n in names))"
    )
    first, others, packages = printed(program).splitlines()
    count, secret = first.split()
    assert int(count) > 500  # The library: the walk works.
    assert secret == "False"
    assert set(eval(others)) <= {
        "/dev/null",
        "/dev/urandom",
        "/etc/ld.so.cache",
        "/program/main.py",
    }
    assert packages == "False"


@pytest.mark.usefixtures("namespaces")
def test_secrets_of_this_process_do_not_reach_the_program(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    kept = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(kept, True)
    try:
        program, expected = ATTACKS["descriptors"]
        assert printed(program) == expected
        for isolation in ("namespaces", "limits"):
            program, expected = ATTACKS["read its own environment"]
            assert printed(program, isolation=isolation) == expected
    finally:
        os.close(kept)


@pytest.mark.usefixtures("namespaces")
def test_a_fork_bomb_gets_as_many_processes_as_it_may():
    program = (
        "count = 1\n"
        "while True:\n"
        "    try: child = os.fork()\n"
        "    except OSError: break\n"
        "    if child == 0: signal.pause()\n"
        "    count += 1\n"
        "print(count)"
    )
    assert printed(program, limits=Limits(processes=8)) == "8"


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("isolation", ["namespaces", "limits"])
def test_detached_processes_end_with_the_program(isolation):
    mark = f"ingot-daemon-{os.getpid()}-{isolation}"
    program = (
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.closerange(0, 100)\n"
        "        os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)', "
        f"{mark!r}])\n"
        "    os._exit(0)\n"
        "os.wait()\nprint('left')"
    )
    assert printed(program, limits=Limits(processes=8), isolation=isolation) == "left"
    assert not marked(mark)


def marked(mark):
    return [one for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or ())]


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("isolation", ["namespaces", "limits"])
def test_a_killed_starter_takes_its_sandbox_along(isolation):
    mark = f"ingot-orphan-{os.getpid()}-{isolation}"
    source = (
        "import os, sys\nif len(sys.argv) == 1:\n"
        f"    os.execv(sys.executable, [sys.executable, __file__, {mark!r}])\n"
        "import time\ntime.sleep(600)"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c",
         "from stages.sandbox.sandbox import Limits, run_program\n"
         f"run_program({source!r}, limits=Limits(wall_seconds=600), isolation={isolation!r})"],
        cwd=HERE,
    )  # fmt: skip
    wait_until(lambda: marked(mark))
    starter.kill()
    starter.wait()
    wait_until(lambda: not marked(mark))


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def quick(**limits):
    return Limits(**{"wall_seconds": 30, **limits})


@pytest.mark.parametrize("isolation", ["namespaces", "limits"])
class TestBounds:
    @pytest.fixture(autouse=True)
    def _able(self, isolation, request):
        if isolation == "namespaces":
            request.getfixturevalue("namespaces")

    def test_endless_output_is_cut(self, isolation):
        program = "import sys\nwhile True: sys.stdout.write('x' * 1000)"
        outcome = run_program(program, limits=quick(output_bytes=5_000), isolation=isolation)
        assert outcome.reason == "output"
        assert outcome.stdout == b"x" * 5_000

    def test_sleep_ends_by_the_clock(self, isolation):
        outcome = run_program(
            "import time; time.sleep(600)", limits=quick(wall_seconds=1), isolation=isolation
        )
        assert (outcome.reason, outcome.code) == ("time", None)

    @pytest.mark.parametrize("prefix", ["", "import signal; signal.signal(24, lambda *_: None)\n"])
    def test_work_ends_by_the_processor_time(self, isolation, prefix):
        """SIGXCPU may be ignored; SIGKILL follows a second later."""
        outcome = run_program(
            f"{prefix}while True: pass", limits=quick(cpu_seconds=1), isolation=isolation
        )
        assert outcome.reason == "signal"
        assert outcome.code == -(signal.SIGKILL if prefix else signal.SIGXCPU)
        assert 0.5 < outcome.cpu_seconds < 4

    def test_memory_is_bounded(self, isolation):
        outcome = run_program(
            "bytearray(200 << 20)", limits=quick(memory_bytes=100 << 20), isolation=isolation
        )
        assert outcome.code == 1
        assert outcome.stderr.endswith(b"MemoryError\n")

    def test_a_file_is_bounded(self, isolation):
        program = "with open('x', 'wb') as file: file.write(bytes(2 << 20))"
        outcome = run_program(program, limits=quick(disk_bytes=1 << 20), isolation=isolation)
        assert outcome.code == 1
        assert b"OSError: [Errno 27]" in outcome.stderr or b"[Errno 28]" in outcome.stderr

    def test_a_program_reads_its_input_and_its_exit_code_counts(self, isolation):
        program = "import sys\nprint(sum(map(int, sys.stdin.read().split())))\nsys.exit(3)"
        outcome = run_program(program, b"40 2\n", isolation=isolation)
        assert (outcome.stdout, outcome.code, outcome.succeeded) == (b"42\n", 3, False)
        assert run_program("pass", isolation=isolation).succeeded

    def test_every_set_has_one_order(self, isolation):
        program = "print({'a', 'b', 'c', 'd', 'e'})"
        assert len({run_program(program, isolation=isolation).stdout for _ in range(3)}) == 1
