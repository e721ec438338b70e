"""Keras beside TensorFlow: the release that fits, and what it adds to TensorFlow's own packages."""

from __future__ import annotations

import pytest

import hpcgen
from hpcgen.core.errors import ConflictError


@pytest.mark.parametrize(
    ("stack", "block", "version", "tensorflow"),
    [
        ("tf", "keras", "3.15.1", "2.21.0"),
        ("tf", "tf_keras", "2.21.0", "2.21.0"),
        ("tf-ngraph", "keras", "2.3.1", "1.14.0"),
    ],
)
def test_the_release_that_fits_is_taken(stack: str, block: str, version: str, tensorflow: str) -> None:
    plan = hpcgen.plan("workstation", stack, add=[block])
    assert {f"{block} {version}", f"tensorflow {tensorflow}"} <= {each.label for each in plan.blocks}
    kit = hpcgen.render(plan)
    assert f"{block} {version} loss" in kit.files["selftest.sh"].text
    listed = kit.files[f"files/requirements/{block.replace('_', '-')}-{version}.txt"].text.splitlines()
    assert all(" --hash=sha256:" in line for line in listed)
    # TensorFlow's packages are not changed: none of them is listed again in another version.
    (theirs,) = [name for name in kit.files if name.startswith("files/requirements/tensorflow")]
    own = {line.split("==")[0]: line for line in kit.files[theirs].text.splitlines()}
    assert all(own.get(line.split("==")[0], line) == line for line in listed)


def test_tf_keras_is_what_tensorflow_shows() -> None:
    kit = hpcgen.render(hpcgen.plan("workstation", "tf", add=["tf_keras"]))
    assert 'TF_USE_LEGACY_KERAS="1"' in kit.recipe or "TF_USE_LEGACY_KERAS=1" in kit.recipe


def test_a_tensorflow_with_a_keras_of_its_own_is_not_given_another() -> None:
    with pytest.raises(ConflictError):
        hpcgen.plan("workstation", "tf", add=["keras"], settings={"tensorflow.version": "2.15.1"})
