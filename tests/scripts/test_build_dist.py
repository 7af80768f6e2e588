"""Distributions: the same files twice, what an sdist contains, and the checks of a release."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"
sys.path.insert(0, str(SCRIPTS))
try:
    import build_dist
    import check_dist
    import check_install
    import check_torch
    import check_version
finally:
    sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A project of a few files, with the real pyproject.toml, setup.py and MANIFEST.in."""
    root = tmp_path_factory.mktemp("project")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "NOTICE", "conftest.py", "src/mxnet/libinfo.py",
                 "src/mxnet/py.typed", "src/mxnet/kernels/runtime/build.py", "src/mxnet/kernels/memory/transpose.cpp",
                 "src/mxnet/kernels/runtime/vectors.h", "src/mxnet/kernels/runtime/streaming_stores.h", "docs/gpu.md", "tests/forked.py",
                 "examples/digits.py", "packaging/mxnet/pyproject.toml", "packaging/mxnet/README.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for folder in ("src/mxnet", "src/mxnet/kernels", "src/mxnet/kernels/runtime", "src/mxnet/kernels/memory"):
        (root / folder / "__init__.py").write_text("")
    setup = (root / "setup.py").read_text()
    (root / "setup.py").write_text(re.sub('^ADDRESS = ".*"$', 'ADDRESS = "https://host.example/remex"', setup, count=1, flags=re.MULTILINE))
    return root


@pytest.fixture(scope="module")
def twice(small, tmp_path_factory):
    """Two builds of everything, in other folders and with other times of the sources."""
    made = []
    for number in range(2):
        out, root = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("sources") / f"copy{number}"
        shutil.copytree(small, root, copy_function=shutil.copy if number else shutil.copy2)
        command = [sys.executable, str(SCRIPTS / "build_dist.py"), "--root", str(root), "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
        assert done.returncode == 0, done.stdout + done.stderr
        made.append(out)
    return made


def test_the_same_sources_give_the_same_hashes(twice):
    first, second = ((out / "SHA256SUMS").read_text() for out in twice)
    assert first == second and len(first.splitlines()) == 3


def test_the_sdist_has_what_its_tests_need(twice):
    path, = twice[0].glob("*.tar.gz")
    with tarfile.open(path) as archive:
        members = {member.name.partition("/")[2]: member for member in archive}
    assert {"docs/gpu.md", "examples/digits.py", "tests/forked.py", "conftest.py", "packaging/mxnet/pyproject.toml",
            "src/mxnet/kernels/runtime/vectors.h"} <= members.keys()
    assert {member.mtime for member in members.values()} == {1700000000} and {member.uid for member in members.values()} == {0}


def test_the_local_distribution_has_no_modules_and_lies_apart(twice):
    path, = (twice[0] / "local").iterdir()
    assert path.name == "mxnet-1.9.1.post1-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        metadata = archive.read("mxnet-1.9.1.post1.dist-info/METADATA").decode()
    assert not [name for name in names if not name.startswith("mxnet-1.9.1.post1.dist-info/")]
    assert "Requires-Dist: remexnet>=0.1.0\n" in metadata and "Classifier: Private :: Do Not Upload\n" in metadata


def test_the_wheels_metadata_are_complete(twice):
    path, = twice[0].glob("remexnet-*.whl")
    with zipfile.ZipFile(path) as archive:
        metadata = archive.read("remexnet-0.1.0.dist-info/METADATA").decode()
        scripts = archive.read("remexnet-0.1.0.dist-info/entry_points.txt").decode()
    for line in ("Author: The Remex authors", "License-Expression: Apache-2.0", "Classifier: Typing :: Typed", "Requires-Python: >=3.10",
                 "Project-URL: Issues, https://host.example/remex/issues", "Provides-Extra: completion"):
        assert line + "\n" in metadata
    assert "remex = mxnet.tools.cli:main" in scripts and "im2rec = mxnet.tools.im2rec:main" in scripts


def test_a_file_that_is_missing_is_named(tmp_path):
    path = tmp_path / "remexnet-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in check_dist.IN_WHEEL[1:]:
            archive.writestr(name, "")
    assert check_dist.missing(path) == ["mxnet/py.typed"]


@pytest.mark.parametrize(("tag", "fits"), [("manylinux_2_28_x86_64", True), ("manylinux_2_17_x86_64", True), ("manylinux_2_34_x86_64", False),
                                           ("linux_x86_64", False)])
def test_newer_systems_than_manylinux_2_28_are_refused(tag, fits):
    text = f'a.whl is consistent with\nthe following platform tag: "{tag}".'
    assert (check_dist.platform_problem(text) is None) is fits


def test_the_names_of_files_that_distributions_need_exist():
    assert not [name for name in check_dist.IN_SDIST if not (ROOT / name).is_file()]
    assert not [name for name in check_dist.IN_WHEEL if not (ROOT / "src" / name).is_file()]


def test_tag_version_and_changelog_agree():
    text = "## [Unreleased]\n\n## [0.2.0] - 2026-11-27\n"
    place = "https://host.example/remex"
    assert check_version.problems("v0.2.0", "0.2.0", text, place) == check_version.problems(None, "0.3.0", text, "") == []
    assert check_version.problems("v0.3.0", "0.2.0", text, place) == ["the tag is v0.3.0, and mxnet.libinfo.remex_version asks for v0.2.0"]
    assert check_version.problems("v0.3.0", "0.3.0", text, place) == ["CHANGELOG.md has no heading '## [0.3.0] - YYYY-MM-DD'"]
    assert check_version.problems("v0.2.0", "0.2.0", text, "") == [
        "setup.py has no ADDRESS: set the project's, such as https://github.com/NAME/remex, so that the metadata have links"]
    assert check_version.main([]) == 0


def test_no_link_is_dead_while_the_project_has_no_public_address():
    """A reserved domain stands for no place: setup.py has the real address, or none."""
    assert ".example" not in check_version.address() and ".example" not in (ROOT / "pyproject.toml").read_text()


def test_the_range_of_torch():
    text = 'dependencies = ["torch>=2.11,<2.14"]'
    assert [check_torch.requirement(wanted, text) for wanted in ("oldest", "newest", "2.12.1")] == ["torch==2.11.*", "torch==2.13.*", "torch==2.12.1"]
    assert check_torch.requirement("newest", (ROOT / "pyproject.toml").read_text("utf-8")).startswith("torch==2.")


def test_the_package_that_requires_mxnet_is_a_wheel(tmp_path):
    check_install.write_tiny_package(tmp_path)
    with zipfile.ZipFile(tmp_path / "needs_mxnet-1.0-py3-none-any.whl") as archive:
        assert "Requires-Dist: mxnet>=1.6\n" in archive.read("needs_mxnet-1.0.dist-info/METADATA").decode()
    assert "net.export('model')" in check_install.readme_program()


def test_sources_without_git_have_a_time(tmp_path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert build_dist.commit_time(tmp_path) == 315532800
