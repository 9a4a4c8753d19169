"""The page of a mislabels run: what it says, and a review in a real browser."""

import csv
import dataclasses
import io
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from databanzhaf.errors import InvalidInput
from databanzhaf.report.review import (
    JudgeSays,
    NearRow,
    ReviewContent,
    ReviewRow,
    ReviewSummary,
    render,
)
from databanzhaf.tables.decisions import read_decisions
from tests.pages import accessible
from tests.report.conftest import ATTACK

TABLE = "0123456789abcdef"
HEADER = ["row", "id", "label", "decision", "new_label", "table", "target"]
# Labels that a spreadsheet, a CSV file or a page could change or run.
NASTY = [
    "a, b",
    'say "yes"',
    "two\nlines",
    "=1+1",
    "",
    " spaced ",
    ATTACK,
    "</script><!--",
    "\u202eright to left",
    "w" * 10_000,
    "{data}{scripts}",
    "carriage\r\nreturn",
]
DOT = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwAD"
    "hgGAWjR9awAAAABJRU5ErkJggg=="
)


def reviewed(n=60, flagged=12, classes=("no", "yes"), columns=5, listed=None, **more):
    """Content of `n` rows, of which the first `listed` are in the list; row 3 k is the k-th."""
    rng = np.random.default_rng(0)
    names = [f"column {k}" for k in range(columns)]
    cells = [
        [
            f"{rng.normal():.4g}" if k % 2 else str(rng.choice(["Basel", "Turin"]))
            for k in range(columns)
        ]
        for _ in range(3 * n + 4)
    ]

    def near(row, label):
        return [NearRow(row + j, None, label, cells[row + j], j / 7) for j in range(1, min(4, n))]

    def row(k):
        own, other = classes[k % len(classes)], classes[(k + 1) % len(classes)]
        return ReviewRow(
            row=3 * k,
            id=f"r{3 * k}" if k % 2 else None,
            label=own,
            suggested=other,
            p_wrong=1 - k / n,
            p_suggested=0.9 - 0.8 * k / n,
            agreement=0.8,
            margin=0.5,
            rank=k + 1,
            flag=k < flagged,
            cells=cells[3 * k],
            judges=[JudgeSays("forest", other, 0.1, 0.85), JudgeSays("network", own)],
            near_own=near(3 * k, own),
            near_suggested=near(3 * k, other),
            value="-0.0012" if k % 3 == 0 else None,
            conflicts=[(1, other)] if k == 1 else [],
        )

    rows = [row(k) for k in range(n if listed is None else listed)]
    pairs = {}
    for each in rows[:flagged]:
        pairs[each.label, each.suggested] = pairs.get((each.label, each.suggested), 0) + 1
    lengths = list(range(1, max(2, len(rows)) + 1))
    known = {
        "title": "Wrong labels in t.csv",
        "command": "databanzhaf mislabels t.csv --target y",
        "table_name": "t.csv",
        "table": TABLE,
        "target": "y",
        "classes": list(classes),
        "n_rows": n,
        "columns": names,
        "summary": ReviewSummary(
            n_flagged=flagged,
            fdr=0.1,
            share=0.046,
            share_interval=(0.031, 0.064),
            found_of_100=71,
            expected_first=[(50, 43.2)],
            curve=(lengths, [k**0.8 for k in lengths]),
            histogram=[5, 3, 0, 2, 9],
            pairs=[(*pair, count) for pair, count in pairs.items()],
        ),
        "rows": rows,
        "alerts": ["4 of the 12 flagged rows come from one supplier."],
        "notes": ["One column was left out."],
        "facts": [("committee", "forest and network")],
    }
    return ReviewContent(**{**known, **more})


def changed(content, **more):
    """The content with other fields in its summary."""
    return dataclasses.replace(content, summary=dataclasses.replace(content.summary, **more))


def numbers(n=40, flagged=8):
    """A regression."""
    base = reviewed(n, flagged, classes=("1.5", "2.25", "-3"), task="regression")
    rows = [
        dataclasses.replace(
            row, suggested=str(k / 4), p_suggested=None, interval="1 to 9",
            near_suggested=[], judges=[JudgeSays("forest", str(k / 3))],
        )
        for k, row in enumerate(base.rows)
    ]  # fmt: skip
    return changed(dataclasses.replace(base, rows=rows, classes=[]), pairs=[])


