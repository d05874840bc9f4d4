"""Help, version, usage errors, completion, arch, and where it may lie."""

import json
import re
import resource
import shutil
import subprocess

import pytest
from mlxcel_program import (BUILD, PROGRAM, ROOT, letters,  # noqa: F401
                            needs_program, run)

pytestmark = needs_program
COMMANDS = ["run", "generate", "download", "convert", "arch", "inspect", "list",
            "rm", "score", "template", "bench", "synth", "tokenize",
            "detokenize", "completion"]


def test_help_has_the_commands_and_examples():
    result = run("--help")
    assert result.status == 0 and result.err == ""
    for command in COMMANDS:
        assert re.search(rf"^ +{command}\b", result.text, re.MULTILINE), command
    assert "Examples:\n  mlxcel download" in result.text


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_an_example(command):
    result = run(command, "--help")
    assert result.status == 0 and result.err == ""
    examples = result.text.split("Example", 1)[1]
    assert re.search(rf"^ .*mlxcel {command}\b", examples, re.MULTILINE)


@pytest.mark.parametrize("command", ["generate", "run"])
def test_help_names_the_options(command):
    text = run(command, "--help").text
    for option in ["--model", "--prompt", "--file", "--system", "--max-tokens",
                   "--temp", "--top-k", "--top-p", "--min-p", "--stop",
                   "--repetition-penalty", "--seed", "--no-chat-template"]:
        assert option in text, option


@pytest.mark.parametrize("alias,command", [
    ("gen", "generate"), ("supported", "arch"), ("ls", "list")])
def test_aliases(alias, command):
    assert run(alias, "--help").text == run(command, "--help").text


@pytest.mark.parametrize("command", [
    "run", "generate", "score", "template", "bench", "tokenize", "detokenize"])
def test_commands_with_a_model_take_names(command):
    text = run(command, "--help").text
    for option in ["--model", "--models-dir", "--revision", "--offline"]:
        assert option in text, option
    assert "OWNER/NAME" in text


def test_version():
    result = run("--version")
    assert result.status == 0 and result.err == ""
    first, *others = result.text.splitlines()
    assert re.fullmatch(r"mlxcel \d+\.\d+\.\d+ \(([0-9a-f]{7,}(-dirty)?|unknown)\)",
                        first)
    assert any(re.match(r"cpu: .*(avx512|avx2|generic)", line, re.IGNORECASE)
               for line in others), others
    graph = [line for line in others if line.startswith("graph")]
    assert not graph or re.search(r"MLX \d+\.\d+", graph[0])


@pytest.mark.parametrize("arguments,part", [
    ([], "subcommand"),
    (["frobnicate"], "frobnicate"),
    (["--frobnicate"], "subcommand"),
    (["generate"], "no model"),
    (["generate", "-m"], "--model"),
    (["generate", "-m", "x", "--frobnicate"], "--frobnicate"),
    (["generate", "-m", "x", "-n", "many"], "many"),
    (["generate", "-m", "x", "-n", "-2"], "--max-tokens"),
    (["generate", "-m", "x", "--temp", "hot"], "hot"),
    (["generate", "-m", "x", "--threads", "0"], "--threads"),
    (["generate", "-m", "x", "-p", "a", "-f", "b"], "--file"),
    (["generate", "-m", "./x", "-p", "a", "--device", "abacus"], "no such model"),
    (["convert", "x.gguf"], "output"),
    (["arch", "--yaml"], "--yaml"),
    (["list", "--sort", "colour"], "--sort"),
    (["list", "--json", "--quiet"], "--json"),
    (["list", "--json", "--verbose"], "--json"),
    (["list", "more"], "more"),
    (["download"], "repository"),
    (["download", "a/b/c"], "no repository"),
    (["download", "./x"], "no repository"),
    (["download", "x", "--revision", "../main"], "--revision"),
    (["rm"], "repository"),
    (["rm", "a/b/c"], "no repository"),
    (["rm", "../x"], "no repository"),
    (["rm", "x", "--revision", "../main"], "--revision"),
    (["generate", "-m", ".", "-p", "a", "--revision", "main"], "--revision"),
    (["tokenize", "text"], "no model"),
    (["score", "-m", "x"], "--text"),
    (["score", "-m", "x", "--text", "a", "--tokens", "1"], "--tokens"),
    (["score", "-m", "x", "--tokens", "1,x"], "x"),
    (["synth", "c.json", "out", "--bits", "7"], "--bits"),
    (["synth", "c.json", "out", "--group-size", "48"], "--group-size"),
    (["completion", "cmd"], "cmd"),
    (["bench", "-m", "x", "-n", "0"], "--generate-tokens"),
])
def test_usage_errors_end_with_2(arguments, part, tmp_path):
    result = run(*arguments, cwd=tmp_path)
    if "no such" in part:
        assert result.status == 1
    else:
        assert result.status == 2, result
    assert result.out == b"" and part in result.err
    assert list(tmp_path.iterdir()) == []


