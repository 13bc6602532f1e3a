"""No page names a verb or an option that is not there; every command that is shown is understood.

The commands are run by the tests of their pages; here all texts are read for what they name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import cyclopts
import pytest

from pages import ROOT
from searchbench.cli import app

PAGES = sorted(
    path.relative_to(ROOT)
    for folder, pattern in (
        (ROOT, "*.md"), (ROOT / "docs", "**/*.md"), (ROOT / "studies", "*.toml"),
    )
    for path in folder.glob(pattern)
)  # fmt: skip
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
# Options that our pages name of other programs.
FOREIGN = {
    "BENCHMARKS.md": {"--latency-correction"},  # oha
    "ENGINES.md": {"--add-exports", "--add-modules", "--add-opens"},  # java
}
# Folders that tell a person what to do, and the options of other programs that they name.
TELLING = {
    "analysis": {"--cache-size"},  # droonga-http-server
    "measure": set[str](),
    "study": set[str](),
    "terminal": set[str](),
}


def shown(text: str) -> list[str]:
    """The lines of blocks with a command of ours: with a prompt, in a pipe, over several lines."""
    blocks = "\n".join(FENCE.findall(text))
    indented = "\n".join(re.findall(r"^ +\$ .*$", FENCE.sub("", text), re.MULTILINE))
    lines = f"{blocks}\n{indented}".replace("\\\n", " ").splitlines()
    found = (re.search(r"(?:^|\| |\$ )searchbench (.*)", line) for line in lines)
    return [match[1] for match in found if match]


def spoken(text: str) -> list[str]:
    """Commands of ours in backticks within a sentence, which may go on in the next line."""
    found = re.findall(r"`searchbench\s([^`]*)`", FENCE.sub("", text))
    return [re.sub(r"\s+", " ", each) for each in found]


def options_of(verb: cyclopts.App) -> set[str]:
    """Its options by all of their names."""
    if verb.default_command is None:
        return {"--help"}
    found = verb.assemble_argument_collection()
    return {name for argument in found for name in argument.names} | {"--help"}


def verb_of(words: list[str]) -> tuple[cyclopts.App, list[str]]:
    """The verb, or the verb of a verb, and the rest; AssertionError where there is none."""
    assert words[0] in app, f"there is no verb {words[0]}"
    found, rest = app[words[0]], words[1:]
    while rest and rest[0] in found and not rest[0].startswith("-"):
        found, rest = found[rest[0]], rest[1:]
    assert found.default_command is not None or not rest or rest[0] in found, (
        f"there is no {words[0]} {rest[0]}"
    )
    return found, rest


def named(rest: list[str]) -> Iterator[str]:
    """The options among the words of a command; of ``--set.rows`` the part before the point."""
    for word in rest:
        if re.match(r"--?[a-z]", word):
            yield word.partition("=")[0].partition(".")[0]


def words_of(command: str) -> list[str]:
    """As a shell cuts it, up to where the next program begins."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|&;<>"):
            break
        if word not in ("..", "..."):
            words.append(word)
    return words


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_verb_and_option_of_a_command_exists(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for command in [*shown(text), *spoken(text)]:
        words = words_of(command)
        if words[0].startswith("--"):
            assert words[0] in ("--help", "--version"), f"{page}: {command}"
            continue
        verb, rest = verb_of(words)
        known = options_of(verb)
        for option in named(rest):
            assert option in known, f"{page}: searchbench {command}: there is no {option}"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_command_of_a_block_is_understood_as_it_stands(page: Path) -> None:
    for command in shown((ROOT / page).read_text(encoding="utf-8")):
        words = words_of(command)
        if "searchbench" in words:  # of a shell's line the last of ours
            words = words[words.index("searchbench") + 1 :]
        app.parse_args(words, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_option_that_is_named_alone_exists_somewhere(page: Path) -> None:
    every = every_option() | FOREIGN.get(str(page), set())
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    for option in re.findall(r"`(--[a-z][\w-]*)", text):
        assert option in every, f"{page}: there is no option {option}"


@pytest.mark.parametrize("folder", TELLING)
def test_every_option_that_a_remedy_names_exists(folder: str) -> None:
    every, found = every_option() | TELLING[folder], set[str]()
    for path in sorted((ROOT / "python/searchbench" / folder).rglob("*.py")):
        for option in re.findall(r"(?<![\w-])(--[a-z][\w-]*)", path.read_text(encoding="utf-8")):
            assert option in every, f"{path}: there is no option {option}"
            found.add(option)
    assert found, "nothing was looked at"


def every_option() -> set[str]:
    """The options of all verbs."""
    return {"--version"}.union(*map(options_of, walk(app)))


def walk(verb: cyclopts.App) -> Iterator[cyclopts.App]:
    """The verb, and those below it."""
    yield verb
    for name in verb:
        if not name.startswith("-"):
            yield from walk(verb[name])


def test_what_is_not_there_is_found() -> None:
    with pytest.raises(AssertionError, match="no verb mesure"):
        verb_of(["mesure", "x"])
    with pytest.raises(AssertionError, match="no queries extrac"):
        verb_of(["queries", "extrac"])
    verb, rest = verb_of(["collect", "cat", "searchd", "--hosts", "a"])
    assert [option in options_of(verb) for option in named(rest)] == [False]
    assert shown("```sh\ntail x | searchbench collect cat \\\n  searchd\n```\n") == [
        "collect cat    searchd"
    ]
    assert spoken("so `searchbench\nrun x --quick` does") == ["run x --quick"]
