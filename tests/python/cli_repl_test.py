"""`run`: the chat on a terminal (a pseudo terminal here) and through a pipe."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time

import pytest
from mlxcel_program import (  # noqa: F401
    LETTERS, PROGRAM, endless_letters, environment, expect_failure,
    letter_model, letters, needs_program, run)

pytestmark = needs_program


def chat(model, *lines, options=(), **variables):
    return run("run", model, *options, stdin="\n".join(lines).encode() + b"\n",
               MLXCEL_PRINT_TOKEN_IDS="1", **variables)


def prompts(result):
    """What the model was given, turn by turn."""
    return [bytes(json.loads(ids)).decode() for ids in re.findall(
        "^prompt ids: (.*)$", result.err, re.MULTILINE)]


# --- through a pipe ---

def test_piped_lines_are_turns_of_one_conversation(letters):  # noqa: F811
    result = chat(letters, "Hi", "", "Again")
    assert result.status == 0, result.err
    assert result.text == (LETTERS + "\n") * 2
    first = "user: Hi\nassistant:"
    assert prompts(result) == [
        first, f"user: Hi\nassistant: {LETTERS}\nuser: Again\nassistant:"]
    assert "standard input" in result.err and ">>>" not in result.err


def test_piped_commands(letters):  # noqa: F811
    result = chat(letters, "Hi", "/clear", "Ho", "/?", "/frob nicate", "/bye",
                  "never said", options=["--system", "S"])
    assert result.status == 0, result.err
    assert result.text == (LETTERS + "\n") * 2
    assert prompts(result) == ["system: S\nuser: Hi\nassistant:",
                               "system: S\nuser: Ho\nassistant:"]
    assert "/clear forgets" in result.err
    assert 'Unknown command "/frob nicate"' in result.err


def test_piped_message_of_several_lines(letters):  # noqa: F811
    result = chat(letters, '"""one', "", '/bye two""" dropped', '"""three"""',
                  '"""', "four", '"""', '"""unclosed')
    said = [re.findall(r"user: (.*?)\nassistant:", prompt, re.DOTALL)[-1]
            for prompt in prompts(result)]
    assert said == ["one\n\n/bye two", "three", "four", "unclosed"]


def test_last_line_may_lack_its_end(letters):  # noqa: F811
    assert run("run", letters, stdin=b"Hi").text == LETTERS + "\n"
    assert run("run", letters, stdin=b"").out == b""


@pytest.mark.parametrize("line", [b"\xff", b"a\0b"])
def test_piped_bytes_that_are_no_text(letters, line):  # noqa: F811
    result = run("run", letters, stdin=line + b"\n")
    expect_failure(result, 1, "message")


def test_no_template(tmp_path):
    model = letter_model(tmp_path / "model", template=None)
    result = chat(model, "Hi")
    assert prompts(result) == ["User: Hi\nAssistant:"]
    assert "base model" in result.err
    result = chat(model, "Hi", "x", options=["--no-chat-template", "-n", "2"])
    assert prompts(result) == ["Hi", "Hi\nab\nx"] or prompts(result) == [
        "Hi", "Hi\njk\nx"], result.err
    assert "base model" not in result.err


def test_with_a_prompt_it_asks_once(letters):  # noqa: F811
    result = run("run", letters, "-p", "Hi", stdin=b"ignored\n")
    assert (result.status, result.text) == (0, LETTERS + "\n")


def test_a_conversation_that_outgrows_the_context(letters):  # noqa: F811
    result = chat(letters, "Hi", "Ho", options=["-c", "60"])
    assert result.status == 1
    assert result.text == LETTERS + "\n"
    assert "the context holds 60" in result.err.splitlines()[-1]


# --- on a terminal ---