def hostile():
    """Texts that would run, break or stretch the page, in every field that holds a text."""
    base = reviewed(40, 12, classes=NASTY, columns=3)
    stretch = [ATTACK, "w" * 10_000, "\u202e</script>"]
    rows = [
        dataclasses.replace(
            row,
            id=None if k % 2 else ATTACK,
            cells=stretch,
            text="w" * 9_000 if k % 2 else ATTACK,
            picture=DOT,
            value=ATTACK,
            judges=[JudgeSays(ATTACK, row.label, 0.2, 0.3)],
            near_own=[dataclasses.replace(near, cells=stretch) for near in row.near_own],
            near_suggested=[
                dataclasses.replace(near, cells=stretch) for near in row.near_suggested
            ],
            conflicts=[(1, row.suggested)],
        )
        for k, row in enumerate(base.rows)
    ]
    return dataclasses.replace(
        base, rows=rows, title=ATTACK, command=ATTACK, target="y,\n" + ATTACK, alerts=[ATTACK],
        table_name=f"a b'{ATTACK}.csv", notes=["w" * 10_000], facts=[(ATTACK, "w" * 10_000)],
        columns=[ATTACK, "w" * 10_000, "{data}{scripts}"],
    )  # fmt: skip


CASES = {
    "plain": reviewed,
    "hundred": lambda: reviewed(120, 30, classes=[f"class {k}" for k in range(100)]),
    "numbers": numbers,
    "hostile": hostile,
    "none flagged": lambda: reviewed(60, 0),
    "one row": lambda: reviewed(1, 1),
    "pictures": lambda: reviewed(12, 4, classes="0123456789", columns=0, rows=[
        dataclasses.replace(row, picture=DOT) for row in reviewed(12, 4, "0123456789", 0).rows
    ]),
    "nothing": lambda: changed(
        reviewed(60, 0, rows=[], alerts=[], notes=[], facts=[]),
        share=None, share_unknown="The share is unknown: too few rows.", curve=None, histogram=[],
        found_of_100=None, expected_first=[],
    ),
}  # fmt: skip


# ---------------------------------------------------------------- without a browser


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)[1])


def words_of(page):
    """The text of the page, without scripts and styles."""

    class Words(HTMLParser):
        skip, found = False, ""

        def handle_starttag(self, tag, attributes):
            self.skip = tag in ("script", "style")

        def handle_endtag(self, tag):
            self.skip = False

        def handle_data(self, text):
            self.found += "" if self.skip else text

    words = Words()
    words.feed(page)
    return " ".join(words.found.split())


def test_the_answer_comes_in_words():
    words = words_of(render(reviewed(1000, 43, listed=60)))
    assert "43 of 1,000 labels are probably wrong." in words
    assert "Expected share of wrong labels: 4.6% (95% interval 3.1% to 6.4%)." in words
    assert (
        "Of 100 labels changed at random this list would have found 71; expect 43 of its first 50 "
        "rows to be wrong." in words
    )
    assert "At most 10% of the flagged rows are expected to be right." in words
    assert "The list has 60 rows, the most doubtful ones." in words
    assert "No label is flagged as probably wrong." in words_of(render(reviewed(60, 0)))
    assert "1 of 1 label is probably wrong." in words_of(render(reviewed(1, 1)))
    assert "8 of 40 target values are probably wrong." in words_of(render(numbers()))
    assert "The share is unknown: too few rows." in words_of(render(CASES["nothing"]()))
    firsts = changed(reviewed(), expected_first=[(10, 9.8), (50, 43.2)], found_of_100=None)
    expected = "Expect 10 of its first 10 rows to be wrong, expect 43 of the first 50 rows."
    assert expected in words_of(render(firsts))


def test_two_thousand_rows_of_a_large_table_take_less_than_a_megabyte_and_a_half():
    judges = [JudgeSays(name, "yes", 0.1234, 0.8766) for name in ("forest", "network", "boosting")]
    base = reviewed(7_000, 500, columns=13, listed=2_000)
    # No row is near two others: 14,000 rows are named.
    rows = [
        dataclasses.replace(
            row, row=k, judges=judges,
            near_own=[dataclasses.replace(each, row=2_000 + 6 * k + j)
                      for j, each in enumerate(row.near_own)],
            near_suggested=[dataclasses.replace(each, row=2_003 + 6 * k + j)
                            for j, each in enumerate(row.near_suggested)],
        )
        for k, row in enumerate(base.rows)
    ]  # fmt: skip
    page = render(dataclasses.replace(base, rows=rows))
    assert len(page.encode()) < 1.5e6
    pool = data_of(page)["pool"]
    assert len(pool) == 14_000
    assert all(cells is not None for *_, cells in pool[:2_500])
    assert pool[-1][3] is None