def test_unknown_device(letters):  # noqa: F811
    result = run("generate", "-m", letters, "-p", "a", "--device", "abacus")
    assert result.status == 2 and '"abacus"' in result.err
    result = run("generate", "-m", letters, "-p", "a", MLXCEL_DEVICE="abacus")
    assert result.status == 2 and "MLXCEL_DEVICE" in result.err


def complete(shell_function, *words, store=""):
    """`store`: what `mlxcel list --quiet` prints."""
    script = shell_function + (
        f"\nmlxcel() {{ printf '{store}'; }}"
        "\nCOMP_WORDS=(" + " ".join(words) + ")\n"
        f"COMP_CWORD={len(words) - 1}\n_mlxcel\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n')
    done = subprocess.run(["bash", "-c", script], capture_output=True,
                          text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completion(tmp_path):
    script = run("completion", "bash").text
    file = tmp_path / "completion.bash"
    file.write_text(script)
    subprocess.run(["bash", "-n", file], check=True)
    assert complete(script, "mlxcel", "ge") == ["generate"]
    assert set(COMMANDS) <= set(complete(script, "mlxcel", "''"))
    assert complete(script, "mlxcel", "generate", "--max") == ["--max-tokens"]
    assert complete(script, "mlxcel", "gen", "--max") == ["--max-tokens"]
    assert "--logits" in complete(script, "mlxcel", "score", "--")
    assert "--logits" not in complete(script, "mlxcel", "run", "--")
    store = "one/model\\ntwo/model\\n"
    for command in ("run", "rm", "gen", "tokenize"):
        assert complete(script, "mlxcel", command, "one/", store=store) == [
            "one/model"]
    assert complete(script, "mlxcel", "convert", "one/", store=store) == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_completion(shell, tmp_path):
    script = run("completion", shell).text
    for command in COMMANDS:
        assert command in script
    assert "max-tokens" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its script is not parsed")
    file = tmp_path / "script"
    file.write_text(script)
    subprocess.run([shell, "-n", file], check=True)


def test_arch():
    text = run("arch").text
    listed = json.loads(run("arch", "--json").text)
    families = listed["families"]
    assert re.match(r"\d+\.\d+\.\d+", listed["mlxcel_version"])
    assert f"({len(families)})" in text.splitlines()[0]
    types = {name for family in families for name in family["model_types"]}
    assert {"llama", "mistral", "qwen2", "qwen3", "gemma", "jamba"} <= types
    assert len({family["id"] for family in families}) == len(families)
    for family in families:
        mark = "" if family["status"] == "built" else " [recognised]"
        assert f"  - {family['display_name']}{mark}\n" in text
        assert family["model_types"] and family["runtimes"]
        assert set(family) == {
            "id", "display_name", "category", "model_types", "aliases",
            "runtimes", "modalities_in", "output", "backends",
            "tensor_parallel", "pipeline_parallel", "drafters", "kv_modes",
            "group", "architectures", "directory_route", "weight_route",
            "status"}


def test_arch_built():
    text = run("arch", "--built").text
    families = json.loads(run("arch", "--built", "--json").text)["families"]
    assert families and all(one["status"] == "built" for one in families)
    assert "recognised" not in text
    assert f"({len(families)}), {len(families)} built" in text


def test_arch_is_quick():
    """In seconds of the processor, which other programs don't lengthen."""
    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    times = []
    for _ in range(5):
        begin = spent()
        subprocess.run([PROGRAM, "arch", "--json"], check=True,
                       stdout=subprocess.DEVNULL)
        times.append(spent() - begin)
    assert min(times) < 0.03, times


def test_architectures_document_is_current():
    document = ROOT / "docs" / "architectures.md"
    assert document.read_text() == run("arch", "--markdown").text, (
        "docs/architectures.md: run make architectures")


def test_works_from_another_directory(letters, tmp_path):  # noqa: F811
    result = run("generate", "-m", "model", "-p", "x", "--no-chat-template",
                 cwd=letters.parent)
    assert (result.status, result.out) == (0, b"yz\n"), result.err


def test_installed_and_moved_it_still_runs(tmp_path, letters):  # noqa: F811
    if not (BUILD / "cmake_install.cmake").exists():
        pytest.skip(f"{BUILD} is no build folder")
    done = subprocess.run(
        ["cmake", "--install", BUILD, "--prefix", tmp_path / "first"],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "first").rename(tmp_path / "second")
    moved = tmp_path / "second" / "bin" / "mlxcel"
    assert moved.exists() and moved != PROGRAM
    result = run("generate", "-m", letters, "-p", "x", "--no-chat-template",
                 program=moved)
    assert (result.status, result.out) == (0, b"yz\n"), result.err
    linked = subprocess.run(["readelf", "-d", moved], capture_output=True,
                            text=True, check=True).stdout
    for path in re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", linked):
        for entry in path.split(":"):
            assert entry.startswith("$ORIGIN"), path