class Terminal:
    """The program on a pseudo terminal of its own."""

    def __init__(self, *arguments, **variables):
        self.master, slave = pty.openpty()
        settings = termios.tcgetattr(slave)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, settings)

        def own_terminal():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.child = subprocess.Popen(
            [PROGRAM, *arguments], stdin=slave, stdout=slave, stderr=slave,
            env=environment(**variables), preexec_fn=own_terminal)
        os.close(slave)
        self.seen = ""

    def read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other side is closed
            return False
        self.seen += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)

    def expect(self, text, seconds=30):
        """What came up to and with the text."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0 and self.read(left), (text, self.seen[-2000:])
        end = self.seen.index(text) + len(text)
        before, self.seen = self.seen[:end], self.seen[end:]
        return before

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self, seconds=30):
        while self.read(seconds):
            pass
        return self.child.wait(timeout=seconds)

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.master)


@pytest.fixture
def terminal():
    opened = []

    def open_one(*arguments, **variables):
        opened.append(Terminal(*arguments, **variables))
        return opened[-1]
    yield open_one
    for one in opened:
        one.close()


def test_terminal_banner_turns_and_bye(letters, terminal):  # noqa: F811
    session = terminal("run", letters)
    banner = session.expect(">>> ")
    for command in ("/bye", "/clear", "/?", '"""'):
        assert command in banner
    session.type("Hi\n")
    reply = session.expect(">>> ")
    assert reply.startswith(LETTERS + "\n[Generated 27 tokens in "), reply
    session.type("/clear\n")
    assert "empty" in session.expect(">>> ")
    session.type("/help\n")
    assert "/clear" in session.expect(">>> ")
    session.type("/frob\n")
    assert 'Unknown command "/frob"' in session.expect(">>> ")
    session.type('"""a\n')
    session.expect("... ")
    session.type('b"""\n')
    assert LETTERS in session.expect(">>> ")
    session.type("\n")
    assert session.expect(">>> ") == ">>> "
    session.type("/bye\n")
    assert session.end() == 0


def test_terminal_end_of_input_says_goodbye(letters, terminal):  # noqa: F811
    session = terminal("run", letters)
    session.expect(">>> ")
    session.type("\x04")
    assert session.end() == 0
    assert "Bye" in session.seen


def test_terminal_interrupt_at_the_prompt_is_a_hint(  # noqa: F811
        letters, terminal):
    session = terminal("run", letters)
    session.expect(">>> ")
    session.type("half a mess\x03")
    assert "/bye" in session.expect(">>> ")
    session.type('"""two\n')
    session.expect("... ")
    session.type("\x03")
    assert "/bye" in session.expect(">>> ")
    session.type("Hi\n")
    assert session.expect(">>> ").startswith(LETTERS)
    session.type("/bye\n")
    assert session.end() == 0


def test_terminal_interrupt_cancels_the_turn_alone(  # noqa: F811
        endless_letters, terminal):
    session = terminal("run", endless_letters)
    session.expect(">>> ")
    for _ in range(2):
        session.type("Hi\n")
        session.expect(LETTERS * 2)
        session.type("\x03")
        assert "\n[interrupted]\n" in session.expect(">>> ")
    session.type("/bye\n")
    assert session.end() == 0


def test_terminal_turn_that_fails_leaves_the_chat(  # noqa: F811
        letters, terminal):
    session = terminal("run", letters, "-c", "60")
    session.expect(">>> ")
    session.type("Hi\n")
    session.expect(">>> ")
    session.type("Ho\n")
    assert "error: " in session.expect(">>> ")
    session.type("/clear\n")
    session.expect(">>> ")
    session.type("Hi\n")
    assert session.expect(">>> ").startswith(LETTERS)
    session.type("/bye\n")
    assert session.end() == 0


def test_generate_on_a_terminal_chats(letters, terminal):  # noqa: F811
    session = terminal("generate", "-m", letters)
    session.expect(">>> ")
    session.type("/bye\n")
    assert session.end() == 0


def test_generate_on_a_terminal_shows_status_beside(  # noqa: F811
        letters, terminal):
    session = terminal("generate", "-m", letters, "-p", "Hi")
    assert session.end() == 0
    assert re.search(rf"loaded in .*\n{LETTERS}\n\[Generated ", session.seen,
                     re.DOTALL), session.seen


def test_interrupt_while_a_pipe_is_awaited_ends_with_130(letters):  # noqa: F811
    child = subprocess.Popen([PROGRAM, "run", letters], env=environment(),
                             stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stderr.readline()
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=30)
    assert child.returncode == 130