def test_the_page_asks_nobody_for_anything():
    page = render(hostile())
    assert not re.findall(r"(?:src|href|url\()\s*[=(]?\s*[\"']?https?:", page)
    assert "connect-src" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("t.csv", "t.fixed.csv"),
        ("t.csv.gz", "t.fixed.csv.gz"),
        ("a b.csv", "a b.fixed.csv"),
        ("it's $HOME.csv", "it's $HOME.fixed.csv"),
        ("-rf.csv", "./-rf.fixed.csv"),
        ("data/-x.2024.parquet", "data/-x.2024.fixed.parquet"),
        ("a\nb.csv", "a\nb.fixed.csv"),
        ("t", "t.fixed"),
    ],
)
def test_the_next_command_survives_a_shell(name, out):
    page = render(reviewed(table_name=name))
    command = re.findall(r"<code>(databanzhaf apply .*?)</code>", page, flags=re.DOTALL)
    assert len(set(command)) == 1
    parser = HTMLParser()
    said = []
    parser.handle_data = said.append
    parser.feed(command[0])
    words = shlex.split("".join(said))
    assert words[:2] == ["databanzhaf", "apply"]
    assert words[3:] == ["decisions.csv", "--out", out]
    assert Path(words[2]) == Path(name)
    assert not words[2].startswith("-")


def test_what_breaks_a_rule_is_refused():
    row = reviewed(4).rows[0]
    with pytest.raises(InvalidInput, match=r"one text per column; got 2 cells of row 0 for 5"):
        render(reviewed(4, rows=[dataclasses.replace(row, cells=["a", "b"])]))
    with pytest.raises(InvalidInput, match="`picture` must be the data address of an image"):
        render(reviewed(4, rows=[dataclasses.replace(row, picture="https://example.org/x.png")]))
    with pytest.raises(InvalidInput, match="keep, fix or drop; got 'guess' for row 3"):
        render(reviewed(4, decided={3: ("guess", "")}))


def test_earlier_decisions_are_in_the_page_and_others_are_counted():
    known = {3: ("fix", "yes"), 1: ("keep", ""), 9_999: ("drop", "")}
    data = data_of(render(reviewed(decided=known)))
    assert sorted(data["decided"]) == [[1, "", "no", "keep", ""], [3, "r3", "yes", "fix", "yes"]]
    assert data["elsewhere"] == 1


def test_numbers_that_are_not_finite_are_left_out():
    row = dataclasses.replace(reviewed(4).rows[0], agreement=float("nan"), margin=float("inf"))
    data = data_of(render(reviewed(4, rows=[row])))
    line = dict(zip(data["fields"], data["rows"][0], strict=True))
    assert line["agreement"] is None
    assert line["margin"] is None


# ---------------------------------------------------------------- in a browser


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """name → review page."""
    folder = tmp_path_factory.mktemp("reviews")
    made = {name: folder / f"{name}.html" for name in CASES}
    for name, path in made.items():
        path.write_text(render(CASES[name]()), encoding="utf-8")
    return made


@pytest.fixture
def open_page(visit, pages):
    """Opens a review page by its name, or the file that is given."""

    def opened(name="plain", *words, **more):
        return visit((pages[name] if isinstance(name, str) else name).as_uri(), *words, **more)

    return opened


def fits(page, width):
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("window.hacked") is None
    assert page.errors == []


def review(page):
    page.locator("#begin").press("Enter")
    assert page.locator("#review").is_visible()


def text(page, selector):
    return page.locator(selector).inner_text().replace("\u2068", "").replace("\u2069", "")


def stored(page):
    """row → (decision, new label), as the page has them."""
    found = page.evaluate("[...decisions.values()].map((e) => [e.row, e.decision, e.new_label])")
    return {row: (decision, new_label) for row, decision, new_label in found}


def saved(page, button="#overview .download"):
    with page.expect_download() as waiting:
        page.locator(button).press("Enter")
    assert waiting.value.suggested_filename == "decisions.csv"
    return Path(waiting.value.path()).read_bytes()


