"""Random and spoiled input: never a crash, a hang or a silent misreading.

The quick target reads thousands of spoiled lines, the long one hundreds of thousands; each is held
against a slow reader that follows the documented grammar token by token.
"""

from __future__ import annotations

import io
import random
import re
import tarfile
import warnings
import zipfile

import numpy as np
import pytest

from directrank.data.archives import open_archive
from directrank.data.svmlight import TextFormat, parse
from directrank.system.errors import DataError

NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LARGEST = float(np.finfo(np.float32).max)
FEATURES = 5


class BadLineError(Exception):
    """A line that must be refused."""


def number(token: bytes, clip: float | None) -> float:
    if not NUMBER.fullmatch(token):
        raise BadLineError(token)
    value = float(token)
    if clip is not None:
        value = min(max(value, -clip), clip)
    if abs(value) > LARGEST:
        raise BadLineError(token)
    return value


def slow_line(tokens: list[bytes], table: bool, clip: float | None):
    label = number(tokens[0], clip)
    if len(tokens) < 2:
        raise BadLineError("no query")
    query = tokens[1]
    if not table:
        if not query.startswith(b"qid:"):
            raise BadLineError(query)
        query = query[4:]
    if not re.fullmatch(rb"-?[0-9]{1,19}", query) or abs(int(query)) >= 2**63:
        raise BadLineError(query)
    row: dict[int, float] = {}
    for position, token in enumerate(tokens[2:], start=1):
        index, value = (b"%d" % position, token) if table else token.partition(b":")[::2]
        if not re.fullmatch(rb"[0-9]+", index) or not 1 <= int(index) <= FEATURES:
            raise BadLineError(token)
        if int(index) in row:
            raise BadLineError(token)
        row[int(index)] = 0.0 if value == b"NULL" else number(value, clip)
    if table and len(row) != FEATURES:
        raise BadLineError("values")
    return label, int(query), [row.get(index, 0.0) for index in range(1, FEATURES + 1)]


def slow(text: bytes, table: bool, clip: float | None):
    """The good rows and the numbers of the bad lines."""
    rows, bad = [], []
    for line_number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        tokens = line.partition(b"#")[0].split()
        if not tokens:
            continue
        try:
            rows.append((line_number, *slow_line(tokens, table, clip)))
        except BadLineError:
            bad.append(line_number)
    return rows, bad


NUMBERS = [
    *(b"0 1 -1 2.5 0.333333 +7 .5 5. 1e3 1E-3 -0 00012 123456789.125 1e38 3.4028234e38").split(),
    *(b"0.1000000014901161193847656250 99999999999999999999999 1.8e308 1e-400 4.9e-324").split(),
    *(b"NULL nan inf 1e 1e+ . + - 1.2.3 0x1 1_0 1,5 e5 1e39 -3.5e38 1e99999999999999").split(),
]
TOKENS = [
    b"qid:1",
    b"qid:",
    b"qid:-3",
    b"qid:9223372036854775807",
    b"#",
    b":",
    b"1:",
    b"0:1",
    b"6:1",
]
BYTES = b"0123456789 .:-+eE#\t\r\n\x0b\x00\xff qidNUL"


def line(chance: random.Random, table: bool) -> bytes:
    value = lambda: chance.choice(NUMBERS[: 19 if chance.random() < 0.97 else None])  # noqa: E731
    tokens = [b"%d" % chance.randrange(5), b"%d" % chance.randrange(1, 99)]
    if table:
        tokens += [value() for _ in range(FEATURES)]
    else:
        tokens[1] = b"qid:" + tokens[1]
        indices = list(range(1, FEATURES + 1))
        if chance.random() < 0.2:
            chance.shuffle(indices)
        tokens += [b"%d:%s" % (i, value()) for i in indices if chance.random() < 0.8]
    if chance.random() < 0.1:
        at = chance.randrange(len(tokens) + 1)
        tokens[at : at + chance.randrange(2)] = [chance.choice(TOKENS)]
    text = bytearray(chance.choice([b" ", b" ", b"  ", b"\t"]).join(tokens))
    if chance.random() < 0.3:
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(text) + 1)
            text[at : at + chance.randrange(3)] = bytes(
                chance.choice(BYTES) for _ in range(chance.randrange(3))
            )
    return bytes(text) + chance.choice([b"\n", b"\n", b"\r\n", b" #docid = G\xe9\n", b"\n\n"])


