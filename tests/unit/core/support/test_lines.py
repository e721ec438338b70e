"""What programs print, as lines of a length that does no harm."""

from __future__ import annotations

from hpcgen.core.support.processes import Lines, Update


def taken(*pieces: bytes, longest: int = 10) -> list[str]:
    lines = Lines(longest)
    return [each for piece in pieces for each in lines.take(piece)] + list(lines.rest())


def test_lines_are_put_together_from_pieces() -> None:
    assert taken(b"a", b"b\n\nc", b"d\r\n", b"e") == ["ab", "", "cd", "e"]
    assert taken(b"a\n") == ["a"] and taken() == []
    assert taken("\N{EURO SIGN}\n".encode()[:2], b"\n") == ["\N{REPLACEMENT CHARACTER}"]


def test_what_is_written_over_is_told_as_it_comes() -> None:
    found = taken(b"1 %\r2 %", b"\r3 %", b"\n", longest=20)
    assert found == ["2 %", "3 %", "1 %\r2 %\r3 %"]
    assert [isinstance(each, Update) for each in found] == [True, True, False]


def test_long_lines_are_cut_and_say_so() -> None:
    cut = "0123456789 … (2 more bytes of this line were left out)"
    assert taken(b"0123456789ab\nx\n") == [cut, "x"]
    assert taken(b"01234", b"56789a", b"b", b"\nx") == [cut, "x"]
    assert taken(b"0123456789ab") == [cut]
    # Progress goes on to be told in a line that is too long.
    assert taken(b"0123456789\r", b"90 %\r91 %")[1] == "91 %"