def loaded(page, data, name="decisions.csv"):
    page.locator("#loaded").evaluate("(each) => { each.textContent = ''; }")
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": data})
    page.wait_for_selector("#loaded:not(:empty)")
    return text(page, "#loaded")


def file_of(*lines, header=HEADER, ends="\n"):
    made = io.StringIO(newline="")
    csv.writer(made, lineterminator=ends).writerows([header, *lines])
    return made.getvalue().encode()


browser_test = pytest.mark.browser


@browser_test
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_list_and_review_open_without_error_and_fit(open_page, name, width, scheme):
    page = open_page(name, width, scheme)
    fits(page, width)
    if name != "nothing":
        assert page.locator("#rows tbody tr").count() > 0
        assert page.locator("#chart svg").count() == 1
        review(page)
        for move in ["ArrowRight", "f", "d", "k"]:
            fits(page, width)
            page.keyboard.press(move)
    fits(page, width)
    assert [url for url in page.asked if not url.startswith(("file:", "data:", "blob:"))] == []


@browser_test
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("plain", 1400, "dark"),
        ("plain", 390, "light"),
        ("hundred", 1400, "light"),
        ("numbers", 390, "dark"),
        ("hostile", 1400, "light"),
        ("pictures", 390, "light"),
        ("none flagged", 1400, "light"),
    ],
)
def test_axe_finds_no_violation(open_page, name, width, scheme):
    page = open_page(name, width, scheme)
    accessible(page)
    review(page)
    accessible(page)
    page.keyboard.press("f")
    page.keyboard.press("ArrowLeft")
    accessible(page)
    for key in ["?", "e" if name == "numbers" else "l"]:
        page.keyboard.press(key)
        assert page.locator("dialog[open]").count() == 1
        accessible(page)
        fits(page, width)
        page.keyboard.press("Escape")
    assert page.locator("#review").is_visible()  # Escape has closed the dialog, and no more
    page.evaluate(
        "for (const row of view.queue.slice()) { view.at = view.queue.indexOf(row); drop(); }"
    )
    assert page.locator("#finished").is_visible()
    accessible(page)


