"""scripts/run_tests.py counts what ran and fails when it should."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "run_tests.py"
CASES = {
    "good": 'add_test(good "true")',
    "bad": 'add_test(bad "false")',
    "slow": 'add_test(slow "true")\n'
            'set_tests_properties(slow PROPERTIES LABELS "slow")',
    "skipped": 'add_test(skipped "sh" "-c" "exit 77")\n'
               'set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)',
}


def run(folder, cases, *options):
    text = "\n".join(CASES[name] for name in cases)
    (folder / "CTestTestfile.cmake").write_text(text + "\n")
    done = subprocess.run(
        [sys.executable, SCRIPT, folder, "--ctest-only", *options],
        capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("cases,options,status,last", [
    (["good", "slow"], [], 0, "1 passed, 0 failed, 0 skipped"),
    (["good", "bad"], [], 1, "1 passed, 1 failed, 0 skipped"),
    (["good", "skipped"], [], 0, "1 passed, 0 failed, 1 skipped"),
    (["good", "slow"], ["--slow"], 0, "1 passed, 0 failed, 0 skipped"),
    (["good"], ["--slow"], 1, "0 passed, 0 failed, 0 skipped"),
    ([], [], 1, "0 passed, 1 failed, 0 skipped"),
    (["good", "bad"], ["--filter", "good"], 0,
     "1 passed, 0 failed, 0 skipped"),
    (["good"], ["--label", "core"], 0,
     "core: 1 passed, 0 failed, 0 skipped"),
])
def test_counts(tmp_path, cases, options, status, last):
    code, lines = run(tmp_path, cases, *options)
    assert lines[-1] == last, lines
    assert code == status


def test_passing_tests_are_quiet_and_failing_ones_named(tmp_path):
    _, lines = run(tmp_path, ["good", "bad"])
    assert not any("good" in line for line in lines)
    assert any("bad" in line and "Failed" in line for line in lines)
