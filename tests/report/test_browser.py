"""The report in a real browser: no error, nothing overflows, sorting and search by keyboard,
accessible, harmless.
"""

import pandas as pd
import pytest

from tests.pages import accessible

pytestmark = pytest.mark.browser
NAMES = ["rows", "groups", "images", "regression", "nasty", "closed form", "no errors"]


@pytest.fixture
def open_page(visit, reports):
    """Opens a report by its name."""
    return lambda name, *words: visit(reports[name].as_uri(), *words)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_opens_without_error_and_without_overflow(open_page, name, width, scheme):
    page = open_page(name, width, scheme)
    assert page.errors == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#rows tbody tr").count() > 0
    for chart in page.locator(".chart").all():
        assert chart.locator("svg").count() > 0
    outside = [url for url in page.asked if not url.startswith(("file:", "data:", "blob:"))]
    assert outside == []


@pytest.mark.parametrize(
    ("name", "scheme"), [*((name, "light") for name in NAMES), ("rows", "dark"), ("images", "dark")]
)
def test_axe_finds_no_violation(open_page, name, scheme):
    assert accessible(open_page(name, 1400, scheme)) > 10


EVIDENCE = [name for name in NAMES if name != "groups"]


def all_rows(page):
    if page.locator("#only").is_checked():
        page.locator("#only").press("Space")


@pytest.mark.parametrize("name", EVIDENCE)
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_open_rows_are_accessible_and_fit(open_page, name, width, scheme):
    page = open_page(name, width, scheme)
    all_rows(page)
    for place in (0, 1):
        page.locator("button.open").nth(place).press("Enter")
    assert page.locator("tr.evidence").count() == 2
    assert page.errors == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    panel = page.locator(".panel").first.bounding_box()
    assert panel["width"] <= width
    for part in page.locator(".panel > p, .panel .jury, .panel .strip, .panel .jury table").all():
        box = part.bounding_box()
        assert box["x"] + box["width"] <= panel["x"] + panel["width"] + 1
    accessible(page)
    assert page.evaluate("window.hacked") is None


def test_a_row_is_opened_and_closed_by_keyboard(open_page):
    page = open_page("rows")
    all_rows(page)
    button = page.locator("button.open").first
    assert button.get_attribute("aria-expanded") == "false"
    number = button.inner_text()
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    panel = page.locator(f"#{button.get_attribute('aria-controls')}")
    text = panel.inner_text()
    for words in ("This row", "Nearest with the same label", "Nearest with another label"):
        assert words in text
    assert "judging rows" in text
    assert panel.locator(".scroll tbody tr").count() == 3 + 1 + 6
    assert panel.locator(".strip rect").count() > 3
    assert page.evaluate("document.activeElement.className") == "open"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == f"Rows nearest to row {number}"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    assert button.get_attribute("aria-expanded") == "false"
    assert page.locator("tr.evidence").count() == 0


def test_an_open_row_stays_open_when_the_table_is_sorted_and_paged(open_page):
    page = open_page("rows")
    all_rows(page)
    page.locator("button.open").first.click()
    page.locator("#rows th button", has_text="rank").press("Enter")  # now the highest first
    assert page.locator("tr.evidence").count() == 0
    page.locator("#rows th button", has_text="rank").press("Enter")
    assert page.locator("tr.evidence").count() == 1
    assert page.locator("tr.evidence .strip rect").count() > 3
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.errors == []


def test_evidence_of_other_runs(open_page):
    page = open_page("regression")
    all_rows(page)
    page.locator("button.open").first.press("Enter")
    text = page.locator("tr.evidence").inner_text()
    assert "Nearest" in text
    assert "label" not in text
    page = open_page("no errors")
    page.locator("button.open").first.press("Enter")
    assert "the jury is cut into folds" in page.locator("tr.evidence").inner_text()
    page = open_page("groups")
    assert page.locator("button.open").count() == 0
    page = open_page("images")
    all_rows(page)
    page.locator("button.open").first.press("Enter")
    assert page.locator("tr.evidence .scroll img").count() > 1