@browser_test
def test_a_whole_review_by_keyboard(open_page):
    page = open_page("plain")
    assert text(page, "#begin") == "Review 12 rows"
    page.keyboard.press("k")  # no row is on the screen
    assert stored(page) == {}
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "begin":
            break
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "heading"
    assert text(page, "#heading") == "Row 0"
    page.keyboard.press("k")
    page.keyboard.press("f")
    page.keyboard.press("d")
    assert stored(page) == {0: ("keep", ""), 3: ("fix", "no"), 6: ("drop", "")}
    assert text(page, "#tally") == "3 of 12 decided, 1 fixed"
    assert text(page, "#said") == "Row 6 dropped."
    assert text(page, "#heading") == "Row 9 r9"
    page.keyboard.press("u")
    assert text(page, "#heading") == "Row 6"
    assert 6 not in stored(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("j")
    assert text(page, "#heading").startswith("Row 12")
    page.keyboard.press("Shift+J")
    page.keyboard.press("ArrowLeft")
    assert text(page, "#heading") == "Row 6"
    assert len(stored(page)) == 2
    page.keyboard.press("Escape")
    assert page.locator("#overview").is_visible()
    assert page.evaluate("document.activeElement.dataset.row") == "6"
    assert text(page, "#begin") == "Continue: 10 rows left"
    assert text(page, "#so-far") == "2 of 12 decided, 1 fixed."
    page.locator("#begin").press("Enter")
    for _ in range(10):
        page.keyboard.press("f")
    assert text(page, "#finish") == "All 12 rows are decided"
    assert text(page, "#outcome") == "11 fixed, 1 kept, 0 dropped."
    assert page.evaluate("document.activeElement.id") == "finish"
    page.keyboard.press("k")  # no row is on the screen
    assert text(page, "#outcome") == "11 fixed, 1 kept, 0 dropped."
    page.keyboard.press("u")
    assert page.locator("#row").is_visible()
    page.keyboard.press("f")
    page.keyboard.press("Escape")
    assert text(page, "#begin") == "Review 12 rows again"
    assert page.errors == []


@browser_test
def test_a_decision_can_be_changed_and_taken_back(open_page):
    page = open_page("plain", width=1400)
    review(page)
    page.keyboard.press("f")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#fix").get_attribute("aria-pressed") == "true"
    assert "fixed to yes" in text(page, "#about")
    page.keyboard.press("d")
    assert stored(page)[0] == ("drop", "")
    page.keyboard.press("u")
    assert stored(page)[0] == ("fix", "yes")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    page.keyboard.press("ArrowLeft")  # a review goes on where it was, with no past to undo
    page.keyboard.press("u")
    assert stored(page) == {}


@browser_test
def test_keys_do_nothing_while_somebody_types_or_holds_a_modifier(open_page):
    page = open_page("plain")
    review(page)
    for keys in ["Control+k", "Alt+f", "Meta+d", "Control+u"]:
        page.keyboard.press(keys)
    assert stored(page) == {}
    page.keyboard.down("k")
    page.keyboard.down("k")  # repeats as long as it is held
    page.keyboard.up("k")
    assert len(stored(page)) == 1
    page.keyboard.press("Escape")
    page.locator("#words").focus()
    page.keyboard.type("kfd?")
    page.locator("#which").focus()
    page.keyboard.press("d")
    assert len(stored(page)) == 1
    assert page.locator("dialog[open]").count() == 0
    page = open_page("hundred")
    review(page)
    page.keyboard.press("l")
    page.keyboard.type("kfd1")
    assert stored(page) == {}
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.keyboard.press("k")
    assert stored(page) == {}


@browser_test
def test_arrows_scroll_a_box_that_has_the_focus(open_page):
    page = open_page("plain", width=390)
    review(page)
    page.locator("#compared .scroll").focus()
    page.keyboard.press("ArrowRight")
    assert text(page, "#heading") == "Row 0"


@browser_test
def test_labels_by_number_and_from_a_list(open_page):
    page = open_page("hundred")
    review(page)
    assert text(page, "#own .label") == "class 0"
    page.keyboard.press("3")
    page.keyboard.press("0")
    page.keyboard.press("3")  # the third row's own label
    assert stored(page) == {0: ("fix", "class 2"), 3: ("fix", "class 9"), 6: ("keep", "")}
    page.keyboard.press("l")
    assert page.locator("#options button").count() == 100
    page.keyboard.type("77")
    assert page.locator("#options button").count() == 1
    page.keyboard.press("Enter")
    assert stored(page)[9] == ("fix", "class 77")
    page.keyboard.press("l")
    page.keyboard.type("8")
    for key in ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "Enter"]:
        page.keyboard.press(key)
    assert stored(page)[12] == ("fix", "class 18")
    page.keyboard.press("l")
    page.keyboard.type("nothing like it")
    assert text(page, "#none") == "No label contains this text."
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert len(stored(page)) == 5
    assert page.locator("#review").is_visible()


@browser_test
def test_labels_that_are_digits_are_their_own_keys(open_page):
    page = open_page("pictures")
    review(page)
    assert page.locator("#seen img").count() == 1
    page.keyboard.press("7")
    assert stored(page) == {0: ("fix", "7")}


@browser_test
def test_numbers_are_fixed_to_what_is_expected_or_typed(open_page):
    page = open_page("numbers")
    review(page)
    assert "expected range 1 to 9" in text(page, "#suggested")
    page.keyboard.press("f")
    assert stored(page) == {0: ("fix", "0.0")}
    page.keyboard.press("e")
    assert page.locator("#number").input_value() == "0.25"
    page.keyboard.type("a lot")
    page.keyboard.press("Enter")
    assert "must be a number" in text(page, "#wrong")
    page.locator("#number").fill("0x10")
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").count() == 1
    page.locator("#number").fill("-1e3")
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").count() == 0
    assert stored(page)[3] == ("fix", "-1e3")
    page.keyboard.press("4")  # no class has this number
    assert len(stored(page)) == 2
    page.keyboard.press("e")
    page.locator("#cancel").press("Enter")
    assert len(stored(page)) == 2
    assert page.errors == []


