#!/usr/bin/env python3
"""Runs the tests and counts them.

    run_tests.py BUILD_DIR [--slow] [--jobs N] [--filter REGEX]
                 [--ctest-only] [--label WORD]

First ctest in BUILD_DIR, then, where .venv-oracle exists, pytest on
tests/python and tests/oracle. Tests find the program through MLXCEL_BUILD_DIR
and real models through MLXCEL_MODELS_DIR, which are set here. Slow tests
(ctest label `slow`, pytest marker `slow`) run with --slow alone. Failures are
printed in full. The last line reads `N passed, N failed, N skipped`, after
`WORD: ` if a label is given; the exit status is 1 if any failed or none ran.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv-oracle" / "bin" / "python"
STARTED_OR_PASSED = re.compile(
    r"^\s*(Start\s+\d+:|\d+/\d+ Test\s+#\d+: .*\bPassed\b)")
PROGRESS_EVERY = 500
TEST_SECONDS = 300


def say(text):
    print(f"[test] {text}", flush=True)


def count(report):
    """(passed, failed, skipped) of a JUnit file."""
    passed = failed = skipped = 0
    for case in xml.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def stream(command, quiet):
    """Runs a command, printing its lines except those that quiet matches."""
    hidden = 0
    with subprocess.Popen(command, cwd=ROOT, text=True, errors="replace",
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as child:
        for line in child.stdout:
            if not (quiet and quiet.match(line)):
                print(line, end="", flush=True)
                continue
            hidden += "Passed" in line
            if "Passed" in line and hidden % PROGRESS_EVERY == 0:
                say(f"{hidden} passed so far")
    return child.returncode


def run(name, command, report, quiet=None, fine=(0,)):
    """Runs one runner. A crash without a report, or an exit status that is
    not fine, counts as one failure."""
    say(f"{name}: {' '.join(str(part) for part in command)}")
    start = time.monotonic()
    status = stream(command, quiet)
    if not report.exists():
        say(f"{name}: no report, exit status {status}")
        return 0, 1, 0
    passed, failed, skipped = count(report)
    if status not in fine and failed == 0:
        say(f"{name}: exit status {status}")
        failed = 1
    seconds = time.monotonic() - start
    say(f"{name}: {passed} passed, {failed} failed, {skipped} skipped "
        f"in {seconds:.0f} s")
    return passed, failed, skipped


def run_ctest(options, folder):
    report = folder / "ctest.xml"
    command = ["ctest", "--test-dir", options.build, "-j", str(options.jobs),
               "--output-on-failure", "--output-junit", report,
               "--timeout", str(TEST_SECONDS),
               "--no-tests=" + ("ignore" if options.slow else "error")]
    if options.filter:
        command += ["-R", options.filter]
    command += ["-L" if options.slow else "-LE", "^slow$"]
    return run("ctest", command, report, STARTED_OR_PASSED)


def run_pytest(options, folder):
    report = folder / "pytest.xml"
    command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider",
               "-m", "slow" if options.slow else "not slow",
               f"--junitxml={report}", "tests/python", "tests/oracle"]
    if options.filter:
        command += ["-k", options.filter]
    # pytest ends with 5 where a selection matches nothing.
    return run("pytest", command, report, fine=(0, 5))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--filter", default="")
    parser.add_argument("--ctest-only", action="store_true")
    parser.add_argument("--label", default="")
    options = parser.parse_args()
    os.environ["MLXCEL_BUILD_DIR"] = str(Path(options.build).resolve())
    os.environ["MLXCEL_MODELS_DIR"] = str(ROOT / ".deps" / "models")
    totals = [0, 0, 0]
    with tempfile.TemporaryDirectory() as folder:
        runners = [run_ctest]
        if PYTHON.exists() and not options.ctest_only:
            runners.append(run_pytest)
        for runner in runners:
            for i, part in enumerate(runner(options, Path(folder))):
                totals[i] += part
    passed, failed, skipped = totals
    label = options.label + ": " if options.label else ""
    print(f"{label}{passed} passed, {failed} failed, {skipped} skipped",
          flush=True)
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