def test_a_copy_with_another_label_is_named(open_page):
    page = open_page("copies")
    all_rows(page)
    page.get_by_role("button", name="Evidence for row 4", exact=True).press("Enter")
    assert page.locator(".contradiction").inner_text() == "The same cells, label b: rows 5, 6."
    assert page.locator("tr.evidence .scroll tbody tr").count() > 4


def cells(page, column):
    names = [
        name.removesuffix(" ▲").removesuffix(" ▼")
        for name in page.locator("#rows thead th").all_inner_texts()
    ]
    return [
        row.locator("td").nth(names.index(column)).inner_text()
        for row in page.locator("#rows tbody tr").all()
    ]


def test_sorting_searching_and_paging_by_keyboard(open_page):
    page = open_page("rows")
    if page.locator("#only").is_checked():
        page.locator("#only").press("Space")
    assert page.locator("#count").inner_text().startswith("300 of 300 rows, page 1 of 12")
    assert [int(rank) for rank in cells(page, "rank")] == list(range(1, 26))
    page.locator("#rows th button", has_text="age").press("Enter")
    ages = [int(age) for age in cells(page, "age")]
    assert ages == sorted(ages)
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("age")
    page.locator("#rows th button", has_text="age").press("Enter")
    ages = [int(age) for age in cells(page, "age")]
    assert ages == sorted(ages, reverse=True)
    page.locator("#after").press("Enter")
    assert "page 2 of 12" in page.locator("#count").inner_text()
    page.locator("#words").focus()
    page.keyboard.type("Basel")
    assert set(cells(page, "city")) == {"Basel"}
    assert "page 1" in page.locator("#count").inner_text()
    page.locator("#words").fill("no such thing")
    assert page.locator("#rows tbody tr").count() == 0


def test_everything_is_reached_by_the_tab_key(open_page):
    page = open_page("rows")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "document.activeElement.id || document.activeElement.textContent.trim().slice(0, "
                "20)"
            )
        )
    assert {"words", "size", "only", "rank ▲", "age"} <= seen


def test_text_from_the_data_neither_runs_nor_breaks_the_page(open_page):
    page = open_page("nasty")
    if page.locator("#only").is_checked():
        page.locator("#only").press("Space")
    page.locator("#size").select_option("100")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#rows tbody tr").count() == 60
    text = page.locator("#rows").inner_text()
    assert "<script>window.hacked=1</script>" in text
    assert "{data}{charts}{script}" in text
    assert "(10,000 characters)" in text
    assert page.locator("#rows img").count() == 0


def test_pictures_are_shown(open_page):
    page = open_page("images")
    if page.locator("#only").is_checked():
        page.locator("#only").press("Space")
    pictures = page.locator("#rows img")
    assert pictures.count() == 25
    assert page.evaluate(
        "[...document.querySelectorAll('#rows img')].every((i) => i.complete && i.naturalWidth "
        "=== 8)"
    )
    assert pictures.first.get_attribute("alt").startswith("row ")


def test_colours_follow_the_system(open_page):
    page = open_page("rows")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    assert page.errors == []


def test_the_rows_shown_are_saved_as_a_table(open_page, tmp_path):
    page = open_page("nasty")
    if page.locator("#only").is_checked():
        page.locator("#only").press("Space")
    with page.expect_download() as waiting:
        page.locator("#save").press("Enter")
    waiting.value.save_as(tmp_path / "rows.csv")
    saved = pd.read_csv(tmp_path / "rows.csv", dtype=str, keep_default_na=False)
    assert len(saved) == 60  # all pages
    assert sorted(saved["rank"].astype(int)) == list(range(1, 61))
    texts = saved.to_numpy().ravel().tolist()
    assert not any(text.startswith(("=", "@", "+")) for text in texts)


def test_a_point_tells_who_it_is(open_page):
    page = open_page("rows")
    box = page.locator("#sorted").bounding_box()
    for step in range(40):
        page.mouse.move(box["x"] + 60 + step * 2, box["y"] + box["height"] * 0.8)
        if page.locator("#sorted .tip").is_visible():
            break
    for step in range(30):
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20 + step * 10)
        if page.locator("#sorted .tip").is_visible():
            break
    assert "row" in page.locator("#sorted .tip").inner_text()