@browser_test
def test_everything_works_by_touch(open_page):
    page = open_page("hundred", width=390, has_touch=True, is_mobile=True)
    page.locator("#begin").tap()
    buttons = [each for each in page.locator("#review button").all() if each.is_visible()]
    assert len(buttons) > 15
    for each in buttons:
        box = each.bounding_box()
        assert box["height"] >= 44, each.inner_text()
        assert box["width"] >= 44, each.inner_text()
    page.locator("#fix").tap()
    page.locator("#keep").tap()
    page.locator("#drop").tap()
    page.locator("#undo").tap()
    page.locator("#others .chip").nth(4).tap()
    page.locator("#previous").tap()
    page.locator("#following").tap()
    page.locator("#others .chip").last.tap()
    page.locator("#options button").nth(50).tap()
    assert stored(page) == {
        0: ("fix", "class 1"), 3: ("keep", ""), 6: ("fix", "class 4"), 9: ("fix", "class 50")
    }  # fmt: skip
    digits = open_page("pictures", width=390, has_touch=True, is_mobile=True)
    digits.locator("#begin").tap()
    assert all(each.bounding_box()["width"] >= 44 for each in digits.locator(".chip").all())
    page.locator("#help").tap()
    page.locator("#keys button").tap()
    page.locator("#back").tap()
    assert page.locator("#overview").is_visible()
    fits(page, 390)


@browser_test
def test_decisions_survive_a_reload_and_reach_another_tab(open_page):
    page = open_page("plain")
    review(page)
    page.keyboard.press("f")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    assert text(page, "#heading").startswith("Row 3")  # the review goes on
    assert stored(page) == {0: ("fix", "yes")}
    page.go_back()
    page.wait_for_selector("#overview", state="visible")
    other = open_page("plain", context=page.context)
    assert stored(other) == {0: ("fix", "yes")}
    review(other)
    other.keyboard.press("d")
    page.locator("#so-far", has_text="2 of 12 decided").wait_for()
    third = open_page("hundred", context=page.context, script="")
    assert third.evaluate("STORE") == f"databanzhaf decisions {TABLE} y"


@browser_test
@pytest.mark.parametrize(
    "script",
    [
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } });",
        "Storage.prototype.setItem = () => { throw new Error('full'); };",
    ],
)
def test_a_browser_that_keeps_nothing_says_so(open_page, script):
    page = open_page("plain", script=script)
    assert "does not keep decisions" in text(page, "#storage")
    review(page)
    page.keyboard.press("f")
    assert stored(page) == {0: ("fix", "yes")}
    assert page.locator("#storage").is_visible()
    fits(page, 1400)


@browser_test
def test_what_else_is_in_the_store_does_no_harm(open_page):
    for junk in ["{", "null", "[1]", '{"0": 5, "3": {"decision": "burn"}, "6": null}']:
        page = open_page(
            "plain", script=f"localStorage.setItem('databanzhaf decisions {TABLE} y', {junk!r})"
        )
        assert stored(page) == {}
        assert page.errors == []


@browser_test
def test_earlier_decisions_are_shown_and_can_be_taken_back(open_page, tmp_path):
    path = tmp_path / "decided.html"
    known = {0: ("fix", "yes"), 1: ("keep", ""), 9_999: ("drop", "")}
    path.write_text(render(reviewed(decided=known)), encoding="utf-8")
    page = open_page(path)
    assert text(page, "#begin") == "Continue: 11 rows left"
    assert "on 1 row that this page does not list" in text(page, "#summary")
    page.locator("button.open[data-row='0']").press("Enter")
    page.keyboard.press("u")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    assert stored(page) == {1: ("keep", "")}


