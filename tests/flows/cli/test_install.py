"""`ingot completion`: the script that is installed completes, asked as bash asks it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli.install import SHELLS, completion_script
from flows.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's folder with a .bashrc that does not end its last line."""
    (tmp_path / ".bashrc").write_text("alias ll='ls -l'")
    for name in ("XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("INGOT_HOME", str(tmp_path / "ingot"))
    return tmp_path


def install(*arguments):
    return CliRunner().invoke(main, ["completion", "install", *arguments])


@pytest.fixture
def complete(home):
    """`complete(*words)`: what a bash that read .bashrc offers for the last word."""
    command = home / "bin" / "ingot"
    command.parent.mkdir()
    lines = ["import sys", f"sys.path.insert(0, {str(ROOT)!r})", "from ingot_entry import main"]
    command.write_text("\n".join([f"#!{sys.executable} -P", *lines, "main()"]))
    command.chmod(0o755)
    assert install("bash").exit_code == 0

    def ask(*words):
        array = " ".join(f"'{word}'" for word in ("ingot", *words))
        script = (
            f". {home}/.bashrc; COMP_WORDS=({array}); COMP_CWORD={len(words)}; "
            "compopt() { :; }; COMPREPLY=(); _ingot_completion ingot; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, cwd=home,
            env={"PATH": f"{command.parent}:/usr/bin:/bin", "HOME": str(home)},
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout.split()

    return ask


def test_bash_completes_commands_options_and_recipes(complete, home):
    (home / "wood.yaml").write_text("name: wood\n")
    assert set(complete("pre")) == {name for name in COMMANDS if name.startswith("pre")}
    assert complete("run", "quickstart", "--no-p") == ["--no-prefect"]
    assert complete("plan", "w") == ["web", "wood.yaml"]


def test_installing_twice_adds_one_line_and_keeps_the_others(home):
    assert install("bash").exit_code == install("bash").exit_code == 0
    first, *rest = (home / ".bashrc").read_text().splitlines()
    script = home / "ingot" / "completion.bash"
    assert first == "alias ll='ls -l'"
    assert rest == ["# Completion of `ingot`", f'[ -r "{script}" ] && . "{script}"']


def test_fish_reads_its_own_folder(home, monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert install().exit_code == 0
    assert (home / ".config/fish/completions/ingot.fish").read_text().startswith("function _ingot")
    assert not (home / ".zshrc").exists()


def test_an_unknown_shell_is_named_with_those_that_are_known(home, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/csh")
    result = install()
    assert result.exit_code == 2
    assert "csh" in result.stderr
    assert "bash, zsh, fish" in result.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_print_writes_the_script_alone(shell):
    result = CliRunner().invoke(main, ["completion", "print", shell])
    assert result.stdout == completion_script(shell)
    assert f"_INGOT_COMPLETE={shell}_complete" in result.stdout
