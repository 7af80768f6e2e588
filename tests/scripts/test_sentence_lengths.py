"""The lengths of sentences in the project's first pages."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "sentence_lengths.py"


def run(*arguments):
    return subprocess.run([sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True, timeout=60)


def test_readme_and_architecture_have_short_sentences():
    ran = run()
    assert ran.returncode == 0, ran.stdout
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


@pytest.mark.parametrize("text, options, status, said", [
    ("One two three. Four five.", ("--longest", 3), 0, "1 lines, 2 sentences, 2.5 words on average, 3 at most"),
    ("One two three. Four five.", ("--longest", 2), 1, "  3: One two three."),
    ("One two three. Four five.", ("--mean", 2.4), 1, "2.5 words on average"),
    ("| one | `f(a. b)` two |\n|---|:-:|\n| three | four |\n", (), 0, "3 lines, 4 sentences, 1.2 words on average, 2 at most"),
    ("```\nmany words of code that do not count\n```\n- [one](page.md \"title\") two\n- three\n", (), 0, "2 sentences, 1.5 words"),
    ("", (), 0, "0 lines, 0 sentences, 0.0 words")], ids=["short", "long", "mean", "table", "code and list", "empty"])
def test_sentences_are_counted(tmp_path, text, options, status, said):
    page = tmp_path / "page.md"
    page.write_text(text)
    ran = run(page, *options)
    assert ran.returncode == status and said in ran.stdout, ran.stdout