@browser_test
def test_the_file_is_exactly_what_was_decided_and_reads_back(open_page, tmp_path):
    page = open_page("hostile")
    review(page)
    order = page.evaluate("view.queue.map((row) => row.row)")
    for _ in order:
        page.keyboard.press("f")  # nothing, where the suggested label is empty
        if page.locator("#fix").is_disabled():
            page.keyboard.press("5")  # the empty label
            page.keyboard.press("d")
    page.keyboard.press("Escape")
    page.locator("button.open[data-row='3']").press("Enter")
    page.keyboard.press("k")
    page.keyboard.press("Escape")
    written = saved(page)
    content = hostile()
    labels = {row.row: (row.id or "", row.label, row.suggested) for row in content.rows}
    lines = list(csv.reader(io.StringIO(written.decode("utf-8"), newline=""), strict=True))
    assert lines[0] == HEADER
    assert [int(line[0]) for line in lines[1:]] == sorted(order)
    for row, *line in lines[1:]:
        name, label, suggested = labels[int(row)]
        decision = ["fix", suggested] if suggested else ["drop", ""]
        if row == "3":
            decision = ["keep", ""]
        assert line == [name, label, *decision, TABLE, content.target]
    assert {line[4] for line in lines} >= set(NASTY) - {NASTY[1], NASTY[2]}
    (tmp_path / "decisions.csv").write_bytes(written)
    decisions = read_decisions(tmp_path / "decisions.csv")  # what `databanzhaf apply` reads
    assert (decisions.table, decisions.target) == (TABLE, content.target)
    assert {each.row: (each.decision, each.new_label) for each in decisions.made} == stored(page)
    assert {each.row: each.label for each in decisions.made} == {
        row: labels[row][1] for row in order
    }
    other = open_page("hostile")  # a browser of its own
    assert stored(other) == {}
    assert loaded(other, written) == "Decisions on 12 rows were loaded."
    assert stored(other) == stored(page)
    assert saved(other) == written
    spreadsheet = b"\xef\xbb\xbf" + file_of(*lines[1:], ends="\r\n")
    third = open_page("hostile")
    assert loaded(third, spreadsheet) == "Decisions on 12 rows were loaded."
    assert saved(third) == written
    assert page.errors == []


@browser_test
def test_rows_come_in_ascending_order_with_line_feeds(open_page):
    page = open_page("plain")
    page.locator("button.open[data-row='30']").press("Enter")
    page.keyboard.press("d")
    page.keyboard.press("Escape")
    page.locator("button.open[data-row='9']").press("Enter")
    page.keyboard.press("f")
    page.keyboard.press("Escape")
    assert (
        saved(page)
        == (",".join(HEADER) + f"\n9,r9,yes,fix,no,{TABLE},y\n30,,no,drop,,{TABLE},y\n").encode()
    )


@browser_test
def test_decisions_on_rows_that_are_not_listed_are_kept(open_page):
    page = open_page("plain")
    line = [5_000, "r, 5", "no\n", "fix", "=yes", TABLE, "y"]
    assert loaded(page, file_of(line)) == "Decisions on 1 row were loaded."
    assert saved(page) == file_of(line)


# A file, and what the page says of it.
REFUSED = [
    (
        file_of([0, "", "no", "keep", "", "ffff456789abcdef", "y"]),
        "Decision 1 of the file: the decisions must be about this table, 0123456789abcdef, and "
        "its target “y”; got the table ffff456789abcdef. Nothing was loaded.",
    ),
    (file_of([0, "", "no", "keep", "", TABLE, "z"]), "got target “z”"),
    (file_of(header=["row", "label"]), "must begin with the line row,id,label"),
    (b"", "must begin with the line"),
    (b'"', "must begin with the line"),
    ("row,id,label\nä".encode("latin-1"), "must be UTF-8"),
    (file_of([0, "", "no", "keep", "", TABLE]), "there must be 7 cells; got 6"),
    (file_of([0, "", "yes", "keep", "", TABLE, "y"]), "row 0 has the label “no”; got “yes”"),
    (file_of(["-1", "", "no", "keep", "", TABLE, "y"]), "`row` must be a whole number"),
    (file_of([0, "", "no", "fix", "", TABLE, "y"]), "`new_label` must be a label; got “”"),
    (file_of([0, "", "no", "fix", "no", TABLE, "y"]), "must change the label; got “no” again"),
    (file_of([0, "", "no", "drop", "yes", TABLE, "y"]), "only a fix may have a `new_label`"),
    (file_of([0, "", "no", "burn", "", TABLE, "y"]), "`decision` must be keep, fix or drop"),
    (file_of(*[[0, "", "no", "keep", "", TABLE, "y"]] * 2), "got two for row 0"),
]


@browser_test
def test_a_file_that_does_not_fit_is_refused_as_a_whole(open_page):
    page = open_page("plain")
    for file, sentence in REFUSED:
        assert sentence in loaded(page, file)
        assert stored(page) == {}
    assert page.locator("#overview .download").is_disabled()
    assert page.errors == []


@browser_test
def test_a_number_is_needed_for_a_regression(open_page):
    page = open_page("numbers")
    line = [0, "", "1.5", "fix", "three", TABLE, "y"]
    assert "`new_label` must be a number; got “three”" in loaded(page, file_of(line))
    line[4] = "3"
    assert loaded(page, file_of(line)) == "Decisions on 1 row were loaded."


