"""One source of pins: requirements.in, requirements.txt, pyproject.toml and environment.yml say the same."""

from __future__ import annotations

import contextlib
import hashlib
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml


def canonical_name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.match(r"[A-Za-z0-9._-]+", requirement)[0]).lower()  # type: ignore[index]


@pytest.fixture(scope="module")
def direct(root: Path) -> set[str]:
    lines = (root / "requirements.in").read_text().splitlines()
    return {canonical_name(line) for line in lines if line and not line.startswith("#")}


@pytest.fixture(scope="module")
def pins(root: Path) -> dict[str, str]:
    return dict(line.split("==") for line in (root / "requirements.txt").read_text().splitlines())


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def test_requirements_txt_is_plain_pins(root: Path):
    for line in (root / "requirements.txt").read_text().splitlines():
        assert re.fullmatch(r"[a-z0-9.-]+==[0-9][0-9a-z.]*", line), line  # no +cpu, no hash, no marker, no address


def test_every_direct_need_is_pinned(direct, pins):
    assert direct <= set(pins)


def test_pyproject_needs_exactly_what_requirements_in_lists(direct, project):
    extras = project["optional-dependencies"]
    named = {canonical_name(r) for r in [*project["dependencies"], *extras["book"], *extras["cluster"], *extras["dev"]]}
    assert named == direct - {"aiohttp"}  # aiohttp is papermill's need, listed for the pins alone


def test_training_needs_four_packages(project):
    assert {canonical_name(r) for r in project["dependencies"]} == {"torch", "numpy", "xarray", "h5py"}


def test_versions_stand_in_one_place(project, root: Path):
    assert not any("==" in r for r in project["dependencies"])
    environment = yaml.safe_load((root / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    assert [d for d in conda if "=" in d] == [c for c in conda if c.startswith("python=")]
    assert pip == {"pip": ["-r requirements.txt", "-e ."]}
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()
    minor = int(re.search(r"python=3\.(\d+)", " ".join(conda))[1])
    assert int(low) <= minor < int(high)


def test_the_pins_are_closed_under_what_they_need(pins):
    """Nothing that a pinned package needs here, or on another supported Python, is left to chance."""
    from packaging.requirements import Requirement

    for name in pins:
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # not needed on this Python
        for need in map(Requirement, needs):
            for python in ("3.11", "3.12", "3.13"):
                here = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
                # those come with torch's own exact versions
                apart = name == "torch" and re.match(r"nvidia|cuda|triton", need.name)
                if not apart and (need.marker is None or need.marker.evaluate(here)):
                    assert canonical_name(need.name) in pins, f"{name} needs {need} on Python {python}"
                    assert need.specifier.contains(pins[canonical_name(need.name)], prereleases=True), f"{name}: {need}"


def test_what_is_installed_is_what_is_pinned(pins, root: Path):
    if not (root / ".venv" / ".ready").exists():
        pytest.skip("not the environment that make builds")
    for name, version in pins.items():
        with contextlib.suppress(metadata.PackageNotFoundError):  # a pin for another Python
            assert metadata.version(name).split("+")[0] == version, name


def test_vendored_files_are_the_listed_ones(root: Path):
    vendor = root / "_assets" / "vendor"
    listed = dict(line.split("  ")[::-1] for line in (vendor / "SHA256SUMS").read_text().splitlines())
    files = [path for path in (vendor / "mathjax").rglob("*") if path.is_file()]
    assert listed == {str(one.relative_to(vendor)): hashlib.sha256(one.read_bytes()).hexdigest() for one in files}
    assert (vendor / "mathjax" / "LICENSE").exists()


def test_no_file_names_a_machine_or_an_index(root: Path):
    lists = "requirements.in", "requirements.txt", "pyproject.toml", "environment.yml"
    for name in (*lists, "Makefile", "tools/environment.sh"):
        text = (root / name).read_text()
        outside = r"(?<!127\.0\.0\.1)index-url|file://|/home/|/root/|https://(?!\S*\.org/licenses)"
        assert not re.search(outside, text), name
