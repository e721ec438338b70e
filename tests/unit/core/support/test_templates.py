from pathlib import Path

import pytest

from hpcgen.core.support.templates import Template


@pytest.fixture
def template(tmp_path: Path) -> Template:
    path = tmp_path / "example.sh"
    path.write_text("# For readers.\n#: list\nfor:\n    @{words}\nend @{how} ${all[@]}\n#: other\nno place\n")
    return Template(path)


def test_lines_of_a_list_are_indented_as_their_place_is_and_words_stand_inside_a_line(template: Template) -> None:
    assert template.fill("list", words=["a", "b"], how="well") == "for:\n    a\n    b\nend well ${all[@]}\n"


@pytest.mark.parametrize("nothing", ["", []])
def test_a_line_without_a_value_goes(template: Template, nothing: str | list[str]) -> None:
    assert template.fill("list", words=nothing, how="") == "for:\nend  ${all[@]}\n"


def test_what_a_value_says_is_not_filled_again_and_its_own_lines_stay_as_they_are(template: Template) -> None:
    assert template.fill("list", words="'x\ny'\n", how="@{words}") == "for:\n    'x\ny'\nend @{words} ${all[@]}\n"


def test_a_missing_and_a_superfluous_value_are_errors(template: Template) -> None:
    with pytest.raises(KeyError, match="how"):
        template.fill("list", words="")
    with pytest.raises(KeyError, match=r"example\.sh other has no words"):
        template.fill("other", words="")