@browser_test
def test_search_filter_sort_and_pages(open_page):
    page = open_page("hundred")
    assert "30 of 120 rows, page 1 of 2" in text(page, "#count")
    page.locator("#after").press("Enter")
    assert page.locator("#rows tbody tr").count() == 5
    page.locator("#which").select_option("all")
    assert "120 of 120 rows, page 1 of 5" in text(page, "#count")
    page.locator("#words").fill("class 17")
    assert page.locator("#rows tbody tr").count() == 4  # as the label, or as the suggested one
    page.locator("#words").fill("")
    page.locator("#pair").select_option(index=5)
    assert page.locator("#rows tbody tr").count() == 2
    assert "class 4 → class 5" in text(page, "#rows tbody tr:first-child .pair")
    page.locator("#pair").select_option(index=0)
    button = page.locator("#rows th button", has_text="Wrong")
    button.press("Enter")
    first = page.locator("#rows tbody tr").first
    assert text(page, "th[aria-sort=ascending]").startswith("Wrong")
    assert "class 19" in first.inner_text()
    button.press("Enter")
    assert text(page, "th[aria-sort=descending]").startswith("Wrong")
    page.locator("#rows th button", has_text="column 1").press("Enter")
    cells = [float(each) for each in page.locator("#rows tbody td:nth-child(7)").all_inner_texts()]
    assert cells == sorted(cells)
    # A row opens the review in the order of the list.
    numbers = page.locator("#rows button.open").all_inner_texts()
    page.locator("#rows tbody tr").nth(2).locator(".pair").click()
    assert text(page, "#heading").split()[1] == numbers[2]
    page.keyboard.press("ArrowRight")
    assert text(page, "#heading").split()[1] == numbers[3]
    assert text(page, "#about").startswith("4 of 120")
    page.keyboard.press("k")
    page.keyboard.press("Escape")
    page.locator("#which").select_option("decided")
    assert page.locator("#rows tbody tr").count() == 1
    assert text(page, "#rows .decision") == "kept"


@browser_test
def test_the_chart_has_two_views(open_page):
    page = open_page("plain")
    assert page.locator("#chart polyline").count() >= 2
    page.locator("#choices button", has_text="Probabilities").press("Enter")
    assert page.locator("#chart rect").count() == 4
    assert page.evaluate("document.activeElement.textContent") == "Probabilities"
    assert page.locator("#choices [aria-pressed=true]").inner_text() == "Probabilities"
    review(page)
    page.set_viewport_size({"width": 390, "height": 800})
    page.keyboard.press("Escape")
    fits(page, 390)


@browser_test
def test_the_evidence_of_a_row(open_page):
    page = open_page("plain")
    page.locator("button.open[data-row='3']").press("Enter")
    assert text(page, ".contradiction") == "The same cells with another label: row 1 (no)."
    assert "forest" in text(page, "#heard table")
    assert page.locator("#compared tbody tr").count() == 5
    assert page.locator("#compared tbody tr").first.locator("td").count() == 7
    top = text(page, "#compared thead")
    assert "nearest with label yes" in top
    assert "nearest with label no" in top
    # The columns in which the row differs most from those with its label come first.
    apart = page.evaluate(
        "[...document.querySelectorAll('#compared tbody th')].map((th) => { const k = "
        "data.columns.indexOf(th.textContent); return apart(current().cells[k], k, "
        "current().near_own.map(near)); })"
    )
    assert apart == sorted(apart, reverse=True)


@browser_test
def test_hostile_texts_are_shown_as_texts(open_page):
    page = open_page("hostile")
    review(page)
    seen = set()
    for _ in range(12):
        seen.add(page.evaluate("current().label"))
        assert page.locator("#row img:not([src^='data:image/png'])").count() == 0
        page.keyboard.press("ArrowRight")
    assert seen == set(NASTY)
    page.locator("#back").press("Enter")
    body = page.locator("#overview").inner_text()
    assert "<script>window.hacked=1</script>" in body
    assert "(empty)" in body
    assert page.locator("#overview img:not([src^='data:image/png'])").count() == 0
    fits(page, 1400)


@browser_test
def test_motion_is_reduced_and_colours_follow_the_system(open_page):
    page = open_page("plain")
    review(page)
    moving = "getComputedStyle(document.querySelector('.versus')).animationName"
    assert page.evaluate(moving) == "arrive"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(moving) == "none"
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