def check_lines(seed: int, n_lines: int) -> None:
    chance = random.Random(seed)
    table = chance.random() < 0.2
    clip = chance.choice([None, None, 1e6])
    text = b"".join(line(chance, table) for _ in range(n_lines))
    if chance.random() < 0.3:
        text = text.rstrip(b"\n")
    bad: list[int] = []
    blocks = list(
        parse(
            io.BytesIO(text),
            TextFormat(FEATURES, "table" if table else "svmlight", clip=clip),
            "fuzz",
            threads=chance.choice([1, 2]),
            piece=chance.choice([16, 100, 1000, 1 << 20]),
            on_error=lambda line_number, text, reason: bad.append(line_number),
        )
    )
    expected, expected_bad = slow(text, table, clip)
    assert bad == expected_bad, f"seed {seed}"
    got = [
        (int(n), float(label), int(query), row.tolist())
        for block in blocks
        for row, label, query, n in zip(*block, strict=True)
    ]
    single = [
        (n, float(np.float32(label)), query, np.array(row).astype(np.float32).tolist())
        for n, label, query, row in expected
    ]
    assert got == single, f"seed {seed}"


def test_spoiled_lines_are_read_as_the_grammar_says_or_refused():
    for seed in range(30):
        check_lines(seed, 100)


@pytest.mark.long
def test_a_quarter_of_a_million_spoiled_lines_are_read_as_the_grammar_says_or_refused():
    for seed in range(1000, 2250):
        check_lines(seed, 200)


def test_random_bytes_are_refused_or_nothing():
    for seed in range(300):
        content = random.Random(seed).randbytes(200)
        bad: list[int] = []
        note = lambda n, text, why, bad=bad: bad.append(n)  # noqa: E731
        blocks = parse(io.BytesIO(content), TextFormat(2), "x", on_error=note)
        rows, expected = slow(content, False, None)
        assert sum(len(block.labels) for block in blocks) == len(rows)
        assert bad == expected


CONTENT = {"Fold1/train.txt": b"1 qid:1 1:1 2:2\n" * 300, "Fold1/test.txt": b"0 qid:2 1:1\n" * 50}


def containers() -> dict[str, bytes]:
    result = {}
    for name, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tar.bz2", "w:bz2")):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode=mode) as archive:
            for path, content in CONTENT.items():
                info = tarfile.TarInfo(path)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        result[name] = buffer.getvalue()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in CONTENT.items():
            archive.writestr(path, content)
    result["a.zip"] = buffer.getvalue()
    return result


def check_archive(tmp_path, name: str, content: bytes, chance: random.Random) -> None:
    spoiled = bytearray(content)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(spoiled))
        spoiled[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(4))
    path = tmp_path / name
    path.write_bytes(spoiled)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive = open_archive(path)
            contents = {}
            for member in archive.members:
                with archive.open(member) as stream:
                    contents[member] = b"".join(iter(lambda s=stream: s.read(4096), b""))
    except DataError:
        return
    # A tar has no checksum of its content, so its bytes may differ; sizes and streams must agree.
    assert {member: len(data) for member, data in contents.items()} == archive.members
    if not name.endswith(".tar"):
        assert set(contents.values()) <= set(CONTENT.values())


@pytest.mark.parametrize("name", containers())
def test_spoiled_archives_are_refused_or_whole(tmp_path, name):
    content = containers()[name]
    for seed in range(150):
        check_archive(tmp_path, name, content, random.Random(seed))


@pytest.mark.long
@pytest.mark.parametrize("name", containers())
def test_thousands_of_spoiled_archives_are_refused_or_whole(tmp_path, name):
    content = containers()[name]
    for seed in range(1000, 6000):
        check_archive(tmp_path, name, content, random.Random(seed))
